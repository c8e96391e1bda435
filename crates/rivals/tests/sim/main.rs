//! The locks to compare with on simulated machines, and ours beside them. One program: nothing here
//! needs a process of its own, and the common parts of these tests are compiled once.

#[path = "../../../sync/tests/common/mod.rs"]
mod common;

mod atomics;
mod classic;
mod cna_v11;
mod crowd;
mod cst;
mod numa;
mod per_socket;
mod stock;
