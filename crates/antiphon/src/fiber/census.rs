//! What the fibers of a pool do: each thread tells of its own.
//!
//! ```text
//!   who asks                    a thread of the pool            a fiber that waits
//!   ────────                    ────────────────────            ──────────────────
//!   request, tells ───────────► reads its mail
//!                               Order::Tell ──────────────────► takes its own backtrace
//!                                           ◄────────────────── waits on
//!   has the answers ◄────────── sends
//! ```

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_runtime::fiber::Ready;

use crate::channel::{self, Receiver, Sender};

/// What the fibers of a pool did when they were [asked](crate::pool::Pool::fibers). Displayed, it
/// names the places where they wait, and how many do there.
#[derive(Debug)]
pub struct Census {
    /// Of each thread that is there.
    pub threads: Vec<Hosted>,
}

/// What the fibers of a thread did.
#[derive(Debug)]
pub struct Hosted {
    /// What the thread is called.
    pub thread: String,
    /// Nothing: the thread has not answered in time. One of its fibers, or of its tasks, is what it
    /// is in for so long.
    pub answer: Option<Answer>,
}

/// What a thread says of its fibers.
#[derive(Debug, Default)]
pub struct Answer {
    /// How many may go on.
    pub ready: usize,
    /// How many wait.
    pub waiting: usize,
    /// Where these wait, of as many as it was asked for.
    pub waits: Vec<Wait>,
}

/// Where a fiber waits.
#[derive(Debug)]
pub struct Wait {
    /// `None`: there is too little of its stack left to say.
    pub backtrace: Option<Backtrace>,
    /// Whether it waits until a time, at the latest.
    pub has_deadline: bool,
}

/// Where the threads of a pool are asked.
#[derive(Debug, Default)]
pub(crate) struct Desks(Mutex<Vec<Arc<Desk>>>);

/// Where a thread is asked.
#[derive(Debug)]
pub(super) struct Desk {
    thread: String,
    mail: &'static Ready<Linux>,
    /// Whether it has no fibers: it does not read its mail then.
    has_none: AtomicBool,
    asked: Mutex<Option<Question>>,
}

/// For how many fibers backtraces are asked.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) most: usize,
    pub(super) answer: Sender<Answer>,
}

/// Between two looks whether a thread has no fibers any more.
const LOOK: Duration = Duration::from_millis(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desks {
    /// That of the calling thread, which has this mail.
    pub(super) fn open(&self, mail: &'static Ready<Linux>) -> Arc<Desk> {
        let thread = thread::current().name().unwrap_or("?").to_owned();
        let (has_none, asked) = (AtomicBool::new(true), Mutex::default());
        let desk = Arc::new(Desk { thread, mail, has_none, asked });
        lock(&self.0).push(desk.clone());
        desk
    }

    pub(super) fn close(&self, desk: &Arc<Desk>) {
        lock(&self.0).retain(|other| !Arc::ptr_eq(other, desk));
    }

    /// Asks all threads, and waits for each until then.
    pub(crate) fn ask(&self, most: usize, until: Instant) -> Census {
        // All at once: one may be in the way of another.
        let desks = lock(&self.0).clone();
        let asked: Vec<_> = desks.into_iter().map(|desk| (desk.ask(most), desk)).collect();
        let heard = |(answer, desk): (Receiver<Answer>, Arc<Desk>)| Hosted {
            answer: desk.answered(&answer, until),
            thread: desk.thread.clone(),
        };
        Census { threads: asked.into_iter().map(heard).collect() }
    }
}

impl Desk {
    fn ask(&self, most: usize) -> Receiver<Answer> {
        let (answer, answered) = channel::bounded(1);
        // Who has asked before, and has no answer yet, has none.
        *lock(&self.asked) = Some(Question { most, answer });
        self.mail.tell();
        answered
    }

    fn answered(&self, answer: &Receiver<Answer>, until: Instant) -> Option<Answer> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Ok(answer) = answer.recv_timeout(left.min(LOOK)) {
                return Some(answer);
            }
            // Relaxed: what it says may be stale at once.
            if self.has_none.load(Relaxed) {
                return Some(Answer::default());
            }
            if left.is_zero() {
                return None;
            }
        }
    }

    /// Whether the thread has no fibers from now on.
    #[inline]
    pub(super) fn has_none(&self, has_none: bool) {
        // Relaxed: as where it is read.
        self.has_none.store(has_none, Relaxed);
    }

    /// What the thread was asked.
    pub(super) fn question(&self) -> Option<Question> {
        lock(&self.asked).take()
    }
}

