//! The semaphore.

#[macro_use]
mod common;

antiphon_models::tests! { model_semaphore: models }
