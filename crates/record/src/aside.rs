//! Programs that have loaded the preload library but replace nothing, because of a tool in them
//! that knows only the C library's locks.
//!
//! Such a program is in the table of programs, under its path and the tool's name in brackets:
//! `/usr/bin/program (helgrind)`. A record of the table only has room for a path, which a report
//! prints.

use crate::layout::PROGRAM_BYTES;
use crate::{HandedOn, Writer};

/// A tool under which nothing is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The runtime of `-fsanitize=thread`.
    ThreadSanitizer,
    /// `valgrind --tool=helgrind`.
    Helgrind,
    /// `valgrind --tool=drd`.
    Drd,
}

impl Tool {
    /// All tools.
    pub const ALL: [Self; 3] = [Self::ThreadSanitizer, Self::Helgrind, Self::Drd];

    /// The suffix of the path of a program with this tool.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::ThreadSanitizer => " (ThreadSanitizer)",
            Self::Helgrind => " (helgrind)",
            Self::Drd => " (drd)",
        }
    }
}

/// Splits the recorded path of a program into path and tool; `None` if it names no tool.
#[must_use]
pub fn split(path: &str) -> Option<(&str, Tool)> {
    Tool::ALL.into_iter().find_map(|tool| Some((path.strip_suffix(tool.suffix())?, tool)))
}

impl Writer {
    /// Counts that the program at `path`, which is absolute and run by `user` and `group`, has
    /// loaded the library and replaces nothing because of `tool`.
    pub fn stepped_aside(self, path: &[u8], tool: Tool, user: u32, group: u32) {
        let suffix = tool.suffix().as_bytes();
        let mut named = [0; PROGRAM_BYTES];
        let length = path.len() + suffix.len();
        let whole = !path.is_empty() && length <= named.len();
        if whole {
            named[..path.len()].copy_from_slice(path);
            named[path.len()..length].copy_from_slice(suffix);
        }
        // A program without a path is counted without its name.
        self.executes(&named[..if whole { length } else { 0 }], user, group, HandedOn::Aside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_comes_apart_from_the_tool() {
        for tool in Tool::ALL {
            assert_eq!(split(&format!("/a/b{}", tool.suffix())), Some(("/a/b", tool)));
        }
        assert_eq!(split("/a/b"), None);
    }
}
