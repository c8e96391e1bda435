//! Loops that are raised while they are late, and their helper.

#[macro_use]
mod common;

antiphon_models::tests! { model_boost: models }
