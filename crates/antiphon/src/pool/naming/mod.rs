//! Backtraces of threads that do not answer: a signal handler copies the thread's stack, the frames
//! are found in the copy, and their names in the program's tables.

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
    // SAFETY: promised by the caller.
    let take = |glances: Glances| unsafe { glances.take(thread, top, answer) };
    let glance = Glances::new().and_then(take).ok()?;
    // A thread at an address whose caller no table gives, such as in the kernel's clock page
    // (vDSO), can't be named: it will be somewhere else the next time.
    Some(unwind::addresses(&glance)).filter(|addresses| addresses.len() > 1)
}

fn name(addresses: &[u64]) -> Vec<Frame> {
    // As `std` shows paths: below the working directory, relative to it.
    let here = env::current_dir().unwrap_or_default();
    let shown = |path: &Path| match path.strip_prefix(&here) {
        Ok(below) => Path::new(".").join(below).display().to_string(),
        Err(_) => path.display().to_string(),
    };
    let mut frames = Vec::new();
    for (number, &address) in addresses.iter().enumerate() {
        // `resolve` looks up the byte before its address, to find the call: it expects return
        // addresses. The first address, where the thread was, is not a return address.
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
