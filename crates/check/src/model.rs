//! Models: a small program, what may happen to it, and how thoroughly to look.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Whether [`heavy_fence`](antiphon_platform::LightUnlock::heavy_fence) works on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeavyFence {
    /// Always.
    Granted,
    /// Never: `Unsupported`.
    Refused,
    /// Each call may be granted or refused.
    Either,
}

/// How executions are chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Each execution once.
    Exhaustive,
    /// Threads, sources and places by lot.
    Random {
        /// Same seed, same executions.
        seed: u64,
        /// The number of executions.
        executions: u64,
    },
    /// By lot, with threads by priority and `depth - 1` changes of priority in an execution
    /// (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized scheduler with probabilistic
    /// guarantees of finding bugs", ASPLOS 2010).
    Pct {
        /// Same seed, same executions.
        seed: u64,
        /// How many ordering constraints a defect has that is to be found.
        depth: usize,
        /// The number of executions.
        executions: u64,
    },
    /// Each interleaving with each choice, without any reduction. To check the checker.
    Enumerate,
    /// The one execution that a [`Failure::replay`] stands for.
    Replay(String),
}

/// Bounds and machine, as plain values.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) spurious: u32,
    pub(crate) timeouts: u32,
    pub(crate) expiries: u32,
    pub(crate) crowded: u32,
    pub(crate) migrations: u32,
    pub(crate) sockets: u32,
    pub(crate) fibers: u32,
    pub(crate) apart: u32,
    pub(crate) waiters: u32,
    pub(crate) arena_block: u32,
    pub(crate) mortal: bool,
    pub(crate) light: bool,
    pub(crate) heavy: HeavyFence,
    pub(crate) asleep: bool,
    pub(crate) steps: usize,
}

/// A model to be checked: a name, bounds, a machine.
///
/// The defaults: at most one spurious wake, one timeout, one expired spin and one `crowded()`
/// answer a thread; one socket; counters that agree; 64 waiter
/// nodes; no thread is known to have ended; no light mode;
/// 5 000 steps; exhaustive, without a limit in executions or time.
#[derive(Clone, Debug)]
#[must_use = "a model does nothing until it is run"]
pub struct Model {
    pub(crate) name: String,
    pub(crate) config: Config,
    pub(crate) mode: Mode,
    pub(crate) executions: u64,
    pub(crate) time: Duration,
}

impl Model {
    /// A model with the default bounds.
    pub fn new(name: &str) -> Self {
        let config = Config {
            spurious: 1,
            timeouts: 1,
            expiries: 1,
            crowded: 1,
            migrations: 0,
            sockets: 1,
            fibers: 0,
            apart: 0,
            waiters: 64,
            arena_block: 1024,
            mortal: false,
            light: false,
            heavy: HeavyFence::Granted,
            asleep: true,
            steps: 5_000,
        };
        let mode = Mode::Exhaustive;
        let (executions, time) = (u64::MAX, Duration::MAX);
        Self { name: name.to_owned(), config, mode, executions, time }
    }

    /// How often a thread's parks may return for no reason.
    pub fn spurious(mut self, a_thread: u32) -> Self {
        self.config.spurious = a_thread;
        self
    }

    /// How often a thread's parks with a deadline may time out though a wake is still possible.
    /// A deadline passes at any rate once nothing else can happen.
    pub fn timeouts(mut self, a_thread: u32) -> Self {
        self.config.timeouts = a_thread;
        self
    }

    /// How often a thread's `spin_while` may give up early. A budget is spent at any rate once
    /// nothing else can happen; an empty budget is spent at once, always.
    pub fn expiries(mut self, a_thread: u32) -> Self {
        self.config.expiries = a_thread;
        self
    }

    /// How often `crowded()` may say `true` to a thread.
    pub fn crowded(mut self, a_thread: u32) -> Self {
        self.config.crowded = a_thread;
        self
    }

    /// How often a thread may be found on another socket.
    pub fn migrations(mut self, a_thread: u32) -> Self {
        self.config.migrations = a_thread;
        self
    }

