//! A simulated thread and its state.

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

/// The activity of a thread on its core, or its next activity when it gets the core back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The thread takes a step.
    Step,
    /// The thread computes; while it is off its core, `until_ns` is the remaining time.
    Computing { until_ns: u64 },
    /// The thread spins on a line.
    Watching(Watch),
    /// The thread spins, and rereads its line, which has changed. Like a step, this is not
    /// interrupted.
    Rereading(Watch),
    /// The thread sleeps, or has not started.
    Asleep(Option<Sleep>),
    /// The thread handles interrupts, and waits for one.
    Awaiting,
    /// The thread has ended.
    Finished,
}

impl State {
    /// Returns whether the thread waits without giving its core away.
    pub(crate) fn spins(self) -> bool {
        matches!(self, Self::Watching(_) | Self::Rereading(_))
    }
}

/// One simulated thread.
pub(crate) struct Thread {
    pub(crate) core: u32,
    /// The virtual machine that it runs in.
    pub(crate) guest: u32,
    /// Whether the thread stays on its core.
    pub(crate) pinned: bool,
    pub(crate) state: State,
    /// The number of its valid scheduled turn.
    pub(crate) turn: u32,
    /// The number of its present wait; voids the deadlines of earlier waits.
    pub(crate) wait: u32,
    /// The time at which it last ran again after a sleep; 0 if it never slept.
    pub(crate) up_ns: u64,
    pub(crate) fair: Fair,
    /// The time that it has had a core, without the present or last turn.
    pub(crate) ran_ns: u64,
    /// The time that the thread has waited for a core; the next field is the start of its present
    /// wait for one, if any.
    pub(crate) waited_ns: u64,
    pub(crate) wants_since_ns: Option<u64>,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) local: Rc<OwnLine<Local<Sim>>>,
    pub(crate) random: Random,
    pub(crate) operations: u64,
    /// The thread's rank without loans.
    pub(crate) rank: u8,
    /// The number of loans to the thread; the next field has the highest lent rank.
    pub(crate) loans: u32,
    pub(crate) lent: u8,
    /// Whether it owns a lock, as it has reported.
    pub(crate) owns: Owns,
    /// Whether it is about to wake another thread.
    pub(crate) wakes: bool,
    /// Whether its accesses are those of the platform, which are not counted.
    pub(crate) uncounted: bool,
    pub(crate) buffer: Buffer,
    pub(crate) touch: Touch,
    /// While the thread spins: its check of the word, which the event loop runs for it.
    pub(crate) look: Option<NonNull<Look<'static>>>,
    /// The value that it has found, if the value ends the wait.
    pub(crate) found: Option<u64>,
    pub(crate) spin: Spin,
    /// Number of its open spins, as it has reported.
    pub(crate) spins: u32,
    /// Whether it has given its core away itself.
    pub(crate) yielded: bool,
    /// The cost of its accesses that simulated time does not include yet, in picoseconds.
    pub(crate) rest_ps: i64,
    /// The time that interrupts have taken from it, and that it still has to make up for.
    pub(crate) stolen_ns: u64,
    /// Whether it is new on its core.
    pub(crate) migrates: bool,
    /// Whether an interrupt woke it.
    pub(crate) interrupts: bool,
    /// While it holds its kicks back: the threads that are to be kicked.
    pub(crate) held: Option<Vec<usize>>,
    /// Number of its open critical sections, as it has told the host.
    pub(crate) sections: u32,
    /// Whether the end of its sleep was its deadline, and it has not arrived since.
    pub(crate) due: bool,
    /// Whether it was woken while its virtual CPU had no CPU, and has not run since.
    pub(crate) woken_off: bool,
    /// The time at which its virtual CPU last lost its CPU, if it spun then.
    pub(crate) spun_off_ns: Option<u64>,
}

impl Thread {
    pub(crate) fn new(core: u32, pinned: bool, guest: u32, random: Random) -> Self {
        Self {
            core,
            guest,
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
            held: None,
            sections: 0,
            due: false,
            woken_off: false,
            spun_off_ns: None,
        }
    }
}
