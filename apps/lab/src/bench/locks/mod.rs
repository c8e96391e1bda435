//! `bench locks` and `bench rwlocks`: mutual-exclusion locks, and readers-writer locks.
//!
//! | module | does |
//! |---|---|
//! | [`exclusive`], [`shared`] | the verbs, with the arguments of each family of locks |
//! | [`settings`] | the arguments that both families share, and the contents of their reports |
//! | [`survey`] | a short measurement of every lock |
//! | [`plan`] | the cells to measure |
//! | [`measure`] | one repetition |
//! | [`subjects`] | the locks |
//! | [`rows`] | the values of a row, and geometric means |
//! | [`waits`] | rules against waits that are too long |
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
