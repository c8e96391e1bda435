//! Backtraces of fibers and threads: parsing, filtering, and the places where fibers wait.

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::fmt;

use super::sources::Sources;

/// A place where fibers wait. Its `Display` lists all of its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The number of fibers that wait there.
    pub count: usize,
    /// Whether their waits have a deadline.
    pub has_deadline: bool,
    /// The calls from the wait down to the closure that the fibers run. Empty if too little of
    /// their stacks is left for a backtrace.
    pub frames: Vec<Frame>,
}

/// A frame of a backtrace: a function that has called the function above it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Frame {
    /// The name of the function.
    pub name: String,
    /// The file, line and column of the call, if they are known.
    pub place: Option<String>,
}

/// The backtrace of a thread: its functions, the innermost first. The `Display` lists those of the
/// task that the thread was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The frames, from the innermost to the first of the thread or fiber.
    pub frames: Vec<Frame>,
}

impl Place {
    /// Returns the first function that belongs neither to this crate nor to a lock's wrapper: the
    /// user's function.
    #[must_use]
    pub fn user(&self) -> Option<&Frame> {
        users(&self.frames)
    }

    /// Returns the function of this crate, or of `lock_api`, through which the user's function
    /// waits.
    #[must_use]
    pub fn by(&self) -> Option<&Frame> {
        self.frames.iter().take_while(|frame| frame.is_of_library()).last()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} wait{}:", self.count, until(self.has_deadline))?;
        write(f, &self.frames)
    }
}

impl Trace {
    /// Returns the frames of the task that are meaningful to users.
    pub(crate) fn telling(&self) -> Vec<Frame> {
        telling(self.frames.clone())
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_frames(f, &self.telling())
    }
}

/// Returns the text that describes whether a wait has a deadline.
pub(crate) fn until(has_deadline: bool) -> &'static str {
    if has_deadline { ", until a time at the latest" } else { "" }
}

/// Returns the first frame that belongs neither to this crate nor to a lock's wrapper.
pub(crate) fn users(frames: &[Frame]) -> Option<&Frame> {
    frames.iter().find(|frame| !frame.is_of_library())
}

/// Writes the frames of a waiting fiber.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, frames: &[Frame]) -> fmt::Result {
    if frames.is_empty() {
        return writeln!(f, "  too deep on its stack to say where");
    }
    write_frames(f, frames)
}

/// Writes each frame and its place on separate lines.
fn write_frames(f: &mut fmt::Formatter<'_>, frames: &[Frame]) -> fmt::Result {
    frames.iter().try_for_each(|frame| {
        writeln!(f, "  {}", frame.name)?;
        frame.place.as_ref().map_or(Ok(()), |place| writeln!(f, "    {place}"))
    })
}

/// Returns the places of waits, the most frequent place first. Each wait is given by its backtrace
/// and whether it has a deadline.
pub(crate) fn places<'a>(waits: impl Iterator<Item = (Option<&'a Backtrace>, bool)>) -> Vec<Place> {
    let mut counts: HashMap<_, usize> = HashMap::new();
    for (backtrace, has_deadline) in waits {
        *counts.entry((of(backtrace), has_deadline)).or_default() += 1;
    }
    let place = |((frames, has_deadline), count)| Place { count, has_deadline, frames };
    let mut places: Vec<_> = counts.into_iter().map(place).collect();
    places.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.frames.cmp(&b.frames)));
    places
}

/// Returns the frames of a fiber's backtrace that are meaningful to users.
pub(crate) fn of(backtrace: Option<&Backtrace>) -> Vec<Frame> {
    let Some(backtrace) = backtrace else { return Vec::new() };
    telling(parsed(&backtrace.to_string()))
}

/// Parses the text of a backtrace: each frame has a number and a name, and its place on the next
/// line.
pub(crate) fn parsed(text: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.split_once(": ").filter(|(number, _)| number.parse::<u32>().is_ok()) {
            Some((_, name)) => frames.push(Frame { name: name.to_owned(), place: None }),
            None => {
                if let Some(last) = frames.last_mut() {
                    last.place = Some(line.to_owned());
                }
            }
        }
    }
    frames
}

/// Returns the frames of the fiber or thread that are meaningful to users.
fn telling(frames: Vec<Frame>) -> Vec<Frame> {
    telling_by(Sources::get(), frames)
}

fn telling_by(sources: &Sources, mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.truncate(end_of_fiber(&frames));
    for frame in &mut frames {
        if let Some(name) = sources.full_name(frame) {
            frame.name = name;
        }
    }
    frames.retain(|frame| !frame.is_ours());
    frames
}

/// Returns the number of frames down to the closure that the fiber runs; the frames below call it.
fn end_of_fiber(frames: &[Frame]) -> usize {
    let below = |frames: &[Frame], what| frames.iter().rposition(|frame| frame.is(what));
    // The thread's frames are below those of the fiber.
    let end = frames.iter().position(|frame| frame.is(BEGINS)).unwrap_or(frames.len());
    // The code that runs a task catches panics, and so does the task.
    let task = below(&frames[..end], CATCHES).unwrap_or(end);
    below(&frames[..task], CATCHES).unwrap_or(task)
}

/// The first function on a fiber's stack.
const BEGINS: &str = "fiber_begins_here";
/// The function of `std` that calls a closure whose panics are caught.
const CATCHES: &str = "do_call";

