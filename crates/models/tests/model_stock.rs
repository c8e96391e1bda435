//! The kernel's locks.

#[macro_use]
mod common;

antiphon_models::tests! { model_stock: models }
