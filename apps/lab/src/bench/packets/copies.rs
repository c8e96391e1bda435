//! Copies of packets, and where their memory comes from.
//!
//! A packet is longer than what glibc keeps for each thread, and often freed by another than the
//! one that has made it: each of the two then takes the lock of the arena that it came from. So
//! memory may be used again in place of that, as DPDK's pools of packets have it: each thread keeps
//! a few, and leaves a batch to the others when it has many.

use std::cell::RefCell;
use std::mem::take;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The origin of the memory of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Copies {
    /// Memory of the allocator, for each packet
    Allocated,
    /// Memory of a packet that is over
    Reused,
}

/// The copy of a packet.
pub struct Copied {
    bytes: Vec<u8>,
    of: Copies,
}

/// A thread has twice as many at most.
const BATCH: usize = 32;

thread_local! {
    static MINE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

static ALL: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

impl Copies {
    /// A copy of `bytes`.
    pub fn copy(self, bytes: &[u8]) -> Copied {
        let mut memory = match self {
            Self::Allocated => Vec::with_capacity(bytes.len()),
            Self::Reused => used(),
        };
        memory.extend_from_slice(bytes);
        Copied { bytes: memory, of: self }
    }
}

/// Memory of a packet that is over, if there is some; empty.
fn used() -> Vec<u8> {
    MINE.with_borrow_mut(|mine| {
        if mine.is_empty() {
            let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
            let left = all.len().saturating_sub(BATCH);
            mine.extend(all.drain(left..));
        }
        mine.pop().unwrap_or_default()
    })
}

fn keep(memory: Vec<u8>) {
    MINE.with_borrow_mut(|mine| {
        mine.push(memory);
        if mine.len() == 2 * BATCH {
            ALL.lock().unwrap_or_else(PoisonError::into_inner).extend(mine.drain(BATCH..));
        }
    });
}

impl Deref for Copied {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        if self.of == Copies::Reused {
            self.bytes.clear();
            keep(take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_by_whichever_thread() {
        let address = |copy: &Copied| copy.as_ptr().addr();
        let many = || (0..3 * BATCH).map(|_| Copies::Reused.copy(&[1; 100])).collect::<Vec<_>>();
        let first: Vec<_> = std::thread::spawn(move || many().iter().map(address).collect())
            .join()
            .expect("it ends");
        // The copies that the thread had too many of are here.
        let again = many();
        assert!(again.iter().filter(|copy| first.contains(&address(copy))).count() >= BATCH);
        assert!(again.iter().all(|copy| **copy == [1; 100]));
        assert_eq!(*Copies::Allocated.copy(b"a"), *b"a");
    }
}
