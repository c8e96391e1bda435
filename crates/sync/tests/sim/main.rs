//! The locks and waits on simulated machines. One program: nothing here needs a process of its own,
//! and the common parts of these tests are compiled once.

#[path = "../common/mod.rs"]
mod common;

mod broadcast;
mod claims;
mod clock;
mod comers;
mod defects;
mod events;
mod locks;
mod policies;
mod queues;
mod rw;
mod waits;
mod wakes;
