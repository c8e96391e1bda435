//! The environment by which a program comes to have the preload library, and what was there before.

use crate::{VARIABLE, door, sites};

/// Which lock the library has.
pub const LOCK: &str = "ANTIPHON_LOCK";

/// Set to `0`: the library is for the program that it is preloaded into alone, not for what that
/// executes. At load it puts the environment back.
pub const CHILDREN: &str = "ANTIPHON_CHILDREN";

/// All variables that may be set to preload the library.
pub const SET: [&str; 6] =
    ["LD_PRELOAD", LOCK, VARIABLE, sites::VARIABLE, CHILDREN, door::VARIABLE];

/// Before a name of [`SET`]: what that variable was before.
pub const BEFORE: &str = "ANTIPHON_BEFORE_";
