//! Cases of several CPUs.
use crate::Case;
pub const CASES: &[Case] = &[];
