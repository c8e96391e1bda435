//! What the command prints and refuses, without a run that is observed.

#[path = "../common/mod.rs"]
mod common;

mod arguments;
mod html;
mod laboratory;
mod locks;
mod output;
mod sched;
mod try_locks;
