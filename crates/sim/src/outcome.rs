//! The result of a simulation. Every figure here is simulated: a prediction of the model,
//! independent of the host.

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
    /// Stores that were posted: their threads went on before the stores were done.
    pub posted: u64,
    /// Times that a thread went to sleep.
    pub parks: u64,
    /// Times that a sleeping thread was woken, by another or by its deadline.
    pub wakes: u64,
    /// Times that a core switched from one thread to another.
    pub switches: u64,
    /// Times that a thread lost its core because its slice was over.
    pub preemptions: u64,
    /// Times that a spinning thread let others run on its core.
    pub yields: u64,
    /// Times that a thread moved to another core.
    pub migrations: u64,
    /// Interrupts that CPUs sent to others: by programs, heavy fences and, if the machine has such
    /// wakes, wakes.
    pub interrupts: u64,
    /// Heavy fences.
    pub heavy_fences: u64,
    /// Atomic read-modify-writes by threads while they owned a lock, according to
    /// [`owns`](crate::owns) and [`Hint::Owns`](antiphon_platform::Hint::Owns): they delay the next
    /// owner. The acquiring one is not among them.
    pub owner_atomics: u64,
    /// Atomic read-modify-writes of all other threads.
    pub other_atomics: u64,
    /// Times that a lock passed from one owner to the next, which may be the same thread.
    pub handovers: u64,
    /// Handovers that did not leave the socket.
    pub handovers_within_socket: u64,
    /// Calls of [`note`](crate::note).
    pub notes: u64,
    /// Calls of [`note`](crate::note) while some thread owned a lock.
    pub notes_while_owned: u64,
}

/// The result of a simulation whose threads have all ended.
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
    /// A hash of every step of every thread. Equal for two simulations that took the same course,
    /// whatever host processes they ran in; otherwise different, apart from rare collisions.
    pub trace_hash: u64,
    /// The usage at the [requested](crate::Simulation::account_at) times, the earliest first; times
    /// that were not reached are missing.
    pub accounts: Vec<Account>,
    /// The counts of the host of virtual machines; all zero if there are none.
    pub steals: Steals,
}

/// The counts of a host of [virtual machines](crate::Guests), over the whole simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steals {
    /// Times that a virtual CPU lost its CPU because its slice was over.
    pub preemptions: u64,
    /// Those while its thread owned a lock: all waiters wait for the host.
    pub of_owners: u64,
    /// Times that a thread got a lock for which it had spun, only after its virtual CPU had been
    /// without a CPU since the last release.
    pub of_next: u64,
    /// Times that a thread was woken whose virtual CPU did not have its CPU.
    pub of_woken: u64,
    /// The total time for which these waited for their CPU, in nanoseconds.
    pub woken_ns: u64,
    /// Times that a virtual CPU got its CPU at once for a thread that slept until then.
    pub released: u64,
    /// Times that a spinner gave its virtual CPU away.
    pub yields: u64,
    /// Preemptions that were put off.
    pub put_off: u64,
    /// Those of them that came in a section nevertheless.
    pub overrun: u64,
}

/// The usage up to a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The time, in nanoseconds of simulated time.
    pub at_ns: u64,
    /// The time that each thread had had a core, in nanoseconds, in the order in which the threads
    /// were added.
    pub ran_ns: Vec<u64>,
    /// The machine's counts up to that time.
    pub counts: Counts,
}

impl Outcome {
    /// The number of operations of all threads.
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

/// A simulation that can't continue, or does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The reason for giving up.
    pub why: Why,
    /// The time at which it was given up, in nanoseconds of simulated time.
    pub at_ns: u64,
    /// The threads that have not ended.
    pub waits: Vec<Wait>,
}

/// The reason why a simulation was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Each unfinished thread waits for another.
    Deadlock,
    /// The limit and the grace after it have passed, and some thread still runs, or has a later
    /// deadline.
    Overrun,
}

/// A thread that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The number of the thread, from 0 in the order in which threads were added.
    pub thread: usize,
    /// The core that it is placed on.
    pub core: u32,
    /// The object of its wait.
    pub on: WaitsOn,
}

/// The object of a thread's wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitsOn {
    /// A change of a word.
    Word {
        /// The line's number, in the order of first touch.
        line: u32,
        /// Its name, from [`name_line`](crate::name_line).
        name: Option<&'static str>,
        /// The offset of the word in its line, in bytes.
        offset: u8,
        /// The value that the thread has seen there.
        value: u64,
        /// The thread that wrote the line last.
        writer: Option<usize>,
    },
    /// An unpark of its waiter node.
    Unpark,
    /// A wake of the word on which it sleeps.
    Wake {
        /// The line's number, in the order of first touch.
        line: u32,
        /// The line's name, from [`name_line`](crate::name_line).
        name: Option<&'static str>,
        /// The offset of the word in its line, in bytes.
        offset: u8,
    },
    /// An interrupt to its core.
    Interrupt,
    /// Its core, or the end of its computation.
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
