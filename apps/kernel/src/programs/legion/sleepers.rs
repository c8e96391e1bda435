//! A task is sent to one CPU whose processor sleeps, by an active message: its action claims the
//! task in the interrupt.
//!
//! - SLEEPER-1: a bit of `idle` is set by the CPU itself, when it can take a task, and is taken
//!   away by the publisher, which alone sends. So a place has one task at most.

use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};

use antiphon_metal::kernel::message::{self, Action};
use antiphon_metal::kernel::state::Thread;
use antiphon_metal::kernel::{cpu, thread};

use super::processors::{Board, Way};

/// No task.
const NONE: usize = usize::MAX;

pub struct Sleepers {
    action: Action,
    board: AtomicPtr<Board>,
    /// The CPUs that can take a task: a bit for each.
    idle: AtomicU64,
    places: Vec<Place>,
    is_over: AtomicBool,
}

/// What a CPU is sent.
struct Place {
    sent: AtomicUsize,
    /// The task that the action has claimed for the processor.
    claimed: AtomicUsize,
    processor: AtomicPtr<Thread>,
}

/// The sleepers that the action is for: the image has them one after the other.
static PRESENT: AtomicPtr<Sleepers> = AtomicPtr::new(ptr::null_mut());

impl Sleepers {
    /// `is_direct`: the action runs the task itself. `None`: the kernel has no entry for an action.
    pub fn new(is_direct: bool) -> Option<Self> {
        let action = message::register(if is_direct { run_here } else { claim }, 0).ok()?;
        let place = |_| Place {
            sent: AtomicUsize::new(NONE),
            claimed: AtomicUsize::new(NONE),
            processor: AtomicPtr::new(ptr::null_mut()),
        };
        Some(Self {
            action,
            board: AtomicPtr::new(ptr::null_mut()),
            idle: AtomicU64::new(0),
            places: (0..cpu::count()).map(place).collect(),
            is_over: AtomicBool::new(false),
        })
    }

    /// The place of this CPU, and its bit.
    fn here(&self) -> (&Place, u64) {
        let number = cpu::number();
        (&self.places[number as usize], 1 << number)
    }

    fn board(&self) -> &Board {
        // SAFETY: `begin` has set it, before any message. It is never freed.
        unsafe { &*self.board.load(Relaxed) }
    }

    fn present() -> &'static Self {
        // Acquire: pairs with the release in `begin`.
        // SAFETY: `begin` has set it, before any message. It is never freed.
        unsafe { &*PRESENT.load(Acquire) }
    }
}

/// The action: claims the task that was sent here, and makes the processor runnable.
fn claim(_: usize) {
    let (place, _) = Sleepers::present().here();
    // Relaxed, both: the message orders the task, and the wake what is claimed.
    let task = place.sent.swap(NONE, Relaxed);
    place.claimed.store(task, Relaxed);
    // SAFETY: threads are never freed; set before the CPU was idle.
    if let Some(processor) = unsafe { place.processor.load(Relaxed).as_ref() } {
        thread::unblock(processor);
    }
}

/// The action: runs the task that was sent here.
fn run_here(_: usize) {
    let sleepers = Sleepers::present();
    let (place, bit) = sleepers.here();
    // Relaxed: the message orders it.
    let task = place.sent.swap(NONE, Relaxed);
    sleepers.board().run(task);
    sleepers.board().is_quiet();
    // Release: that the place is empty; pairs with the acquire in `publish`.
    sleepers.idle.fetch_or(bit, Release);
}

impl Way for Sleepers {
    fn begin(&'static self, board: &'static Board) {
        self.board.store(ptr::from_ref(board).cast_mut(), Relaxed);
        // Release: the board; pairs with the acquire in `present`.
        PRESENT.store(ptr::from_ref(self).cast_mut(), Release);
    }

    fn publish(&self, task: usize) {
        // Acquire: that the place is empty; pairs with the releases where bits are set.
        let mut idle = self.idle.load(Acquire);
        while idle == 0 {
            core::hint::spin_loop();
            idle = self.idle.load(Acquire);
        }
        let number = idle.trailing_zeros();
        // Relaxed, both: SLEEPER-1, and the message orders them.
        self.idle.fetch_and(!(1 << number), Relaxed);
        self.places[number as usize].sent.store(task, Relaxed);
        message::post(number, self.action);
    }

    fn serve(&self, board: &Board) {
        let (place, bit) = self.here();
        let me = ptr::from_ref(cpu::current()).cast_mut();
        place.processor.store(me, Relaxed);
        while !self.is_over.load(Relaxed) {
            board.falls_asleep();
            // Release: the thread, and an empty place; pairs with the acquire in `publish`.
            self.idle.fetch_or(bit, Release);
            let mut task = NONE;
            while task == NONE && !self.is_over.load(Relaxed) {
                thread::block();
                task = place.claimed.swap(NONE, Relaxed);
            }
            board.wakes_up();
            if task != NONE {
                board.run(task);
            }
        }
    }

    fn end(&self) {
        self.is_over.store(true, Relaxed);
        for place in &self.places {
            // SAFETY: threads are never freed.
            if let Some(processor) = unsafe { place.processor.load(Relaxed).as_ref() } {
                thread::unblock(processor);
            }
        }
        message::unregister(self.action).expect("it is registered");
    }
}
