//! An event loop for programs that must be on time and compute all the time: it runs timers when
//! they are due, and otherwise the most important work.
//!
//! ```
//! # use std::sync::Arc;
//! # use antiphon_linux::Linux;
//! # use antiphon_platform::{Clock, Clocks as _};
//! # use antiphon_runtime::event_loop::Ring;
//! use antiphon_runtime::event_loop::{Event, EventLoop, Options, Wait};
//!
//! /// Waits for the time, and for nothing else.
//! struct Sleep;
//!
//! impl Wait for Sleep {
//!     // …
//! #     type Platform = Linux;
//! #     type Source = ();
//! #     type Ready = u8;
//! #     type Error = ();
//! #     fn now_ns() -> u64 { Linux::now(Clock::Monotonic) }
//! #     fn wait(&mut self, _: Option<u64>, _: &mut dyn FnMut(u64, u8)) {
//! #         std::thread::yield_now();
//! #     }
//! #     fn ring(&self) -> Ring { Arc::new(|| {}) }
//! #     fn add(&mut self, (): (), _: u64) -> Result<(), ()> { Err(()) }
//! #     fn remove(&mut self, _: u64) {}
//! }
//!
//! let mut events = EventLoop::new(Sleep, Options::default());
//! let second_ns = Sleep::now_ns() + 1_000_000;
//! events.submit(Event::timer(second_ns, |_| println!("on time")));
//! events.submit(Event::best_effort(0, |context| {
//!     // Until then there is time for something else.
//!     assert!(context.left_ns() <= 1_000_000);
//! }));
//! // Nothing is left to be done.
//! let _ = events.run();
//! ```
//!
//! No callback is preempted by another one: they run on one thread, may share data, and need no
//! locks. Long work runs in [steps](Event::best_effort_in_steps), and each step is told until when
//! it may last ([`Context::until_ns`]). Between events the loop asks its tier ([`Cooperate`])
//! whether others that share its CPU should run.
//!
//! | file | contents |
//! |---|---|
//! | `event`, `step` | events: timers, work, steps |
//! | `agenda` | the order of events |
//! | `submit` | submitting and cancelling events |
//! | `turn` | the loop itself: which event is called next, and when it polls |
//! | `call` | one callback |
//! | `context` | a callback's access to its loop |
//! | `inbox`, `handle` | requests of other threads |
//! | `task` | futures |
//! | `colours` | events of one program on several loops |
//! | `wait` | the clock, the sleep, the sources: implemented per platform |
//! | `stats`, `histogram`, `name`, `sight` | tardiness, running times, and names of events |
//! | `options` | the parameters |
//!
//! After Krasic, Saubhasik, Sinha and Goel, "Fair and Timely Scheduling via Cooperative Polling"
//! (EuroSys 2009), §2. The differences here:
//!
//! - An event may continue in steps, as a timer or as work, or sleep until it is woken; sources and
//!   futures are such events.
//! - A callback knows its budget, within which it may process several pieces.
//! - The loop does not poll after each event, but when its slice has ended, others are due, or the
//!   work of another is more important than its own.

mod agenda;
mod call;
mod colours;
mod context;
mod event;
mod handle;
mod histogram;
mod inbox;
mod name;
mod options;
mod sight;
mod stats;
mod step;
mod submit;
mod task;
#[cfg(test)]
mod tests;
mod turn;
mod wait;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::coop::{Alone, Answer, Cooperate};

use agenda::Agenda;
use context::Current;
use inbox::{Post, Shared};
use stats::Kinds;

pub use colours::{Call, Colours, Next, Palette, Taken};
pub use context::{Callback, Context};
pub use event::{Event, Once, Steps};
pub use handle::{Gone, Handle, Lookout, Sighting};
pub use histogram::Histogram;

pub use name::Name;
pub use options::Options;
pub use stats::{Stats, Trouble};
pub use step::{Due, EventId, Step};
pub use task::{Spawned, Task};
pub use turn::{End, Turn};
pub use wait::{Ring, Wait};

/// Called with the loop's earliest release whenever it changes.
type Published = Box<dyn FnMut(Option<u64>)>;

/// A hook that is called when an event is ready but the loop goes on with another.
struct PassedOver {
    id: u64,
    /// Whether the hook was called since the event's last call.
    told: bool,
    tell: Box<dyn FnMut()>,
}

/// A loop, which belongs to one thread.
pub struct EventLoop<W: Wait> {
    wait: W,
    options: Options,
    cooperate: Box<dyn Cooperate>,
    /// Whether the tier was set by the owner of the loop.
    cooperates: bool,
    shared: Arc<Shared<W>>,
    agenda: Agenda<W>,
    kinds: Kinds,
    /// The event whose callback is running.
    current: Option<Current>,
    /// The latest reading of the clock: read after each callback and each wait.
    now_ns: u64,
    /// The result of the last poll, its time, and the latest turn before it.
    answer: Answer,
    polled_ns: u64,
    polled_turn: u64,
    /// When sources were last checked.
    looked_ns: u64,
    sources: usize,
    stopped: bool,
    /// Whether the loop is inside another loop, which waits for it.
    nested: bool,
    /// The release that was published last.
    published: Option<u64>,
    publish: Option<Published>,
    trouble: Option<Box<dyn FnMut(Trouble)>>,
    passed_over: Vec<PassedOver>,
    /// In reverse order; empty between uses, except for posts that a panic has left.
    posts: Vec<Post<W>>,
}

