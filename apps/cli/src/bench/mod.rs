//! `bench`: ours beside the peers, in one interleaved run.

pub mod locks;
