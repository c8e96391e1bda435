//! Tests of the locks and waits on simulated machines. One program: no test needs its own process,
//! and the common parts are compiled once.

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
