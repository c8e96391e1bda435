//! Once.

#[macro_use]
mod common;

antiphon_models::tests! { model_once: models }
