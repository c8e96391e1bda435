//! Where a thread is that does not answer: a copy of its stack is taken by a signal, its frames are
//! found in the copy, and their names in the program's tables.

mod unwind;

use std::env;
use std::ffi::c_void;
use std::io;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use antiphon_linux::glance::{Glances, Top};
use antiphon_platform::ThreadId;

use super::hogs::Namer;
use crate::observe::Frame;

pub(super) const NAMER: Namer = Namer { prepare, look, name };

fn prepare() -> io::Result<()> {
    Glances::new().map(|_| ())
}

/// # Safety
///
/// The conditions of [`Glances::take`].
unsafe fn look(thread: ThreadId, top: Top, answer: Duration) -> Option<Vec<u64>> {
    // SAFETY: the caller's.
    let take = |glances: Glances| unsafe { glances.take(thread, top, answer) };
    let glance = Glances::new().and_then(take).ok()?;
    // A thread that was where no table tells the caller, in the kernel's page of the clock, say,
    // can't be named: it is somewhere else the next time.
    Some(unwind::addresses(&glance)).filter(|addresses| addresses.len() > 1)
}

fn name(addresses: &[u64]) -> Vec<Frame> {
    // As `std` shows them: a path below the working directory begins there.
    let here = env::current_dir().unwrap_or_default();
    let shown = |path: &Path| match path.strip_prefix(&here) {
        Ok(below) => Path::new(".").join(below).display().to_string(),
        Err(_) => path.display().to_string(),
    };
    let mut frames = Vec::new();
    for (number, &address) in addresses.iter().enumerate() {
        // `resolve` looks right before the address that it is given: for the call, as other
        // addresses are those to return to. The first, where the thread was, is no such address.
        let address = address + u64::from(number == 0);
        let before = frames.len();
        backtrace::resolve(ptr::without_provenance_mut::<c_void>(address as usize), |symbol| {
            let name = symbol.name().map(|name| format!("{name:#}"));
            let line = |path: &Path| match (symbol.lineno(), symbol.colno()) {
                (Some(line), Some(column)) => format!("at {}:{line}:{column}", shown(path)),
                (Some(line), None) => format!("at {}:{line}", shown(path)),
                _ => format!("at {}", shown(path)),
            };
            let place = symbol.filename().map(line);
            let name = name.unwrap_or_else(|| format!("{address:#x}"));
            frames.push(Frame { name, place });
        });
        if frames.len() == before {
            frames.push(Frame { name: format!("{address:#x}"), place: None });
        }
    }
    frames
}
