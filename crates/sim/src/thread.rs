//! A simulated thread, and what it is at.

use std::ptr::NonNull;
use std::rc::Rc;

use antiphon_platform::{Local, RANK};
use corosensei::Yielder;

use crate::buffer::Buffer;
use crate::fair::Fair;
use crate::random::Random;
use crate::sleep::Sleep;
use crate::spin::Spin;
use crate::step::Touch;
use crate::watch::{Look, Watch};
use crate::{OwnLine, Owns, Sim};

/// The action of a thread that has its core, or its next action when it gets the core back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Takes a step.
    Step,
    /// Computes; while it is off its core, `until_ns` is what is left.
    Computing { until_ns: u64 },
    /// Spins on a line.
    Watching(Watch),
    /// Spins, and the line has changed, so it is read again. Like a step, this is not interrupted.
    Rereading(Watch),
    /// Sleeps, or has not started.
    Asleep(Option<Sleep>),
    /// Handles interrupts, and there is none.
    Awaiting,
    /// Is over.
    Finished,
}

impl State {
    /// Whether it waits without giving its core away.
    pub(crate) fn spins(self) -> bool {
        matches!(self, Self::Watching(_) | Self::Rereading(_))
    }
}

/// One simulated thread.
pub(crate) struct Thread {
    pub(crate) core: u32,
    /// Whether the thread stays there.
    pub(crate) pinned: bool,
    pub(crate) state: State,
    /// Which of its foreseen turns is valid.
    pub(crate) turn: u32,
    /// Which of its waits this is; voids the deadlines of earlier ones.
    pub(crate) wait: u32,
    /// When it last ran again after a sleep; 0 if it never slept.
    pub(crate) up_ns: u64,
    pub(crate) fair: Fair,
    /// How long it has had a core, before it had it last.
    pub(crate) ran_ns: u64,
    /// How long the thread has waited for a core that it wanted, and since when it does, if it
    /// does.
    pub(crate) waited_ns: u64,
    pub(crate) wants_since_ns: Option<u64>,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) local: Rc<OwnLine<Local<Sim>>>,
    pub(crate) random: Random,
    pub(crate) operations: u64,
    /// The thread's rank by itself.
    pub(crate) rank: u8,
    /// The loans to the thread: how many, and the highest rank.
    pub(crate) loans: u32,
    pub(crate) lent: u8,
    /// Whether it owns a lock, as far as it has said so.
    pub(crate) owns: Owns,
    /// It is about to wake another.
    pub(crate) wakes: bool,
    /// The platform changes the words.
    pub(crate) uncounted: bool,
    pub(crate) buffer: Buffer,
    pub(crate) touch: Touch,
    /// While the thread spins: its own look, which the event loop takes in its place.
    pub(crate) look: Option<NonNull<Look<'static>>>,
    /// The value that it has found, if that ends the wait.
    pub(crate) found: Option<u64>,
    pub(crate) spin: Spin,
    /// How many spins it has begun and not ended, as it has said.
    pub(crate) spins: u32,
    /// It has given its core away itself.
    pub(crate) yielded: bool,
    /// The cost of its accesses that simulated time does not include yet, in picoseconds.
    pub(crate) rest_ps: i64,
    /// The time that interrupts have taken from it, and that it still has to make up for.
    pub(crate) stolen_ns: u64,
    /// It is new on its core.
    pub(crate) migrates: bool,
    /// It was woken by an interrupt.
    pub(crate) interrupts: bool,
}

impl Thread {
    pub(crate) fn new(core: u32, pinned: bool, random: Random) -> Self {
        Self {
            core,
            pinned,
            state: State::Asleep(None),
            turn: 0,
            wait: 0,
            up_ns: 0,
            fair: Fair::default(),
            ran_ns: 0,
            waited_ns: 0,
            wants_since_ns: None,
            yielder: std::ptr::null(),
            local: Rc::new(OwnLine(Local::NEW)),
            random,
            operations: 0,
            rank: RANK,
            loans: 0,
            lent: 0,
            owns: Owns::No,
            wakes: false,
            uncounted: false,
            buffer: Buffer::default(),
            touch: Touch::default(),
            look: None,
            found: None,
            spin: Spin::default(),
            spins: 0,
            yielded: false,
            rest_ps: 0,
            stolen_ns: 0,
            migrates: false,
            interrupts: false,
        }
    }
}
