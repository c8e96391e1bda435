//! A crate of the registry, compiled with the `std` of this package's dependencies. The build
//! script takes its files from the registry's copy on this machine.

#![allow(warnings, reason = "as Cargo has it for crates of the registry")]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));

/// How many lines of code the crate's files have, without files and modules of tests; how many of
/// them were changed; and how many were left out: attributes of the whole crate, which an included
/// file can't have.
pub const PORTED: [&str; 3] =
    [env!("PORTED_LINES"), env!("PORTED_CHANGED"), env!("PORTED_LEFT_OUT")];
