//! Locks and waiting, each written once, generic over the machine that they run on.
//!
//! Nothing here knows that Linux exists. [`lock`] holds the locks, a file each; [`policy`] says who
//! may stand beside whom in their queues; [`wait`] holds what waits for something else than a lock;
//! [`shared`] what several processes share. Users import the `antiphon` crate, where the machine is
//! filled in.
#![no_std]

pub mod lock;
mod nap;
pub mod policy;
pub mod shared;
pub mod wait;
