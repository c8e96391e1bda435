//! The ticket lock.

#[macro_use]
mod common;

antiphon_models::tests! { model_ticket: models }
