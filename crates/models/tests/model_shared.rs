//! What several processes share, and several loops.

#[macro_use]
mod common;

antiphon_models::tests! { model_shared: models }
