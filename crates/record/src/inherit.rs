//! Environment variables that preload the library into a program, and their earlier values.

use crate::{VARIABLE, door, sites};

/// Selects the lock of the library.
pub const LOCK: &str = "ANTIPHON_LOCK";

/// Set to `0`, the library is only for the program that it is preloaded into, not for programs that
/// this one executes. At load it restores the environment.
pub const CHILDREN: &str = "ANTIPHON_CHILDREN";

/// All variables that may be set to preload the library.
pub const SET: [&str; 6] =
    ["LD_PRELOAD", LOCK, VARIABLE, sites::VARIABLE, CHILDREN, door::VARIABLE];

/// Prefix of a name of [`SET`], for the earlier value of that variable.
pub const BEFORE: &str = "ANTIPHON_BEFORE_";
