//! The parts that benchmarks of pools share.
//!
//! | module | has |
//! |---|---|
//! | [`policies`] | ours, by name |
//! | [`runner`] | the trait of runners of tasks, and how tasks are given to them |
//! | [`subjects`] | the runners of tasks: our pools, and the peers in Rust |
//! | [`built`] | peers in other languages, which are built first |
//! | [`go`] | what those in Go share |
//! | [`arrivals`] | when tasks are due, where they come by themselves |
//! | [`course`] | how long spawners wait for that, and when all is done |
//! | [`tally`] | what threads count while they run tasks |
//! | [`figures`] | what a repetition comes to |
//! | [`rows`] | what a row has, and its columns |

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
