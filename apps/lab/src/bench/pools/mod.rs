//! The parts that benchmarks of pools share.
//!
//! | module | has |
//! |---|---|
//! | [`policies`] | our policies, by name |
//! | [`runner`] | the trait of runners of tasks, and how tasks are given to them |
//! | [`subjects`] | the runners of tasks: our pools, and the peers in Rust |
//! | [`built`] | peers in other languages, which are built first |
//! | [`go`] | code shared by the peers in Go |
//! | [`arrivals`] | arrival times of tasks, in cases with a rate or a trace |
//! | [`course`] | how long spawners wait for arrivals, and when all is done |
//! | [`tally`] | counts of threads that run tasks |
//! | [`figures`] | the figures of a repetition |
//! | [`rows`] | the values of a row, and its columns |

pub mod arrivals;
pub mod built;
pub mod course;
pub mod figures;
pub mod go;
pub mod policies;
pub mod rows;
pub mod runner;
pub mod subjects;
pub mod tally;
