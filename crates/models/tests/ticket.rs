//! The ticket lock.

#[macro_use]
mod common;

models! {
    ["ticket"];
    excludes: ["ticket/excludes-"],
}
