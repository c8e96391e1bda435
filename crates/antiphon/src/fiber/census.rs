//! A snapshot of the fibers of a pool: [`Pool::fibers`](crate::pool::Pool::fibers). Each thread
//! answers for its own fibers.
//!
//! ```text
//!   the asker                   a thread of the pool            a fiber that waits
//!   ─────────                   ────────────────────            ──────────────────
//!   request, tells ───────────► reads its mail
//!                               Order::Tell ──────────────────► takes its own backtrace
//!                                           ◄────────────────── waits on
//!   receives ◄───────────────── sends its answer
//! ```

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_linux::glance::own_id;
use antiphon_platform::{ThreadId, Traced, TracedKind};
use antiphon_runtime::fiber::Ready;

use crate::channel::{self, Receiver, Sender};
use crate::observe::{self, Trace};
pub use crate::observe::{Frame, Place};
use crate::unpoisoned::lock;

/// The activity of the fibers of a pool at the time of [`Pool::fibers`](crate::pool::Pool::fibers).
/// Its `Display` names the places where fibers wait, with the number that waits at each.
#[derive(Debug)]
pub struct Census {
    /// One entry for each thread of the pool that exists.
    pub threads: Vec<Hosted>,
}

/// The activity of the fibers of one thread.
#[derive(Debug)]
pub struct Hosted {
    /// The name of the thread.
    pub thread: String,
    /// `None` if the thread has not answered in time: one of its fibers or tasks has occupied it
    /// for that long.
    pub answer: Option<Answer>,
    /// The calls that the thread is in, if it has not answered and the pool names hogs.
    pub busy: Option<Trace>,
}

/// The answer of a thread about its fibers.
#[derive(Debug, Default)]
pub struct Answer {
    /// The number of fibers that may continue.
    pub ready: usize,
    /// The number of fibers that wait.
    pub waiting: usize,
    /// The number of waiting fibers with a deadline.
    pub with_deadline: usize,
    /// The number of waiting fibers that wait for a file or socket; some may continue already.
    pub for_files: usize,
    /// The reason why a task waits for a stack, if a task does.
    pub no_stack: Option<String>,
    /// How many times a fiber of that thread has begun or continued, modulo 2³².
    pub(crate) moved: u32,
    /// The places where fibers wait, up to the number that was asked for.
    pub waits: Vec<Wait>,
}

/// The wait of one fiber.
#[derive(Debug)]
pub struct Wait {
    /// The backtrace of the fiber; `None` if too little of its stack is left to take a backtrace.
    pub backtrace: Option<Backtrace>,
    /// Whether the wait has a deadline.
    pub has_deadline: bool,
    /// The lock that the fiber waits for, such as a [`Mutex`](crate::Mutex), if it waits for a
    /// lock. The objects of other waits are not recorded.
    pub lock: Option<Lock>,
    /// The addresses of the part of the stack that the fiber used.
    pub(super) stack: Range<usize>,
}

/// A lock that a fiber waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Lock {
    /// The address of the lock.
    pub address: usize,
    /// The kind of the lock: `mutex`, `readers-writer lock`, `spinlock` or `semaphore`.
    pub kind: &'static str,
}

impl Lock {
    pub(super) fn of(traced: Traced) -> Self {
        let kind = match traced.kind {
            TracedKind::Mutex => "mutex",
            TracedKind::Read | TracedKind::Write => "readers-writer lock",
            TracedKind::Spin => "spinlock",
            TracedKind::Semaphore => "semaphore",
        };
        Self { address: traced.address, kind }
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} at {:#x}", self.kind, self.address)
    }
}

/// The desks of the threads of a pool.
#[derive(Debug, Default)]
pub(crate) struct Desks(Mutex<Vec<Arc<Desk>>>);

/// Where questions about its fibers are posted to one thread.
#[derive(Debug)]
pub(super) struct Desk {
    thread: String,
    id: ThreadId,
    mail: &'static Ready<Linux>,
    /// Whether the thread has no fibers; it does not read its mail then.
    has_none: AtomicBool,
    /// Whether none of the thread's tasks can begin, because no stack is available.
    is_dry: AtomicBool,
    /// Questions to this thread. A question may be answered already, or its asker gone.
    asked: Mutex<Vec<Question>>,
    /// The number of turns so far, modulo 2³².
    pub(super) turn: AtomicU32,
    /// The number of turns after the last reading of the clock at which the thread reads it again.
    pub(super) look_in: AtomicU32,
}

/// A question about the fibers of a thread, with backtraces of up to `most` of them.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) most: usize,
    pub(super) answer: Sender<Answer>,
}

/// Time between two checks whether a thread still has fibers.
const LOOK: Duration = Duration::from_millis(1);

impl Desks {
    /// Opens a desk for the calling thread, which has this mailbox.
    pub(super) fn open(&self, mail: &'static Ready<Linux>) -> Arc<Desk> {
        let thread = thread::current().name().unwrap_or("?").to_owned();
        let (has_none, is_dry) = (AtomicBool::new(true), AtomicBool::new(false));
        let ([turn, look_in], asked) = ([const { AtomicU32::new(0) }; 2], Mutex::default());
        let id = own_id();
        let desk = Arc::new(Desk { thread, id, mail, has_none, is_dry, asked, turn, look_in });
        lock(&self.0).push(desk.clone());
        desk
    }

    pub(super) fn close(&self, desk: &Arc<Desk>) {
        lock(&self.0).retain(|other| !Arc::ptr_eq(other, desk));
    }

