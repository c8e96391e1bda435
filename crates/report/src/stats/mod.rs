//! Statistics of measurements, independent of what is measured and how it is printed.

mod distribution;
mod fairness;
mod histogram;
mod interval;
mod medians;
mod order;
mod random;

pub use distribution::{Below, distribution};
pub use fairness::jain;
pub use histogram::Histogram;
pub use interval::Interval;
pub use medians::medians;
pub use order::{Quartiles, deviation, geometric_mean, median, quantile, quartiles};
pub use random::Random;
