//! The arithmetic of measuring, apart from what is measured and how it is printed.

mod fairness;
mod histogram;
mod order;
mod random;

pub use fairness::jain;
pub use histogram::Histogram;
pub use order::{Quartiles, geometric_mean, median, quartiles};
pub use random::Random;
