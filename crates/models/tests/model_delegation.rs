//! Locks whose sections other threads run.

#[macro_use]
mod common;

antiphon_models::tests! { model_delegation: models }