    /// Makes each thread read the clock when its next turn is over.
    pub(crate) fn tick(&self) {
        for desk in &*lock(&self.0) {
            // Relaxed: a hint; if the thread overwrites it, the next tick stores it again.
            desk.look_in.store(0, Relaxed);
        }
    }

    /// Returns the number of the thread's current turn, in which a fiber runs or a task begins.
    /// `None` if the thread has no desk.
    pub(crate) fn turn_of(&self, thread: ThreadId) -> Option<u32> {
        let desks = lock(&self.0);
        // Relaxed: only compared; no other data depends on it.
        desks.iter().find(|desk| desk.id == thread).map(|desk| desk.turn.load(Relaxed))
    }

    /// Returns whether tasks of some thread wait for a stack.
    pub(crate) fn is_any_dry(&self) -> bool {
        // Relaxed: a hint.
        lock(&self.0).iter().any(|desk| desk.is_dry.load(Relaxed))
    }

    /// Asks all threads, and waits for each answer until `until`. For a thread that has not
    /// answered, calls `busy`.
    pub(crate) fn ask(
        &self,
        most: usize,
        until: Instant,
        busy: impl Fn(ThreadId) -> Option<Trace>,
    ) -> Census {
        // Ask all of them before waiting: one thread may keep another from answering.
        let desks = lock(&self.0).clone();
        let asked: Vec<_> = desks.into_iter().map(|desk| (desk.ask(most), desk)).collect();
        let heard = |(answer, desk): (Receiver<Answer>, Arc<Desk>)| {
            let answer = desk.answered(&answer, until);
            let busy = answer.is_none().then(|| busy(desk.id)).flatten();
            Hosted { answer, thread: desk.thread.clone(), busy }
        };
        Census { threads: asked.into_iter().map(heard).collect() }
    }
}

impl Desk {
    fn ask(&self, most: usize) -> Receiver<Answer> {
        let (answer, answered) = channel::bounded(1);
        let mut asked = lock(&self.asked);
        asked.retain(Question::is_open);
        asked.push(Question { most, answer });
        drop(asked);
        self.mail.tell();
        answered
    }

    fn answered(&self, answer: &Receiver<Answer>, until: Instant) -> Option<Answer> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Ok(answer) = answer.recv_timeout(left.min(LOOK)) {
                return Some(answer);
            }
            // Relaxed: the value may be stale at once.
            if self.has_none.load(Relaxed) {
                return Some(Answer::default());
            }
            if left.is_zero() {
                return None;
            }
        }
    }

    /// Sets whether the thread has no fibers from now on.
    #[inline]
    pub(super) fn has_none(&self, has_none: bool) {
        // Relaxed: as in `answered`.
        self.has_none.store(has_none, Relaxed);
    }

    /// Sets whether from now on no task of the thread can begin, because no stack is available.
    #[inline]
    pub(super) fn is_dry(&self, is_dry: bool) {
        // Relaxed: as in `is_any_dry`.
        self.is_dry.store(is_dry, Relaxed);
    }

    /// Takes the questions to the thread whose askers still wait.
    pub(super) fn questions(&self) -> impl Iterator<Item = Question> {
        mem::take(&mut *lock(&self.asked)).into_iter().filter(Question::is_open)
    }
}

impl Question {
    /// Returns whether the asker still waits for an answer.
    fn is_open(&self) -> bool {
        !self.answer.channel().is_closed()
    }
}

impl Census {
    /// Returns the number of fibers that wait, on all threads that have answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.answers().map(|answer| answer.waiting).sum()
    }

    /// Returns the reason why tasks wait for stacks, if some do.
    pub(crate) fn no_stack(&self) -> Option<&str> {
        self.answers().find_map(|answer| answer.no_stack.as_deref())
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.threads.iter().filter_map(|thread| thread.answer.as_ref())
    }

    /// Returns the places where fibers wait, the most frequent first, of fibers that have reported
    /// a place.
    ///
    /// Names are looked up in the program's symbols: the first lookup takes about 10 ms.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let waits = self.answers().flat_map(|answer| &answer.waits);
        observe::places(waits.map(|wait| (wait.backtrace.as_ref(), wait.has_deadline)))
    }

    /// Counts the waiters by the operation that they wait in, as far as it is known; largest count
    /// first.
    pub(crate) fn by(&self) -> Vec<(usize, String)> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for place in self.places() {
            if let Some(by) = place.by() {
                *counts.entry(by.name.clone()).or_default() += place.count;
            }
        }
        let mut by: Vec<_> = counts.into_iter().map(|(name, count)| (count, name)).collect();
        by.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        by
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Hosted { thread, answer, busy } in &self.threads {
            match answer {
                Some(answer) => {
                    write!(f, "{thread}: {} wait, {} may go on", answer.waiting, answer.ready)?;
                    let dry = answer.no_stack.is_some();
                    writeln!(f, "{}", if dry { ", and tasks wait for a stack" } else { "" })?;
                }
                None => {
                    writeln!(f, "{thread}: in one task, and has not answered")?;
                    busy.as_ref().map_or(Ok(()), |trace| write!(f, "{trace}"))?;
                }
            }
        }
        self.places().iter().try_for_each(|place| write!(f, "\n{place}"))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "waits{}:", observe::until(self.has_deadline))?;
        observe::write(f, &observe::of(self.backtrace.as_ref()))
    }
}
