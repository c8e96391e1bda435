//! Single threads, looked up while they run: a few words of the file instead of all.

use std::collections::HashMap;
use std::io;

use crate::Recording;
use crate::layout::{PROCESS, THREAD, address_key};
use crate::namespace::is_elsewhere;
use crate::table::path;

/// Records that are read by one system call: of a table that many threads have filled, most looks
/// pass by some dozens in each piece.
const AT_ONCE: usize = 16;

/// Looks up threads of the processes that wrote before it was made, and whose ids mean the same
/// here.
#[derive(Debug)]
pub struct Lookout<'a> {
    recording: &'a Recording,
    /// By process id: when it began, and its record. Of several the last, which is there now.
    processes: HashMap<u32, (u64, u64)>,
}

/// Where a thread stands with its waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether it waits.
    pub waits: bool,
    /// How many of its waits have ended.
    pub ended: u64,
}

impl State {
    /// Whether there was a wait between an earlier look and this one, or at one of them. Whatever a
    /// thread slept in meanwhile was that wait, or next to it.
    #[must_use]
    pub fn waited_since(self, earlier: Self) -> bool {
        self.waits || earlier.waits || self.ended != earlier.ended
    }
}

impl<'a> Lookout<'a> {
    pub(crate) fn new(recording: &'a Recording) -> io::Result<Self> {
        let mut processes = HashMap::new();
        for (index, record) in recording.table(PROCESS)?.records() {
            if record[0] != 0 && !is_elsewhere(record[4]) {
                let latest = processes.entry(record[0] as u32).or_default();
                *latest = (record[2], index).max(*latest);
            }
        }
        Ok(Self { recording, processes })
    }

    /// The state of thread `tid` of process `pid`, in the ids of the processes that wrote. Without
    /// a record it is that of a thread that never waited.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn state(&self, pid: u32, tid: u32) -> io::Result<State> {
        let Some(&(_, process)) = self.processes.get(&pid) else { return Ok(State::default()) };
        let key = address_key(process, 0, u64::from(tid));
        for (begin, records) in THREAD.pieces() {
            let mut path = path(key, records);
            while let Some(at) = path.next() {
                let count = AT_ONCE.min(records - at);
                let window = self.recording.consecutive(THREAD, begin + at, count)?;
                for (step, record) in window.chunks(THREAD.words).enumerate() {
                    if step > 0 && path.next().is_none() {
                        break;
                    }
                    if record[0] == key {
                        return Ok(State { waits: record[5] != 0, ended: record[4] });
                    }
                    if record[0] == 0 {
                        return Ok(State::default());
                    }
                }
            }
        }
        Ok(State::default())
    }
}
