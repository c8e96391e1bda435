//! Writing and reading of stacks of waiting threads, which belong to the row of the wait.

use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{FRAMES, Full, ROWS, StackRecord};
use crate::table::{Found, find, hash};
use crate::writer::{RowWriter, ThreadWriter, Writer};

/// A stack of a recording. Valid for as long as the file is mapped, in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackWriter(u32);

impl StackWriter {
    /// 1 + the index, as other records refer to it.
    pub(crate) fn number(self) -> u64 {
        u64::from(self.0) + 1
    }
}

/// Bit of a length: the frames are complete, up to where the thread began.
const WHOLE: u64 = 1 << 32;

/// Shortest time between two stacks of a thread, in nanoseconds.
const PAUSE_NS: u64 = 500_000;

impl Writer {
    /// Returns whether another stack of `thread` is due at `now_ns` of the monotonic clock. Never
    /// for a thread without a record.
    #[must_use]
    pub fn stack_is_due(self, thread: ThreadWriter, now_ns: u64) -> bool {
        self.record(thread)
            .is_some_and(|record| now_ns.saturating_sub(record.stack_ns.load(Relaxed)) >= PAUSE_NS)
    }

    /// Records that a stack of `thread` was taken, or could not be taken, at `now_ns`.
    pub fn stack_taken(self, thread: ThreadWriter, now_ns: u64) {
        if let Some(record) = self.record(thread) {
            record.stack_ns.store(now_ns, Relaxed);
        }
    }

    /// The stack at `row` with these callers: numbers of sites, the innermost caller first; `whole`
    /// if they reach to where the thread began. `None` if there is no room, or if the row is the
    /// common one.
    #[must_use]
    pub fn stack(self, row: RowWriter, callers: &[u32], whole: bool) -> Option<StackWriter> {
        if row.index() >= ROWS {
            return None;
        }
        let callers = &callers[..callers.len().min(FRAMES)];
        let length = callers.len() as u64 | if whole { WHOLE } else { 0 };
        let begin = hash(row.number()) ^ length;
        let key = callers.iter().fold(begin, |key, &site| hash(key ^ u64::from(site))) | 1;
        let stacks = &self.map.stacks;
        let index = match find(stacks, key, |record| &record.key) {
            Found::Old(index) => index,
            Found::New(index) => {
                let record = stacks.get(index)?;
                for (word, pair) in record.frames.iter().zip(callers.chunks(2)) {
                    let second = pair.get(1).map_or(0, |&site| u64::from(site) << 32);
                    word.store(u64::from(pair[0]) | second, Relaxed);
                }
                record.length.store(length, Relaxed);
                record.row.store(row.number(), Relaxed);
                index
            }
            Found::Full => {
                self.dropped(Full::Stacks);
                return None;
            }
        };
        Some(StackWriter(u32::try_from(index).ok()?))
    }

    /// Counts a wait with that stack, which lasted `waited_ns`.
    pub fn stack_ends(self, StackWriter(stack): StackWriter, waited_ns: u64) {
        if let Some(record) = self.map.stacks.get(stack as usize) {
            record.waits.fetch_add(1, Relaxed);
            record.wait_ns.fetch_add(waited_ns, Relaxed);
        }
    }
}

/// Reads a record: 1 + its row, the numbers of its sites, and whether these are complete.
pub(crate) fn read(record: &[u64]) -> (u64, Vec<u64>, bool) {
    let at = core::mem::offset_of!(StackRecord, frames) / 8;
    let count = (record[2] & (WHOLE - 1)).min(FRAMES as u64) as usize;
    let half = |number: usize| record[at + number / 2] >> (32 * (number % 2)) & (WHOLE - 1);
    (record[1], (0..count).map(half).collect(), record[2] & WHOLE != 0)
}
