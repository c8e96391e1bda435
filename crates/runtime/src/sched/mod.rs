//! Who runs what next.

mod idlers;

pub use idlers::Idlers;
