//! The locks to compare with.

#[macro_use]
mod common;

antiphon_models::tests! { model_classic: models }
