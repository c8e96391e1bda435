//! The result of a simulation. Every figure here is simulated: it says what the model predicts, and
//! nothing about the host.

use std::fmt;

/// The machine's counts, over the whole simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses to a line that the core held.
    pub hits: u64,
    /// Lines that came from another cache of the same socket, or were invalidated there.
    pub local_transfers: u64,
    /// Lines that came from a cache of another socket, or were invalidated there.
    pub remote_transfers: u64,
    /// Lines that no cache held.
    pub memory_reads: u64,
    /// Stores that were posted: their threads went on before they were done.
    pub posted: u64,
    /// Times that a thread went to sleep.
    pub parks: u64,
    /// Times that a sleeping thread was woken, by another or by its deadline.
    pub wakes: u64,
    /// Times that a core went from one thread to another.
    pub switches: u64,
    /// Times that a thread lost its core because its slice was over.
    pub preemptions: u64,
    /// Times that a spinning thread let others run on its core.
    pub yields: u64,
    /// Times that a thread went to another core.
    pub migrations: u64,
    /// Interrupts that CPUs sent to others: programs', heavy fences' and, if the machine says so,
    /// wakes'.
    pub interrupts: u64,
    /// Heavy fences.
    pub heavy_fences: u64,
    /// Atomic read-modify-writes of threads that owned a lock as they did them, as told by
    /// [`owns`](crate::owns) and [`Hint::Owns`](antiphon_platform::Hint::Owns): the ones that stand
    /// between the others and the lock. The one that acquires is not among them.
    pub owner_atomics: u64,
    /// Atomic read-modify-writes of all other threads.
    pub other_atomics: u64,
    /// Times that a lock went from one owner to the next, which may be the same thread.
    pub handovers: u64,
    /// Handovers that did not leave the socket.
    pub handovers_within_socket: u64,
    /// Calls of [`note`](crate::note).
    pub notes: u64,
    /// Calls of [`note`](crate::note) at a time at which some thread owned a lock.
    pub notes_while_owned: u64,
}

/// A simulation whose threads are all over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// The simulated time at which the last thread ended, in nanoseconds.
    pub end_ns: u64,
    /// The machine's counts.
    pub counts: Counts,
    /// The counts that each thread made by [`count`](crate::count), in the order in which the
    /// threads were added.
    pub operations: Vec<u64>,
    /// A hash of every step of every thread. Two simulations that went the same way have the same,
    /// whatever host processes they ran in; two that did not differ, but for the odd collision.
    pub trace_hash: u64,
    /// The usage at the times that were [asked for](crate::Simulation::account_at), the earliest
    /// first; times that were not reached are missing.
    pub accounts: Vec<Account>,
}

/// The usage up to a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The time, in nanoseconds of simulated time.
    pub at_ns: u64,
    /// How long each thread had had a core, in nanoseconds, in the order in which they were added.
    pub ran_ns: Vec<u64>,
    /// The machine's counts up to then.
    pub counts: Counts,
}

impl Outcome {
    /// The operations of all threads.
    #[must_use]
    pub fn total_operations(&self) -> u64 {
        self.operations.iter().sum()
    }

    /// Jain's index of the threads' operations.
    #[must_use]
    pub fn fairness(&self) -> f64 {
        jain(&self.operations)
    }
}

/// Jain's fairness index of `shares`: 1 if all are equal, 1/n if one has everything; 1 if there is
/// nothing to share.
#[must_use]
pub fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&share| share as f64).sum();
    let squares: f64 = shares.iter().map(|&share| (share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// A simulation that can't go on, or does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Why it was given up.
    pub why: Why,
    /// The time at which it was given up, in nanoseconds of simulated time.
    pub at_ns: u64,
    /// The threads that are not over.
    pub waits: Vec<Wait>,
}

/// Why a simulation was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Each thread that is not over waits for another.
    Deadlock,
    /// The limit and the grace behind it have passed, and some thread still runs, or has a deadline
    /// later than that.
    Overrun,
}

/// A thread that is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread, counted from 0 as they were added.
    pub thread: usize,
    /// The core that it is placed on.
    pub core: u32,
    /// The thing that it waits for.
    pub on: WaitsOn,
}

/// A thing that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsOn {
    /// That a word changes.
    Word {
        /// The line's number, in the order of first touch.
        line: u32,
        /// Its name, from [`name_line`](crate::name_line).
        name: Option<&'static str>,
        /// Where in its line the word is, in bytes.
        offset: u8,
        /// The value that the thread has seen there.
        value: u64,
        /// The thread that wrote the line last.
        writer: Option<usize>,
    },
    /// That its waiter node is unparked.
    Unpark,
    /// That it is woken of a word on which it sleeps.
    Wake {
        /// As of [`Word`](Self::Word).
        line: u32,
        /// 〃
        name: Option<&'static str>,
        /// 〃
        offset: u8,
    },
    /// An interrupt of its core.
    Interrupt,
    /// Its core, or the end of what it does.
    Nothing,
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} on core {} ", self.thread, self.core)?;
        match &self.on {
            WaitsOn::Word { line, name, offset, value, writer } => {
                write!(f, "spins on ")?;
                write_word(f, *line, *name, *offset)?;
                write!(f, ", where it saw {value:#x}")?;
                match writer {
                    Some(writer) => write!(f, "; thread {writer} wrote that line last"),
                    None => write!(f, "; no thread has written that line"),
                }
            }
            WaitsOn::Unpark => write!(f, "is parked"),
            WaitsOn::Wake { line, name, offset } => {
                write!(f, "sleeps on ")?;
                write_word(f, *line, *name, *offset)
            }
            WaitsOn::Interrupt => write!(f, "awaits an interrupt"),
            WaitsOn::Nothing => write!(f, "can run"),
        }
    }
}

fn write_word(
    f: &mut fmt::Formatter<'_>,
    line: u32,
    name: Option<&'static str>,
    offset: u8,
) -> fmt::Result {
    write!(f, "line {line}")?;
    if let Some(name) = name {
        write!(f, " ({name})")?;
    }
    write!(f, " + {offset}")
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::Deadlock => "every thread waits for another",
            Why::Overrun => "some thread does not end",
        };
        write!(f, "at {} ns (simulated): {why}", self.at_ns)?;
        for wait in &self.waits {
            write!(f, "\n  {wait}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Stuck {}
