//! The checker itself: what it explores, what it finds, and what it shows.

mod brute;
mod history;
mod linearizability;
mod litmus;
mod loom;
mod platform;
mod seeded;
mod shared;
