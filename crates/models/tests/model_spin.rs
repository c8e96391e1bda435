//! The ShflLock spinlock.

#[macro_use]
mod common;

antiphon_models::tests! { model_spin: models }
