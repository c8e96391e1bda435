//! Looks up the state of single threads while they run, by reading a few words of the file.

use std::collections::HashMap;
use std::io;

use crate::Recording;
use crate::layout::{PROCESS, THREAD, address_key};
use crate::namespace::is_elsewhere;
use crate::table::path;

/// Records that are read by one system call: in a table that many threads have filled, most
/// look-ups pass some dozens in each piece.
const AT_ONCE: usize = 16;

/// Looks up threads of the processes that wrote before this object was created, and whose ids are
/// valid in the reader's namespace.
#[derive(Debug)]
pub struct Lookout<'a> {
    recording: &'a Recording,
    /// By process id: beginning and record. Of several processes with one id, the latest, which
    /// exists now.
    processes: HashMap<u32, (u64, u64)>,
}

/// The state of a thread's waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whether the thread waits now.
    pub waits: bool,
    /// Number of its waits that have ended.
    pub ended: u64,
}

impl State {
    /// Returns whether there was a wait between an earlier look-up and this one, or during one of
    /// them. If the thread slept meanwhile, it was in that wait or close to it.
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

    /// The state of thread `tid` of process `pid`, by the ids of the processes that wrote. Without
    /// a record, it is the state of a thread that never waited.
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
