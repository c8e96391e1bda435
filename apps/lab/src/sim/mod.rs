//! `sim`: machines that are simulated, and locks on them.
//!
//! | module | has |
//! |---|---|
//! | [`calibrate`] | `sim calibrate`: this machine's latencies, measured |
//! | [`machines`] | `sim machines`: the list, and one of them whole |
//! | [`locks`] | `sim locks`, `sim rwlocks` |
//! | [`clock`] | `sim clock`: timestamps |
//! | [`events`] | `sim events`: wake-ups |
//! | [`tasks`] | `sim tasks`: task schedulers |
//! | [`mix`] | `sim mix`: conferences of calls |
//! | [`event_loop`] | `sim loop`: programs that are on time and hungry |
//! | [`cases`] | what threads do with the locks of [`antiphon_replay::locks`] |
//! | [`experiment`] | one lock in one case |
//! | [`sweep`] | many, on all CPUs |
//! | [`plan`], [`row`] | what is simulated, and a row of it, as reports have them |
//! | [`rows`], [`tables`], [`page`] | what came of it, for scripts and for people |
//! | [`report`] | the frame of a report, what all rows have, the names that are asked for |
//! | [`shard`], [`merge`] | a part of the rows, and parts together again |
//! | [`search`] | locks with other parameters, and which of them nothing beats |
//! | [`memory`] | `sim memory`: what the locks of ten million inodes take |
//! | [`timeline`] | locks by the year of their publication |
//! | [`trace`] | a simulation on a timeline |
//! | [`published`] | what others have measured |

pub mod calibrate;
mod cases;
pub mod clock;
pub mod event_loop;
pub mod events;
mod experiment;
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
mod sweep;
mod tables;
pub mod tasks;
mod timeline;
mod trace;
