//! The script with which gdb shows locks: `antiphon locks --gdb`.
//!
//! It is written in gdb's Python and matches the library of this build: the offsets of the fields
//! of a waiter's node are filled in here.

use std::mem::offset_of;

use antiphon_linux::Linux;
use antiphon_platform::{Waiter, WaiterId};

type Node = Waiter<Linux>;

const SCRIPT: &str = include_str!("antiphon.py");

/// The text of the script.
pub fn script() -> String {
    let places = [
        ("@NODE@", size_of::<Node>()),
        ("@GENERATION@", offset_of!(Node, generation)),
        ("@NEXT@", offset_of!(Node, next)),
        ("@STATUS@", offset_of!(Node, status)),
        ("@WANTS@", offset_of!(Node, wants)),
        ("@INDEX_BITS@", WaiterId::INDEX_BITS as usize),
    ];
    places
        .iter()
        .fold(SCRIPT.to_owned(), |script, (name, value)| script.replace(name, &value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled_in() {
        let script = script();
        assert!(script.contains(&format!("NODE = {}\n", size_of::<Node>())), "{script}");
        assert!(!script.contains("= @") && SCRIPT.contains("= @"));
    }
}
