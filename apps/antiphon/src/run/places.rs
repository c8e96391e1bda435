//! The functions in which threads sleep in a futex, as the sampler sees them.
//!
//! The kernel shows the address of the call beside the call (`/proc/PID/task/TID/syscall`), and the
//! file that is mapped there (`/proc/PID/maps`). Few functions call it themselves. Of these, some
//! tell what the thread waits for: a barrier, or a lock of the C library.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::symbols::Symbols;

/// The functions that tell what a thread waits for.
pub const FUNCTIONS: [&str; 2] = [BARRIER, PRIVATE];
/// The wait for the other threads of a barrier.
pub const BARRIER: &str = "pthread_barrier_wait";
/// The wait for a lock of the C library itself: of its heap, of a stream, of its tables.
pub const PRIVATE: &str = "__lll_lock_wait_private";

/// The sleep of a thread in one function.
#[derive(Clone, Debug, PartialEq)]
pub struct Slept {
    /// Its process.
    pub pid: u32,
    /// The kernel's id.
    pub tid: u32,
    /// One of [`FUNCTIONS`].
    pub function: &'static str,
    /// Seconds of the sleep.
    pub slept_s: f64,
}

impl Slept {
    /// The sleep in a JSON report.
    pub fn json(&self) -> Value {
        json!({
            "pid": self.pid, "tid": self.tid, "function": self.function, "slept_s": self.slept_s,
        })
    }
}

/// A position in a mapped file: its path and the offset.
type Position = (String, u64);

/// The sleeps in futexes so far.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The positions of the calls that were seen, by process and address; `None` outside of files.
    known: HashMap<(u32, u64), Option<Position>>,
    /// The sleeps by process, thread and address of the call.
    slept: HashMap<(u32, u32, u64), Duration>,
}

impl Places {
    /// Adds a sample: the thread has slept for `since` in the call of that line.
    pub fn add(&mut self, (pid, tid): (u32, u32), line: &str, since: Duration) {
        let Some(address) = address(line) else { return };
        self.known.entry((pid, address)).or_insert_with(|| {
            // A process that has ended has no mappings.
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            position(&maps, address)
        });
        *self.slept.entry((pid, tid, address)).or_default() += since;
    }

    /// The sleeps in functions that tell what a thread waits for.
    pub fn named(&self, symbols: &mut Symbols) -> Vec<Slept> {
        let mut functions: HashMap<(u32, u64), &'static str> = HashMap::new();
        for (&call, position) in &self.known {
            let Some((path, offset)) = position else { continue };
            let mut is_in = |name: &str| {
                symbols.function(path, name).iter().any(|range| range.contains(offset))
            };
            let function = FUNCTIONS.into_iter().find(|name| is_in(name));
            functions.extend(function.map(|function| (call, function)));
        }
        let sleep = |(&(pid, tid, address), time): (&(u32, u32, u64), &Duration)| {
            let function = functions.get(&(pid, address))?;
            Some(Slept { pid, tid, function, slept_s: time.as_secs_f64() })
        };
        let mut all: Vec<_> = self.slept.iter().filter_map(sleep).collect();
        all.sort_by_key(|slept| (slept.pid, slept.tid, slept.function));
        all
    }
}

/// The address to which the call of a line of `syscall` returns: its last word.
fn address(line: &str) -> Option<u64> {
    u64::from_str_radix(line.split_ascii_whitespace().last()?.strip_prefix("0x")?, 16).ok()
}

/// The position of an address in the text of `maps`.
fn position(maps: &str, address: u64) -> Option<Position> {
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (first, end) = range.split_once('-')?;
        let (first, end) = (hex(first)?, hex(end)?);
        if !(first..end).contains(&address) {
            return None;
        }
        let offset = hex(rest.split_ascii_whitespace().nth(1)?)?;
        let path = rest.find('/').map(|at| rest[at..].to_owned())?;
        Some((path, address - first + offset))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "5600-5700 r-xp 00001000 fe:00 12 /a b/program\n\
                        7000-7100 rw-p 00000000 00:00 0 \n\
                        7f00-8000 r-xp 00026000 fe:00 13 /lib/libc.so.6\n";

    #[test]
    fn an_address_is_in_a_file() {
        assert_eq!(position(MAPS, 0x5610), Some(("/a b/program".to_owned(), 0x1010)));
        assert_eq!(position(MAPS, 0x7f01), Some(("/lib/libc.so.6".to_owned(), 0x26001)));
        assert_eq!((position(MAPS, 0x7010), position(MAPS, 0x8000)), (None, None));
        assert_eq!(address("202 0x1 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f01\n"), Some(0x7f01));
        assert_eq!(address("running"), None);
    }

    #[test]
    fn the_function_of_a_call_is_named_by_its_file() {
        // The test's own copy of the C library: an address in a function of it.
        let inside = libc::pthread_barrier_wait as *const () as u64 + 1;
        let mut places = Places::default();
        for tid in [7, 7, 8] {
            let line = format!("202 0x1 0x80 0x2 0x0 0x0 0x0 0x7ffd {inside:#x}");
            places.add((std::process::id(), tid), &line, Duration::from_millis(500));
        }
        places.add((std::process::id(), 9), "202 0x0 0x1", Duration::from_millis(500));
        let named = places.named(&mut Symbols::default());
        assert!(named.iter().all(|slept| slept.function == BARRIER), "{named:?}");
        let times: Vec<_> = named.iter().map(|slept| (slept.tid, slept.slept_s)).collect();
        assert_eq!(times, [(7, 1.0), (8, 0.5)]);
    }
}
