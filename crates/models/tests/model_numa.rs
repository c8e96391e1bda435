//! The NUMA-aware locks to compare with.

#[macro_use]
mod common;

antiphon_models::tests! { model_numa: models }
