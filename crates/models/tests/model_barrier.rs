//! The barrier.

#[macro_use]
mod common;

antiphon_models::tests! { model_barrier: models }
