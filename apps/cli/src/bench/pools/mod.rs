//! What benchmarks of pools share.

pub mod go;
