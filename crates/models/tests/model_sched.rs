//! Workers.

#[macro_use]
mod common;

antiphon_models::tests! { model_sched: models }
