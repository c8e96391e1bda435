//! The ShflLock readers-writer lock.

#[macro_use]
mod common;

antiphon_models::tests! { model_rw: models }
