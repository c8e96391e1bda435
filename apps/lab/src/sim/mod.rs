//! `sim`: simulated machines, and locks and runtimes on them.
//!
//! | module | has |
//! |---|---|
//! | [`calibrate`] | `sim calibrate`: this machine's latencies, measured |
//! | [`machines`] | `sim machines`: the list, and a machine in full |
//! | [`locks`] | `sim locks`, `sim rwlocks` |
//! | [`clock`] | `sim clock`: timestamps |
//! | [`events`] | `sim events`: wake-ups |
//! | [`tasks`] | `sim tasks`: task schedulers |
//! | [`mix`] | `sim mix`: conferences of calls |
//! | [`event_loop`] | `sim loop`: programs with timers and best-effort work |
//! | [`cases`] | what threads do with the locks of [`antiphon_replay::locks`] |
//! | [`experiment`] | one lock in one case |
//! | [`sweep`] | many rows, on all CPUs |
//! | [`plan`], [`row`] | the plan of a simulation and a row of it, as in reports |
//! | [`rows`], [`tables`], [`page`] | the results, for scripts and for people |
//! | [`report`] | the frame of a report, the keys of all rows, and the selection of names |
//! | [`shard`], [`merge`] | a part of the rows, and parts together again |
//! | [`search`] | locks with non-default parameters, and which of them no other beats |
//! | [`memory`] | `sim memory`: what the locks of ten million inodes take |
//! | [`guests`] | `sim guests`: locks in virtual machines that share the CPUs |
//! | [`timeline`] | locks by the year of their publication |
//! | [`trace`] | a simulation on a timeline |
//! | [`published`] | published measurements |

pub mod calibrate;
pub mod cases;
pub mod clock;
pub mod event_loop;
pub mod events;
pub mod experiment;
pub mod guests;
pub mod locks;
pub mod machines;
pub mod memory;
mod merge;
pub mod mix;
mod page;
mod plan;
mod published;
mod report;
mod row;
mod rows;
mod search;
#[cfg(test)]
mod shapes;
mod shard;
pub mod sweep;
mod tables;
pub mod tasks;
mod timeline;
mod trace;
