//! Queues.

#[macro_use]
mod common;

antiphon_models::tests! { model_queue: models }
