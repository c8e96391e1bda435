//! The board: the progress of the hunted program, in a file that both processes share.
//!
//! The program maps the file and counts there; this process reads the file, which has the same
//! pages. The layout is `struct board` of `xtask/hunt/hunt.h`, in words of 64 bits.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::Failure;

const MAGIC: u64 = 0x746e_7568;
/// The most workers.
const SLOTS: usize = 64;
const OBJECTS: usize = 64;
const COUNTS: usize = 4;
const WORDS: usize = 2 + COUNTS + 2 * SLOTS + 2 * OBJECTS;

/// The file of the board.
pub struct Board {
    path: PathBuf,
    file: File,
}

/// The contents of the board at some time.
#[derive(Default)]
pub struct Snapshot {
    /// The child that the program's main thread waits for, or 0.
    pub child: u32,
    /// Number of locks and waits that timed out.
    pub timeouts: u64,
    /// Number of threads that were cancelled and have ended.
    pub cancels: u64,
    /// Number of children that were forked and ended well.
    pub forks: u64,
    /// Number of signals sent to threads.
    pub signals: u64,
    /// The workers, by slot.
    pub workers: Vec<Worker>,
    /// The locks.
    pub objects: Vec<Object>,
}

/// The row of one worker.
#[derive(Clone, Copy)]
pub struct Worker {
    /// The role of the worker.
    pub role: Role,
    /// Number of operations that it has done so far.
    pub progress: u64,
}

/// The role of a worker: `enum role` of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This slot has no worker.
    Absent,
    /// The main thread, which signals, cancels and forks.
    Pest,
    /// The threads of a forked child.
    Child,
    /// Locks and tries to lock.
    Locker,
    /// A member of the ring.
    Member,
    /// Fills the buffer.
    Producer,
    /// Empties the buffer, and may be cancelled.
    Consumer,
    /// Computes, and uses no lock.
    Neighbour,
    /// Reads and writes.
    Sharer,
}

impl Role {
    fn of(word: u64) -> Self {
        use Role::*;
        let roles = [Absent, Pest, Child, Locker, Member, Producer, Consumer, Neighbour, Sharer];
        usize::try_from(word).ok().and_then(|at| roles.get(at).copied()).unwrap_or(Absent)
    }
}

/// A lock of the program, and its address.
#[derive(Clone, Copy)]
pub struct Object {
    /// The kind of the object.
    pub kind: Kind,
    /// Its first byte.
    pub address: u64,
}

/// `enum object` of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `pthread_mutex_t`.
    Mutex,
    /// `pthread_cond_t`.
    Cond,
    /// `pthread_spinlock_t`.
    Spin,
    /// `pthread_rwlock_t`.
    Rwlock,
}

impl Board {
    /// An empty board in a new file.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(8 * WORDS as u64)?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// The path of the board.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The contents of the board now; empty until the program has begun.
    pub fn read(&self) -> Result<Snapshot, Failure> {
        let mut bytes = [0; 8 * WORDS];
        self.file.read_exact_at(&mut bytes, 0)?;
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        Ok(Snapshot::of(&words))
    }
}

impl Snapshot {
    fn of(words: &[u64]) -> Self {
        let (head, rest) = words.split_at(2 + COUNTS);
        let (roles, rest) = rest.split_at(SLOTS);
        let (progress, objects) = rest.split_at(SLOTS);
        if head[0] != MAGIC {
            return Self::default();
        }
        let workers = roles.iter().zip(progress);
        let workers = workers.map(|(&role, &progress)| Worker { role: Role::of(role), progress });
        let objects = objects.chunks_exact(2).filter_map(|pair| {
            let kind = match pair[0] {
                1 => Kind::Mutex,
                2 => Kind::Cond,
                3 => Kind::Spin,
                4 => Kind::Rwlock,
                _ => return None,
            };
            Some(Object { kind, address: pair[1] })
        });
        Self {
            child: head[1] as u32,
            timeouts: head[2],
            cancels: head[3],
            forks: head[4],
            signals: head[5],
            workers: workers.collect(),
            objects: objects.collect(),
        }
    }

    /// The number of operations of all workers together.
    pub fn operations(&self) -> u64 {
        self.workers.iter().map(|worker| worker.progress).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_without_the_magic_word_is_empty() {
        let mut words = [0; WORDS];
        words[2 + COUNTS] = 3;
        assert!(Snapshot::of(&words).workers.is_empty());
        words[0] = MAGIC;
        let snapshot = Snapshot::of(&words);
        assert_eq!(snapshot.workers[0].role, Role::Locker);
        assert_eq!(snapshot.workers[1].role, Role::Absent);
    }

    #[test]
    fn counts_and_objects_are_where_the_program_writes_them() {
        let mut words = [0; WORDS];
        (words[0], words[1]) = (MAGIC, 77);
        words[2..2 + COUNTS].copy_from_slice(&[1, 2, 3, 4]);
        words[2 + COUNTS + SLOTS + 5] = 10;
        words[2 + COUNTS + 2 * SLOTS..][..4].copy_from_slice(&[1, 0x1000, 2, 0x2000]);
        let snapshot = Snapshot::of(&words);
        assert_eq!((snapshot.child, snapshot.operations()), (77, 10));
        assert_eq!((snapshot.timeouts, snapshot.cancels), (1, 2));
        assert_eq!((snapshot.forks, snapshot.signals), (3, 4));
        let objects: Vec<_> = snapshot.objects.iter().map(|o| (o.kind, o.address)).collect();
        assert_eq!(objects, [(Kind::Mutex, 0x1000), (Kind::Cond, 0x2000)]);
    }
}
