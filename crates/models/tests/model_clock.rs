//! Clocks, and transactions that are ordered by them.

#[macro_use]
mod common;

antiphon_models::tests! { model_clock: models }
