//! CST locks.

#[macro_use]
mod common;

antiphon_models::tests! { model_cst: models }
