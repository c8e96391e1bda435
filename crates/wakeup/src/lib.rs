#![doc = include_str!("../README.md")]
#![no_std]

pub mod batch;
pub mod broadcast;
pub mod condvar;
pub mod direct;
pub mod idle;
pub mod inbox;
pub mod kick;
pub mod machine;
pub mod message;
pub mod names;
pub mod pending;
pub mod run_queue;
pub mod slot;
pub mod table;
pub mod token;
pub mod words;
