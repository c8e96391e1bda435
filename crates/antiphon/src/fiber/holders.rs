//! Search for fibers that may hold the locks that other fibers wait for.
//!
//! A lock does not record its owner. But a waiting fiber that holds it has a guard on its stack,
//! which contains the lock's address. So a search of the stacks of waiting fibers finds those that
//! may hold a lock, and also some that only have its address. The result is only shown to people:
//! they can tell the two apart.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::census::{Census, Lock, Wait};

/// Fibers that wait for locks. `Display` writes a line for each, with the fibers that may hold the
/// lock.
#[derive(Debug)]
pub(crate) struct Waits {
    /// The fibers, numbered from 1 on: each with its thread, and the lock that it waits for.
    fibers: Vec<(String, Option<Lock>)>,
    /// By address of a lock: the fibers that have it on the stack, and do not wait for it.
    known: HashMap<usize, Vec<usize>>,
}

/// Maximum number of fibers that are displayed.
const MOST: usize = 50;
/// Maximum number of bytes of a stack that are searched, from the fiber's stack pointer up.
const STACK: usize = 256 << 10;

impl Waits {
    /// Computes the waits of a census that was just taken. If stacks have changed since, part of
    /// the result is wrong.
    pub(crate) fn of(census: &Census) -> Self {
        let mut waits = Self { fibers: Vec::new(), known: HashMap::new() };
        let hosts = || census.threads.iter().filter_map(|host| Some((host, host.answer.as_ref()?)));
        let all =
            || hosts().flat_map(|(host, answer)| answer.waits.iter().map(move |it| (host, it)));
        for (_, wait) in all() {
            if let Some(lock) = wait.lock {
                waits.known.entry(lock.address).or_default();
            }
        }
        if waits.known.is_empty() {
            return waits;
        }
        let memory = File::open("/proc/self/mem").ok();
        for (host, wait) in all() {
            waits.fibers.push((host.thread.clone(), wait.lock));
            let Some(memory) = &memory else { continue };
            for word in words(memory, wait) {
                let number = waits.fibers.len();
                if let Some(who) = waits.known.get_mut(&word)
                    && wait.lock.is_none_or(|lock| lock.address != word)
                    && who.last() != Some(&number)
                {
                    who.push(number);
                }
            }
        }
        waits
    }
}

/// Returns the words of the waiting fiber's stack. They are read through a file, so that the kernel
/// checks whether the memory still exists, and the compiler assumes nothing about it.
fn words(memory: &File, wait: &Wait) -> Vec<usize> {
    const WORD: usize = size_of::<usize>();
    let begin = wait.stack.start.next_multiple_of(WORD);
    let mut bytes = vec![0; wait.stack.end.saturating_sub(begin).min(STACK)];
    match memory.read_exact_at(&mut bytes, begin as u64) {
        Ok(()) => bytes
            .chunks_exact(WORD)
            .map(|word| word.try_into().map_or(0, usize::from_ne_bytes))
            .collect(),
        Err(_) => Vec::new(),
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = |(at, (thread, lock)): (usize, &(String, Option<Lock>))| {
            Some((at + 1, thread.clone(), (*lock)?))
        };
        for (number, thread, lock) in self.fibers.iter().enumerate().filter_map(waits).take(MOST) {
            let who: Vec<_> = self.known.get(&lock.address).into_iter().flatten().collect();
            write!(f, "fiber {number}, of {thread}, waits for {lock}; ")?;
            match &who[..] {
                [] => writeln!(f, "no fiber that waits is seen to hold it")?,
                [one] => writeln!(f, "fiber {one} may hold it")?,
                [first, rest @ ..] => {
                    write!(f, "fiber {first}")?;
                    rest.iter().take(MOST).try_for_each(|one| write!(f, ", {one}"))?;
                    writeln!(f, " may hold it")?;
                }
            }
        }
        Ok(())
    }
}
