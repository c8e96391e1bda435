//! The arena of waiter nodes.

#[macro_use]
mod common;

antiphon_models::tests! { model_arena: models }
