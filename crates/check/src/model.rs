//! Models: a small program, the bounds of its environment, and the mode of exploration.

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
    /// Every execution, exactly once.
    Exhaustive,
    /// Threads, sources and places are chosen at random.
    Random {
        /// The seed: equal seeds give equal executions.
        seed: u64,
        /// The number of executions.
        executions: u64,
    },
    /// Random, with threads by priority and `depth - 1` changes of priority in an execution
    /// (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized scheduler with probabilistic
    /// guarantees of finding bugs", ASPLOS 2010).
    Pct {
        /// The seed: equal seeds give equal executions.
        seed: u64,
        /// Number of ordering constraints of the defects to find.
        depth: usize,
        /// The number of executions.
        executions: u64,
    },
    /// Every interleaving with every choice, without any reduction. For testing the checker.
    Enumerate,
    /// The execution that a [`Failure::replay`] stands for.
    Replay(String),
}

/// The bounds and the machine of a model, as plain values.
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

/// A model to check: a name, bounds, and a machine.
///
/// The defaults: at most one spurious wake, one timeout, one expired spin and one `crowded()`
/// answer for each thread; one socket; counters that agree; 64 waiter nodes; no thread is known to
/// have ended; no light mode; 5 000 steps; exhaustive, without a limit on executions or time.
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
    /// Creates a model with the default bounds.
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

    /// Sets how often a thread's parks may return spuriously.
    pub fn spurious(mut self, a_thread: u32) -> Self {
        self.config.spurious = a_thread;
        self
    }

    /// Sets how often a thread's parks with a deadline may time out although a wake is still
    /// possible. A deadline always passes once nothing else can happen.
    pub fn timeouts(mut self, a_thread: u32) -> Self {
        self.config.timeouts = a_thread;
        self
    }

    /// Sets how often a thread's `spin_while` may give up early. A budget is always spent once
    /// nothing else can happen; an empty budget is always spent at once.
    pub fn expiries(mut self, a_thread: u32) -> Self {
        self.config.expiries = a_thread;
        self
    }

    /// Sets how often `crowded()` may return `true` to a thread.
    pub fn crowded(mut self, a_thread: u32) -> Self {
        self.config.crowded = a_thread;
        self
    }

    /// Sets how often a thread may move to another socket.
    pub fn migrations(mut self, a_thread: u32) -> Self {
        self.config.migrations = a_thread;
        self
    }

    /// Sets the number of sockets; threads are assigned to them in turn. `numa()` returns whether
    /// there is more than one.
    ///
    /// # Panics
    ///
    /// If `sockets` is 0.
    pub fn sockets(mut self, sockets: u32) -> Self {
        assert!(sockets > 0, "a machine has a socket");
        self.config.sockets = sockets;
        self
    }

    /// Makes the first `fibers` threads fibers, which may not sleep on words
    /// ([`waits_on_words`](antiphon_platform::WordWaits::waits_on_words)).
    pub fn fibers(mut self, fibers: u32) -> Self {
        self.config.fibers = fibers;
        self
    }

    /// Sets by how many ticks the counters of two CPUs may differ. Each thread has its own counter,
    /// and both cases are explored: that it is ahead by this much, and that it is not.
    ///
    /// Each reading advances time by a tick, and acts as a `SeqCst` fence. So it orders more than
    /// [`counter`](antiphon_platform::Clocks::counter) promises: earlier plain stores, too.
    pub fn apart(mut self, ticks: u32) -> Self {
        self.config.apart = ticks;
        self
    }

    /// Sets the number of waiter nodes, including number 0, which no waiter has: 1 means an
    /// exhausted arena. At most 64.
    pub fn waiters(mut self, waiters: u32) -> Self {
        self.config.waiters = waiters.min(64);
        self
    }

    /// Sets the number of nodes that the arena hands out before it searches for nodes of dead
    /// threads: 1 024 by default, which no model reaches.
    pub fn arena_block(mut self, nodes: u32) -> Self {
        self.config.arena_block = nodes;
        self
    }

    /// Sets whether `alive` may report that a thread has ended. By default, it never does.
    ///
    /// The report orders nothing, as on Linux: the end of a thread is a relaxed store, and `alive`
    /// a relaxed load of it. A late `true` is also explored.
    pub fn mortal(mut self, mortal: bool) -> Self {
        self.config.mortal = mortal;
        self
    }

    /// Sets the answers of `light()` and `fenced()`.
    pub fn light(mut self, light: bool) -> Self {
        self.config.light = light;
        self
    }

    /// Sets the result of `heavy_fence()`.
    pub fn heavy_fence(mut self, heavy: HeavyFence) -> Self {
        self.config.heavy = heavy;
        self
    }

    /// Sets the answer of `unpark_asleep()`: either all woken waiters were asleep, and will run, or
    /// none was.
    pub fn asleep(mut self, asleep: bool) -> Self {
        self.config.asleep = asleep;
        self
    }

    /// Sets the number of visible operations after which an execution counts as endless. At most 30
    /// 000.
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
    /// Two threads accessed plain data without an order between them, and one of them wrote.
    DataRace,
    /// An assertion of the program failed, or it panicked otherwise.
    Panic,
    /// All remaining threads wait for ever.
    Deadlock,
    /// An access of a word was after, or not ordered before, the retirement of its memory.
    UseAfterRetire,
    /// The execution did not end: a livelock, or too few steps allowed.
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
    /// The execution as a text for [`Mode::Replay`].
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
    /// Number of executions that ended (or failed).
    pub executions: u64,
    /// Number of executions that were discarded: impossible after all, or equivalent to another
    /// one.
    pub discarded: u64,
    /// Number of executions in which a budget or a deadline ended a wait because nothing else could
    /// happen. If 0, no thread ever depended on a timeout for progress.
    pub forced: u64,
    /// Whether all executions within the bounds were explored.
    pub complete: bool,
    /// The first failure.
    pub failure: Option<Failure>,
    /// Number of times that each [`probe`](crate::probe) was reached.
    pub probes: BTreeMap<&'static str, u64>,
    /// The longest execution, in visible operations.
    pub longest: usize,
    /// Duration of the run, in seconds.
    pub seconds: f64,
}

impl Report {
    /// Returns the report if nothing was found wrong.
    ///
    /// # Panics
    ///
    /// If there is a failure: with the failing execution.
    #[track_caller]
    pub fn assert_ok(&self) -> &Self {
        if let Some(failure) = &self.failure {
            panic!("{}\n{failure}", self.name);
        }
        self
    }

    /// Returns the report if nothing was found wrong and the exploration is complete.
    ///
    /// # Panics
    ///
    /// If there is a failure, or the exploration was cut short.
    #[track_caller]
    pub fn assert_complete(&self) -> &Self {
        self.assert_ok();
        assert!(self.complete, "{self}: cut short");
        self
    }

    /// Returns the failure.
    ///
    /// # Panics
    ///
    /// If there is no failure, or it is of another kind.
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
