//! `sim`: machines that are simulated.
//!
//! | module | has |
//! |---|---|
//! | [`find`] | a machine by its name, or by the path of its file |
//! | [`host`] | this machine as a machine file |
//! | [`machines`] | `sim machines`: the list, and one of them whole |

mod find;
mod host;
pub mod machines;