impl Frame {
    /// Returns whether it is a function of that name, in any module. In a program with only line
    /// tables, no more is known.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.own().rsplit("::").next() == Some(name)
    }

    /// Returns the function's name, without its type arguments.
    pub(crate) fn own(&self) -> &str {
        self.name.split('<').next().unwrap_or_default()
    }

    /// Returns whether its name has no module, as in a program with only line tables.
    pub(crate) fn is_bare(&self) -> bool {
        !self.name.starts_with('<') && !self.own().contains("::")
    }

    /// Returns whether it means nothing to users: it is part of the implementation of a wait, or
    /// has called their closure.
    fn is_ours(&self) -> bool {
        self.begins_with(&OURS) || self.place.as_deref().is_some_and(is_of_rust)
    }

    /// Returns whether it belongs to the library code through which users wait, not to their own.
    fn is_of_library(&self) -> bool {
        self.begins_with(&LIBRARY)
    }

    fn begins_with(&self, prefixes: &[&str]) -> bool {
        let is = |name: &str, all: &[&str]| all.iter().any(|prefix| name.starts_with(prefix));
        let name = self.name.trim_start_matches('<');
        // A user's trait that is implemented for a type of the library.
        let is_theirs = name.len() < self.name.len()
            && name.split_once(" as ").is_some_and(|(_, of)| !is(of, &OURS) && !is(of, &LIBRARY));
        !is_theirs && is(name, prefixes)
    }
}

/// Returns whether a file belongs to Rust's library: `/rustc/HASH/library/…`, or its path in
/// `rust-src` or in a distribution.
fn is_of_rust(place: &str) -> bool {
    let of_rustc =
        || place.split_once("/rustc").is_some_and(|(_, rest)| rest.contains("/library/"));
    place.contains("/rust/library/") || of_rustc()
}

const OURS: [&str; 19] = [
    "antiphon_linux::",
    "antiphon_platform::",
    "antiphon_runtime::",
    "antiphon_sim::",
    "antiphon_sync::",
    "antiphon::budget::",
    "antiphon::fiber::",
    "antiphon::observe::",
    "antiphon::pool::Pool<",
    "antiphon::pool::here::",
    "antiphon::pool::builder::",
    "antiphon::pool::ledger::",
    "antiphon::pool::shared::",
    "antiphon::worker::",
    "antiphon::stage::Shared<",
    "alloc::",
    "core::",
    "std::",
    "__rust",
];

const LIBRARY: [&str; 4] = ["antiphon::", "antiphon_clock::", "antiphon_shared::", "lock_api::"];

#[cfg(test)]
mod tests {
    use super::super::sources::directory;
    use super::*;

    const TEXT: &str = "\
   0: antiphon_linux::park::park
             at ./crates/linux/src/park.rs:1:1
   1: suspend<antiphon::Mutex>
             at /srv/build/SRCfiber/hooks.rs:175:18
   1: wait
             at /srv/build/SRCevent.rs:153:16
   2: lock_api::mutex::Mutex<R,T>::lock
   3: bank::transfer
             at ./src/main.rs:7:9
   4: bank::main::{{closure}}
   5: std::panicking::try::do_call
   6: std::panicking::try::do_call::h1
   7: std::panicking::try::do_call
   8: fiber_begins_here
   9: main";

    #[test]
    fn a_place_is_named_by_who_waits_and_by_what() {
        let frames = parsed(&TEXT.replace("SRC", directory(file!())));
        assert_eq!(frames.len(), 11);
        let frames = telling_by(&Sources::of_a_test("/srv/build/"), frames);
        let place = Place { count: 1, has_deadline: false, frames };
        assert_eq!(place.user().map(|frame| frame.name.as_str()), Some("bank::transfer"));
        let by = place.by().expect("it waits by something");
        assert_eq!((by.name.as_str(), &by.place), ("lock_api::mutex::Mutex<R,T>::lock", &None));
        assert!(
            place.to_string().starts_with("1 wait:\n  antiphon::event::wait\n    at /srv"),
            "{place}"
        );
        assert!(place.to_string().ends_with("{{closure}}\n"), "{place}");
    }

    #[test]
    fn users_functions_are_not_taken_for_the_librarys() {
        for name in [
            "antiphon_demo::main",
            "antiphon_demo",
            "server::antiphon::fiber::waits",
            "<antiphon::event::Latch as server::Gate>::passes",
            "suspend<antiphon::fiber::Fiber>",
        ] {
            let place = Some("at /srv/who/src/fiber.rs:179:9".to_owned());
            let frames = telling(vec![Frame { name: name.into(), place }]);
            let place = Place { count: 1, has_deadline: false, frames };
            assert_eq!(place.user().map(|frame| frame.name.as_str()), Some(name));
        }
        for name in ["<antiphon::A as core::fmt::Debug>::fmt", "<lock_api::A as antiphon::B>::c"] {
            assert!(Frame { name: name.into(), place: None }.is_of_library(), "{name}");
        }
    }

    #[test]
    fn what_is_too_deep_has_no_user() {
        let place = Place { count: 3, has_deadline: true, frames: Vec::new() };
        assert_eq!((place.user(), place.by()), (None, None));
        assert!(place.to_string().contains("until a time") && place.to_string().contains("deep"));
    }

    #[test]
    fn a_folder_of_the_users_is_not_rusts() {
        for place in [
            "at /rustc/4c4205163abcbd08/library/core/src/ops/function.rs:1:5",
            "at /srv/library/rustup/lib/rustlib/src/rust/library/std/src/lib.rs:1:5",
            "at /usr/src/rustc-1.85.0/library/std/src/lib.rs:1:5",
        ] {
            assert!(is_of_rust(place), "{place}");
        }
        assert!(!is_of_rust("at /srv/who/library/src/loans.rs:7:9"));
    }
}
