//! `bench locks` and `bench rwlocks`: mutual-exclusion locks, and readers-writer locks.
//!
//! | module | does |
//! |---|---|
//! | [`exclusive`], [`shared`] | the verbs: what may be asked of each family of locks |
//! | [`settings`] | what both families may be asked, and what their reports have |
//! | [`survey`] | a small measurement of every lock |
//! | [`plan`] | which cells |
//! | [`measure`] | what a repetition does |
//! | [`subjects`] | the locks |
//! | [`rows`] | what a row has, and geometric means |
//! | [`waits`] | whether any thread waits too long for it |
//! | [`tables`] | the columns of tables |

pub mod exclusive;
mod measure;
mod plan;
mod rows;
mod settings;
pub mod shared;
pub mod subjects;
pub mod survey;
mod tables;
mod waits;

pub use measure::{Order, measure};
pub use subjects::Family;
