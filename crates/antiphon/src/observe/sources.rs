//! Finds the frames that belong to the library in a program that has only line tables: function
//! names have no module there (`wait`), and only the file shows whose function it is.
//!
//! The paths of the library's files, as the program's debug information has them, are taken from a
//! backtrace of our own. So this works for remapped paths, and for sources built in any directory;
//! and a user's `src/fiber.rs` is recognized as the user's.
//!
//! | | |
//! |---|---|
//! | a crate's file, as its compiler saw it | `crates/antiphon/src/observe/sources.rs` |
//! | the same file in a backtrace | `/srv/build/crates/antiphon/src/observe/sources.rs` |
//! | the difference is the prefix of all files | `/srv/build/` |

use std::backtrace::Backtrace;
use std::env;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use lock_api::{GuardSend, RawMutex};

use super::frames::{Frame, parsed};
use crate::unpoisoned::lock;

/// One file of each crate in whose functions fibers wait.
const FILES: [(&str, &str); 5] = [
    ("antiphon", file!()),
    ("antiphon_linux", antiphon_linux::FILE),
    ("antiphon_platform", antiphon_platform::FILE),
    ("antiphon_runtime", antiphon_runtime::FILE),
    ("antiphon_sync", antiphon_sync::FILE),
];

/// Directories of sources, and the names of their crates.
#[derive(Debug)]
pub(crate) struct Sources(Vec<(String, &'static str)>);

impl Sources {
    /// Returns the directories in the running program.
    pub(crate) fn get() -> &'static Self {
        static SOURCES: OnceLock<Sources> = OnceLock::new();
        SOURCES.get_or_init(|| {
            let frames = parsed(&of_a_lock_of_ours().to_string());
            let mut places = frames.iter().skip_while(|frame| !is_here(frame));
            let ours = places.next().and_then(|frame| frame.place.as_deref());
            let locks = places.find(|frame| !is_here(frame));
            Self::told(ours, locks.and_then(|frame| frame.place.as_deref()), &FILES)
        })
    }

    /// `ours` is the place of a function of this file, `locks` the place of a function of
    /// lock_api's `mutex.rs`, if they are known.
    fn told(ours: Option<&str>, locks: Option<&str>, files: &[(&'static str, &str)]) -> Self {
        let before = ours.and_then(|place| file_of(place).strip_suffix(file!()).map(str::to_owned));
        // Absolute paths need no prefix.
        let before = before.or_else(|| file!().starts_with('/').then(String::new));
        let known = before.iter().flat_map(|before| {
            files.iter().map(move |(name, file)| (format!("{before}{}", directory(file)), *name))
        });
        let locks = locks.map(file_of).filter(|file| file.ends_with("/src/mutex.rs"));
        let locks = locks.map(|file| (directory(&file).to_owned(), "lock_api"));
        Self(known.chain(locks).collect())
    }

    #[cfg(test)]
    pub(crate) fn of_a_test(before: &str) -> Self {
        Self::told(Some(&format!("at {before}{}:1:1", file!())), None, &FILES)
    }

    /// Returns the name with its module, if the name has none and the function belongs to the
    /// library.
    pub(crate) fn full_name(&self, frame: &Frame) -> Option<String> {
        if !frame.is_bare() {
            return None;
        }
        let file = file_of(frame.place.as_deref()?);
        let (rest, name) = self.0.iter().find_map(|(directory, name)| {
            file.strip_prefix(directory.as_str()).map(|rest| (rest, name))
        })?;
        let module = rest.trim_end_matches(".rs");
        let module = module.strip_suffix("/mod").unwrap_or(module);
        let module = if module == "lib" { "" } else { module };
        let parts = module.split('/').filter(|part| !part.is_empty());
        let parts = [*name].into_iter().chain(parts).chain([frame.own()]);
        Some(parts.collect::<Vec<_>>().join("::"))
    }
}

/// Returns whether the frame belongs to a function of this file.
fn is_here(frame: &Frame) -> bool {
    frame.place.as_deref().is_some_and(|place| file_of(place).ends_with(file!()))
}

/// Returns the file of a place, which is `at FILE:LINE:COLUMN`. Backtraces cut off the program's
/// working directory.
fn file_of(place: &str) -> String {
    let mut file = place.strip_prefix("at ").unwrap_or(place);
    for _ in 0..2 {
        match file.rsplit_once(':') {
            Some((rest, number)) if number.parse::<u32>().is_ok() => file = rest,
            _ => break,
        }
    }
    match (file.strip_prefix("./"), env::current_dir()) {
        (Some(rest), Ok(here)) => Path::new(&here).join(rest).to_string_lossy().into_owned(),
        _ => file.to_owned(),
    }
}

/// Returns the path up to the `src` directory that contains the file.
pub(crate) fn directory(file: &str) -> &str {
    &file[..file.rfind("src/").map_or(0, |begin| begin + "src/".len())]
}

/// A lock that records a backtrace where it is locked.
struct Asks;

static TOLD: Mutex<Option<Backtrace>> = Mutex::new(None);

// SAFETY: it has no state, and excludes no thread: the only lock made of it guards `()`, on the
// stack of `of_a_lock_of_ours`.
unsafe impl RawMutex for Asks {
    const INIT: Self = Self;
    type Guard = GuardSend;

    #[inline(never)]
    fn lock(&self) -> GuardSend {
        *lock(&TOLD) = Some(Backtrace::force_capture());
        GuardSend::new()
    }

    fn try_lock(&self) -> Option<GuardSend> {
        None
    }

    unsafe fn unlock(&self, _: GuardSend) {}

    fn is_locked(&self) -> bool {
        false
    }
}

/// Returns a backtrace in which lock_api is called by this function, and calls a lock of this file.
fn of_a_lock_of_ours() -> Backtrace {
    drop(black_box(lock_api::Mutex::<Asks, ()>::new(())).lock());
    lock(&TOLD).take().unwrap_or_else(Backtrace::disabled)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_OTHERS: [(&str, &str); 2] =
        [("antiphon", file!()), ("antiphon_sync", "crates/sync/src/lib.rs")];

    fn sources() -> Sources {
        let ours = format!("at /srv/build/{}:30:9", file!());
        Sources::told(Some(&ours), Some("at /who/lock_api-0.5.0/src/mutex.rs:253:30"), &OF_OTHERS)
    }

    fn named(name: &str, place: &str) -> Option<String> {
        let frame = Frame { name: name.into(), place: Some(format!("at {place}")) };
        sources().full_name(&frame)
    }

    #[test]
    fn bare_names_of_the_library_have_their_modules() {
        let ours = directory(file!());
        for (name, place, full) in [
            ("wait", &format!("/srv/build/{ours}event.rs:160:16") as &str, "antiphon::event::wait"),
            ("suspend", &format!("/srv/build/{ours}fiber/mod.rs:1"), "antiphon::fiber::suspend"),
            ("a<b::C>", "/srv/build/crates/sync/src/lib.rs:1:1", "antiphon_sync::a"),
            ("lock<A, i32>", "/who/lock_api-0.5.0/src/mutex.rs:1:1", "lock_api::mutex::lock"),
        ] {
            assert_eq!(named(name, place).as_deref(), Some(full), "{place}");
        }
    }

    #[test]
    fn users_have_files_of_such_names() {
        for place in [
            "./src/fiber.rs:7:9",
            "/srv/who/src/fiber.rs:7:9",
            "/srv/who/crates/sync/src/lib.rs:7:9",
            "/srv/who/antiphon/src/event.rs:7:9",
            "/srv/who/antiphon-demo/src/main.rs:7:9",
            "/srv/build/src/main.rs:7:9",
            "/srv/build/crates/sync/tests/lib.rs:7:9",
        ] {
            assert_eq!(named("wait", place), None, "{place}");
        }
        assert_eq!(named("who::wait", "/srv/build/crates/sync/src/lib.rs:1:1"), None);
    }

    #[test]
    fn a_program_says_where_the_library_is() {
        let Sources(known) = Sources::get();
        assert_eq!(known.len(), FILES.len() + 1, "{known:?}");
        let ours = known.iter().find(|(_, name)| *name == "antiphon").expect("it is there");
        let file = Path::new(&ours.0).join("observe/sources.rs");
        assert!(file.is_file() || !file.is_absolute(), "{known:?}");
    }
}
