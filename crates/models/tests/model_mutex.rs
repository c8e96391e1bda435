//! The ShflLock mutex.

#[macro_use]
mod common;

antiphon_models::tests! { model_mutex: models }
