//! How CPUs of a kernel wake each other: the words that they share, and the order of steps.
#![no_std]

pub mod batch;
pub mod broadcast;
pub mod inbox;
pub mod pending;
pub mod run_queue;
pub mod slot;
pub mod table;
pub mod token;