    /// How many sockets there are; threads are spread over them in turn. `numa()` is whether it is
    /// more than one.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn sockets(mut self, sockets: u32) -> Self {
        assert!(sockets > 0, "a machine has a socket");
        self.config.sockets = sockets;
        self
    }

    /// How many of the threads, the first ones, are fibers, which may not sleep on words
    /// ([`waits_on_words`](antiphon_platform::WordWaits::waits_on_words)).
    pub fn fibers(mut self, fibers: u32) -> Self {
        self.config.fibers = fibers;
        self
    }

    /// By how many ticks the counters of two CPUs may differ: each thread has one of its own, and
    /// both cases are explored: that it is ahead by this much, and that it is not.
    ///
    /// Time has a tick for each reading, which is where it is, as a `SeqCst` fence would be. So
    /// more is ordered than [`counter`](antiphon_platform::Clocks::counter) promises: earlier
    /// plain stores, too.
    pub fn apart(mut self, ticks: u32) -> Self {
        self.config.apart = ticks;
        self
    }

    /// How many waiter nodes can be had, including number 0, which no waiter has: 1 is an exhausted
    /// arena. At most 64.
    pub fn waiters(mut self, waiters: u32) -> Self {
        self.config.waiters = waiters.min(64);
        self
    }

    /// How many nodes the arena hands out before it looks for those of dead threads: 1 024 unless
    /// told, which no model reaches.
    pub fn arena_block(mut self, nodes: u32) -> Self {
        self.config.arena_block = nodes;
        self
    }

    /// Whether `alive` may say that a thread which has ended is dead. Without, it never does.
    ///
    /// The news orders nothing, as on Linux: the end of a thread is a relaxed store, and `alive` a
    /// relaxed load of it. A late `true` is explored too.
    pub fn mortal(mut self, mortal: bool) -> Self {
        self.config.mortal = mortal;
        self
    }

    /// The answers of `light()` and `fenced()`.
    pub fn light(mut self, light: bool) -> Self {
        self.config.light = light;
        self
    }

    /// The result of `heavy_fence()`.
    pub fn heavy_fence(mut self, heavy: HeavyFence) -> Self {
        self.config.heavy = heavy;
        self
    }

    /// The answer of `unpark_asleep()`: whether all that are woken were asleep, and will run, or
    /// none was.
    pub fn asleep(mut self, asleep: bool) -> Self {
        self.config.asleep = asleep;
        self
    }

    /// After how many visible operations an execution is taken for one without end. At most
    /// 30 000.
    pub fn steps(mut self, steps: usize) -> Self {
        self.config.steps = steps.min(30_000);
        self
    }

    /// How executions are chosen.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Stops after this many executions; the report then says that it is not complete.
    pub fn executions(mut self, executions: u64) -> Self {
        self.executions = executions;
        self
    }

    /// Stops after this much time; the report then says that it is not complete.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }
}

/// The kind of defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// Plain data was accessed by two threads in no order.
    DataRace,
    /// An assertion of the program failed, or it panicked otherwise.
    Panic,
    /// All threads wait for ever.
    Deadlock,
    /// A word was touched after, or not before, its memory was retired.
    UseAfterRetire,
    /// The execution did not come to an end: a livelock, or too few steps allowed.
    StepLimit,
}

/// An execution that shows that the program is wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of defect.
    pub kind: FailureKind,
    /// The defect in words.
    pub what: String,
    /// The steps of each thread, one per line; the middle of a very long list is left out.
    pub trace: String,
    /// The execution as a word for [`Mode::Replay`].
    pub replay: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}: {}", self.kind, self.what)?;
        writeln!(f, "{}", self.trace)?;
        if self.replay.len() > 8_000 {
            return write!(f, "replay: too long to be shown ({} bytes)", self.replay.len());
        }
        write!(f, "replay: {}", self.replay)
    }
}

/// The result of a run of a model.
#[derive(Clone, Debug)]
#[must_use = "a report may hold a failure"]
pub struct Report {
    /// The model's name.
    pub name: String,
    /// How many executions came to an end (or failed).
    pub executions: u64,
    /// How many were given up: impossible after all, or told by another one.
    pub discarded: u64,
    /// In how many executions a budget or a deadline had to end a wait because nothing else could
    /// happen any more. With 0, no thread ever depended on a timeout to go on.
    pub forced: u64,
    /// Whether there is no other execution within the bounds.
    pub complete: bool,
    /// The first failure.
    pub failure: Option<Failure>,
    /// How often each [`probe`](crate::probe) was passed.
    pub probes: BTreeMap<&'static str, u64>,
    /// The longest execution, in visible operations.
    pub longest: usize,
    /// How long it took.
    pub seconds: f64,
}

impl Report {
    /// Returns the report if nothing was found wrong.
    ///
    /// # Panics
    ///
    /// With the failing execution otherwise.
    #[track_caller]
    pub fn assert_ok(&self) -> &Self {
        if let Some(failure) = &self.failure {
            panic!("{}\n{failure}", self.name);
        }
        self
    }

    /// Returns the report if nothing was found wrong and there is nothing else to look at.
    ///
    /// # Panics
    ///
    /// Otherwise.
    #[track_caller]
    pub fn assert_complete(&self) -> &Self {
        self.assert_ok();
        assert!(self.complete, "{self}: cut short");
        self
    }

    /// The failure.
    ///
    /// # Panics
    ///
    /// If there is none, or it is of another kind.
    #[track_caller]
    pub fn assert_fails(&self, kind: FailureKind) -> &Failure {
        let failure = self.failure.as_ref();
        let failure = failure.unwrap_or_else(|| panic!("{self}: nothing was found wrong"));
        assert_eq!(failure.kind, kind, "{}\n{failure}", self.name);
        failure
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match (&self.failure, self.complete) {
            (Some(_), _) => "FAILED",
            (None, true) => "complete",
            (None, false) => "CUT",
        };
        write!(
            f,
            "{}: {end}, {} executions ({} discarded), longest {}, {:.3} s",
            self.name, self.executions, self.discarded, self.longest, self.seconds
        )
    }
}
