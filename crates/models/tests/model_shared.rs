//! What several processes share.

#[macro_use]
mod common;

antiphon_models::tests! { model_shared: models }
