//! Active messages.

#[macro_use]
mod common;

antiphon_models::tests! { model_message: models }
