//! Recordings and reports, by name and by line.

#[path = "../common/mod.rs"]
mod common;

mod lines;
mod record;
mod replay;
mod sites;
