//! The condition variable.

#[macro_use]
mod common;

antiphon_models::tests! { model_condvar: models }
