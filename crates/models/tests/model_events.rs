//! The event, the latch and the event count.

#[macro_use]
mod common;

antiphon_models::tests! { model_events: models }
