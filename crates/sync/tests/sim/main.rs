//! The locks and waits on simulated machines. One program: nothing here needs a process of its own,
//! and the common parts of these tests are compiled once.

#[path = "../common/mod.rs"]
mod common;

mod atomics;
mod broadcast;
mod claims;
mod classic;
mod clock;
mod cna_v11;
mod comers;
mod crowd;
mod cst;
mod defects;
mod events;
mod locks;
mod numa;
mod per_socket;
mod policies;
mod queues;
mod rw;
mod stock;
mod waits;
mod wakes;
