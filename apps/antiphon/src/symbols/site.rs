//! A call site in readable form: the function, its file and line, and the functions inlined there.

use serde_json::{Value, json};

use super::short::short;

/// Where a lock function was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSite {
    /// `function+0x1f (module)`, or `module+0x1234` where the functions have no names. It
    /// identifies the site, and `--sites` takes it.
    pub name: String,
    /// `module+0x1234`, which `--sites` takes, too.
    pub place: String,
    /// The functions at the call, the innermost first: each is inlined into the next, and the last
    /// is the compiled function. Empty without debug information.
    pub frames: Vec<Frame>,
    /// If all of the frames only wrap the lock: the function of the program that caused most of the
    /// waiting.
    pub caller: Option<Frame>,
    /// Whether other functions of the program caused waiting, too.
    pub has_other_callers: bool,
}

/// A function at a call site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name in the notation of its language.
    pub function: String,
    /// The path of its source file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

impl CallSite {
    /// A site about which nothing is known.
    pub const NOWHERE: Self = Self {
        name: String::new(),
        place: String::new(),
        frames: Vec::new(),
        caller: None,
        has_other_callers: false,
    };

    /// A site of which only a name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The function that a reader looks for: the innermost one that belongs to the program. A
    /// wrapper from a library's header (`std::lock_guard`) is the same for all locks.
    pub fn own(&self) -> Option<&Frame> {
        let own = self.frames.iter().find(|frame| !frame.is_of_a_library());
        own.or(self.caller.as_ref()).or(self.frames.last())
    }

    /// Whether all functions at the site belong to a library.
    pub fn is_of_a_library(&self) -> bool {
        !self.frames.is_empty() && self.frames.iter().all(Frame::is_of_a_library)
    }

    /// The site for a row of a table or a sentence: `Log::add server.cpp:13`, with the function
    /// shortened. Without lines, its name.
    pub fn label(&self) -> String {
        match self.own() {
            Some(frame) if frame.file.is_some() => {
                frame.label() + if self.has_other_callers { " and others" } else { "" }
            }
            _ => self.name.clone(),
        }
    }

    /// The site in full, in lines: its name and place, and all functions there with their whole
    /// names and paths.
    pub fn wide(&self) -> Vec<String> {
        let place = if self.place == self.name { "" } else { &*self.place };
        let first = format!("{} {place}", self.name);
        let frames = self.frames.iter().map(|frame| format!("  {}", frame.whole()));
        [first.trim_end().to_owned()].into_iter().chain(frames).collect()
    }

    /// The keys of the site in a JSON report: the function that a reader looks for, and all
    /// functions.
    pub fn json(&self) -> Value {
        let own = self.own();
        json!({
            "site": self.name,
            "place": self.place,
            "function": own.map(|frame| &frame.function),
            "file": own.and_then(|frame| frame.file.as_ref()),
            "line": own.and_then(|frame| frame.line),
            "frames": self.frames.iter().map(Frame::json).collect::<Vec<_>>(),
        })
    }
}

/// The letters of a label, if the file's name leaves [`LEAST`] for that of the function.
const LETTERS: usize = 46;
const LEAST: usize = 16;

/// Parts of paths that belong to a compiler, a language or the system, not to a program.
const LIBRARIES: [&str; 7] = [
    "/usr/include/",
    "/usr/lib/gcc/",
    "/usr/lib/llvm",
    "/include/c++/",
    "/rustc/",
    "/library/std/src/",
    "/library/core/src/",
];

/// Namespaces of the standard libraries, for functions whose file is not known.
const NAMESPACES: [&str; 5] = ["std::", "__gnu_cxx::", "__gthread_", "core::", "alloc::"];

impl Frame {
    /// Whether the function belongs to a compiler, a language or the system.
    pub fn is_of_a_library(&self) -> bool {
        match &self.file {
            Some(file) => LIBRARIES.iter().any(|part| file.contains(part)),
            None => NAMESPACES.iter().any(|space| self.function.starts_with(space)),
        }
    }

    /// The function in a row of a table.
    pub fn label(&self) -> String {
        let path = self.file.as_deref().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or(path);
        let at = match self.line {
            Some(line) => format!(" {file}:{line}"),
            None => format!(" {file}"),
        };
        let letters = LETTERS.saturating_sub(at.chars().count()).max(LEAST);
        short(&self.function, letters) + &at
    }

    fn whole(&self) -> String {
        let file = self.file.as_deref().unwrap_or("?");
        match self.line {
            Some(line) => format!("{} {file}:{line}", self.function),
            None => format!("{} {file}", self.function),
        }
    }

    fn json(&self) -> Value {
        json!({ "function": self.function, "file": self.file, "line": self.line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame { function: function.to_owned(), file: Some(file.to_owned()), line: Some(line) }
    }

    fn site(frames: Vec<Frame>) -> CallSite {
        let (name, place) = ("run+0x1f (srv)".to_owned(), "srv+0x2b47".to_owned());
        CallSite { name, place, frames, ..CallSite::default() }
    }

    #[test]
    fn the_programs_own_function_is_named_and_not_the_wrapper() {
        let lock = frame("std::mutex::lock", "/usr/include/c++/12/bits/std_mutex.h", 100);
        let add = frame("Log::add", "/src/a/server.cpp", 13);
        let run = frame("main::{lambda()#1}::operator()", "/src/a/server.cpp", 15);
        let all = site(vec![lock.clone(), add.clone(), run]);
        assert_eq!(all.own(), Some(&add));
        assert_eq!(all.label(), "Log::add server.cpp:13");
        assert_eq!(all.wide()[0], "run+0x1f (srv) srv+0x2b47");
        assert_eq!(all.wide()[2], "  Log::add /src/a/server.cpp:13");
        let json = all.json();
        assert_eq!((&json["function"], &json["line"]), (&"Log::add".into(), &13.into()));
        assert_eq!(json["frames"][0]["function"], "std::mutex::lock");
        // Only wrappers: the compiled function.
        assert_eq!(site(vec![lock.clone()]).own(), Some(&lock));
    }

    #[test]
    fn without_lines_the_name_stands_for_the_site() {
        let bare = site(Vec::new());
        assert_eq!(bare.label(), bare.name);
        assert_eq!(bare.json()["function"], Value::Null);
        let unplaced = Frame { file: None, ..frame("std::f", "", 1) };
        assert!(unplaced.is_of_a_library() && site(vec![unplaced]).label() == bare.name);
    }
}