impl<W: Wait> EventLoop<W> {
    /// Creates a loop without events, which is [alone](Alone) on its CPU until a tier is set.
    pub fn new(wait: W, options: Options) -> Self {
        let shared = Arc::new(Shared::new(wait.ring()));
        Self {
            wait,
            options,
            cooperate: Box::new(Alone),
            cooperates: false,
            shared,
            agenda: Agenda::new(),
            kinds: Kinds::default(),
            current: None,
            now_ns: 0,
            answer: Answer::default(),
            polled_ns: 0,
            polled_turn: 0,
            looked_ns: 0,
            sources: 0,
            stopped: false,
            nested: false,
            published: None,
            publish: None,
            trouble: None,
            passed_over: Vec::new(),
            posts: Vec::new(),
        }
    }

    /// Stops the loop after the present callback. A loop that does not run stops at once when it is
    /// run.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Shares the CPU through `tier` from now on, or through the [platform's](Wait::tier) tier
    /// before it.
    pub fn cooperate_by(&mut self, tier: Box<dyn Cooperate>) {
        // The former tier is left first: a thread may have one seat.
        self.cooperate = Box::new(Alone);
        self.cooperate = self.wait.tier(tier);
        // Poll at once: the tier has told nothing yet.
        self.answer = Answer { poll_at_ns: Some(0), ..Answer::default() };
        self.cooperates = true;
    }

    /// Calls `publish` with the loop's earliest release, now and whenever it changes; while a timer
    /// is being called, that is the timer's release. For threads that watch whether the loop is on
    /// time. It is called often, and must be quick.
    pub fn publish_to(&mut self, mut publish: impl FnMut(Option<u64>) + 'static) {
        self.published = self.agenda.release_ns();
        publish(self.published);
        self.publish = Some(Box::new(publish));
    }

    /// Calls `tell` when something keeps the loop from being on time.
    pub fn on_trouble(&mut self, tell: impl FnMut(Trouble) + 'static) {
        self.trouble = Some(Box::new(tell));
    }

    /// Calls `tell` when the loop goes on with another event although this one is ready: once,
    /// until the event was called.
    fn on_passed_over(&mut self, EventId(id): EventId, tell: impl FnMut() + 'static) {
        // Hooks of events that have ended are of no use.
        self.passed_over.retain(|passed| self.agenda.is_there(passed.id));
        self.passed_over.push(PassedOver { id, told: false, tell: Box::new(tell) });
    }

    /// Called when the loop goes on with event `next`, or lets others run, or ends (`None`).
    fn goes_on_with(&mut self, next: Option<u64>) {
        for passed in &mut self.passed_over {
            if next == Some(passed.id) {
                passed.told = false;
            } else if !passed.told && self.agenda.is_ready(passed.id) {
                passed.told = true;
                (passed.tell)();
            }
        }
    }

    /// The figures of the loop's events, by name, after the last [reset](Self::reset_stats).
    #[must_use]
    pub fn stats(&self) -> &[Stats] {
        self.kinds.all()
    }

    /// Resets all figures.
    pub fn reset_stats(&mut self) {
        self.kinds.reset();
    }

    /// Returns the number of events, without that which is being called.
    #[must_use]
    pub fn len(&self) -> usize {
        self.agenda.len()
    }

    /// Returns whether there are no events, apart from one that is being called.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.agenda.is_empty()
    }

    /// The earliest release of the loop's timers, in nanoseconds.
    #[must_use]
    pub fn next_release_ns(&self) -> Option<u64> {
        self.agenda.release_ns()
    }

    /// Returns the loop's implementation of [`Wait`].
    #[must_use]
    pub fn waits(&self) -> &W {
        &self.wait
    }

    fn publish(&mut self) {
        let current = self.current.as_ref().and_then(|current| current.release_ns);
        let release_ns = [current, self.agenda.release_ns()].into_iter().flatten().min();
        if release_ns != self.published {
            self.published = release_ns;
            self.cooperate.tell(release_ns);
            if let Some(publish) = &mut self.publish {
                publish(release_ns);
            }
        }
    }
}

impl<W: Wait> Drop for EventLoop<W> {
    /// Callbacks that [may not be dropped](Callback::cancel) yet are called until they may.
    fn drop(&mut self) {
        if !self.agenda.cancel_all() {
            self.run_off();
        }
        drop(self.shared.close());
    }
}

impl<W: Wait> fmt::Debug for EventLoop<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("events", &self.agenda.len())
            .field("next_release_ns", &self.agenda.release_ns())
            .finish_non_exhaustive()
    }
}
