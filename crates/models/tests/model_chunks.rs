//! The chunks of events of a recording.

#[macro_use]
mod common;

antiphon_models::tests! { model_chunks: models }
