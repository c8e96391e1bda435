//! `antiphon-lab sim`: what its families print, and what they refuse.

#[path = "../common/mod.rs"]
mod common;

mod event_loop;
mod events;
mod guests;
mod locks;
mod machines;
mod merge;
mod mix;
mod tasks;