impl Census {
    /// How many wait, of all threads that have answered.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.answers().map(|answer| answer.waiting).sum()
    }

    fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.threads.iter().filter_map(|thread| thread.answer.as_ref())
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Hosted { thread, answer } in &self.threads {
            match answer {
                Some(answer) => {
                    writeln!(f, "{thread}: {} wait, {} may go on", answer.waiting, answer.ready)?;
                }
                None => writeln!(f, "{thread}: in one task, and has not answered")?,
            }
        }
        let mut places: HashMap<String, usize> = HashMap::new();
        for wait in self.answers().flat_map(|answer| &answer.waits) {
            *places.entry(wait.to_string()).or_default() += 1;
        }
        let mut places: Vec<_> = places.into_iter().collect();
        places.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        places.iter().try_for_each(|(place, count)| write!(f, "\n{count} wait{place}"))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", if self.has_deadline { ", until a time at the latest:" } else { ":" })?;
        let Some(backtrace) = &self.backtrace else {
            return writeln!(f, "  too deep on its stack to say where");
        };
        let text = backtrace.to_string();
        of_fiber(&frames(&text)).iter().filter(|frame| !frame.is_ours()).try_for_each(|frame| {
            writeln!(f, "  {}", frame.name)?;
            frame.place.map_or(Ok(()), |place| writeln!(f, "    {place}"))
        })
    }
}

/// A frame of a backtrace that is displayed.
struct Frame<'a> {
    name: &'a str,
    /// If it is known.
    place: Option<&'a str>,
}

/// Each has a number and a name, and on the next line its place.
fn frames(text: &str) -> Vec<Frame<'_>> {
    let mut frames: Vec<Frame<'_>> = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.split_once(": ").filter(|(number, _)| number.parse::<u32>().is_ok()) {
            Some((_, name)) => frames.push(Frame { name, place: None }),
            None => {
                if let Some(last) = frames.last_mut() {
                    last.place = Some(line);
                }
            }
        }
    }
    frames
}

/// Those of the closure that the fiber runs, and above: what is below calls it.
fn of_fiber<'a, 'b>(frames: &'b [Frame<'a>]) -> &'b [Frame<'a>] {
    let below = |frames: &[Frame<'_>], what| frames.iter().rposition(|frame| frame.is(what));
    // The thread's are below the fiber's.
    let end = frames.iter().position(|frame| frame.is(BEGINS)).unwrap_or(frames.len());
    // What runs a task catches panics, and so does the task.
    let task = below(&frames[..end], CATCHES).unwrap_or(end);
    let end = below(&frames[..task], CATCHES).unwrap_or(task);
    &frames[..end]
}

/// The first function on a fiber's stack.
const BEGINS: &str = "fiber_begins_here";
/// What calls a closure whose panics are caught.
const CATCHES: &str = "do_call";

impl Frame<'_> {
    /// Whether it is of the function of that name, in whatever module: where there are no more
    /// than tables of lines, this is all that is known of it.
    fn is(&self, name: &str) -> bool {
        let own = self.name.split('<').next().unwrap_or_default();
        own.rsplit("::").next() == Some(name)
    }

    /// Whether it says nothing to users: how a wait goes, and who has called their closure.
    fn is_ours(&self) -> bool {
        let name = self.name.trim_start_matches('<');
        OURS.iter().any(|prefix| name.starts_with(prefix))
            || self.place.is_some_and(|place| place.contains("/library/"))
    }
}

const OURS: [&str; 9] = [
    "antiphon_",
    "antiphon::fiber::",
    "antiphon::pool::Pool<",
    "antiphon::pool::here::",
    "antiphon::stage::Shared<",
    "alloc::",
    "core::",
    "std::",
    "__rust",
];
