//! What the published ShflLock code gets wrong.

#[macro_use]
mod common;

antiphon_models::tests! { model_defects: models }
