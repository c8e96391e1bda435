//! Models of waits whose sleeps are the kernel's: a waiter parks by its token, and is woken through
//! its CPU's inbox, by an interrupt only if the CPU is halted. A lost wake-up is a deadlock.

use std::ptr;
use std::sync::atomic::Ordering::{self, Relaxed};

use antiphon_check::{Check, choose, probe};
use antiphon_platform::{
    Arena, Atomic, Atomics, Clock, Clocks, CpuId, Deadline, Hints, LightUnlock, Local, Parked,
    Platform, ThreadId, Topology, Urgency, Waiter, WaiterRef, WordWaits,
};
use antiphon_rivals::classic::Ticket;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::policy;
use antiphon_wakeup::kick;

use super::caller::Caller;
use super::cpu::{Cpu, at_home};
use crate::bounds::PLAIN;
use crate::condvar::{all_at_once, one_each, one_gives_up};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::Sleepy;
use crate::program::{GAVE_UP, destruction, exclusion};

type Simple = Ticket<Kernel>;
type Mutex = ShflMutex<Kernel, policy::None, Sleepy>;

pub fn entries() -> Vec<Entry> {
    let timed = PLAIN.expiries(1);
    all_of([
        Subject("metal-condvar").models([
            model("notifies-1+1", one_each::<Kernel, Simple>(1), PLAIN),
            model("notifies-2+1", one_each::<Kernel, Simple>(2), PLAIN),
            model("broadcasts-2+1", all_at_once::<Kernel, Simple>(2), PLAIN).reaches(&[
                "kicked together",
                "at once",
                "rose",
            ]),
            model("gives-up-1+1+1", one_gives_up::<Kernel, Simple>(), timed)
                .reaches(GAVE_UP)
                .long(),
            model("with-mutex-1+1", one_each::<Kernel, Mutex>(1), PLAIN),
        ]),
        Subject("metal-mutex").models([
            model("excludes-2x1", exclusion::<Mutex>(2, 1), PLAIN),
            model("destroyed-2x1", destruction::<Mutex>(), PLAIN).reaches(&["retired"]),
        ]),
    ])
}

/// The checker, with the sleeps of the kernel: each thread has a CPU of its own.
pub struct Kernel;

const WAITERS: usize = 8;
/// More than a model's threads.
const CPUS: usize = 16;

static NODES: [Waiter<Kernel>; WAITERS] = [const { Waiter::NEW }; WAITERS];
// SAFETY: the only arena of this platform; `Kernel::arena` returns it.
static ARENA: Arena<Kernel> = unsafe { Arena::new() };
static LOCALS: [Local<Kernel>; CPUS] = [const { Local::NEW }; CPUS];
static ALL: [Cpu; CPUS] = [const { Cpu::new() }; CPUS];

impl Atomics for Kernel {
    type U8 = <Check as Atomics>::U8;
    type U16 = <Check as Atomics>::U16;
    type U32 = <Check as Atomics>::U32;
    type U64 = <Check as Atomics>::U64;

    fn fence(order: Ordering) {
        Check::fence(order);
    }
}

impl Topology for Kernel {
    fn cpus() -> u32 {
        Check::cpus()
    }

    fn cpu() -> CpuId {
        CpuId(Check::thread().0)
    }
}

impl Clocks for Kernel {
    fn now(clock: Clock) -> u64 {
        Check::now(clock)
    }
}

impl Urgency for Kernel {}

impl LightUnlock for Kernel {}

impl WordWaits for Kernel {}

impl Hints for Kernel {}

// SAFETY: words are the checker's; a node is an entry of `NODES`, and `ARENA` alone hands them out.
unsafe impl Platform for Kernel {
    const WAITERS: u32 = WAITERS as u32;

    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>> {
        NODES.get(index as usize)
    }

    unsafe fn arena() -> &'static Arena<Self> {
        &ARENA
    }

    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R {
        f(&LOCALS[Check::thread().0 as usize % CPUS])
    }

    fn thread() -> ThreadId {
        Check::thread()
    }

    fn alive(_: ThreadId) -> bool {
        true
    }

    fn epoch() -> u32 {
        1
    }

    fn random() -> u32 {
        Check::random()
    }

    /// As that of `Metal`.
    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked {
        let cpu = &ALL[Check::thread().0 as usize % CPUS];
        // Relaxed: published by the token.
        waiter.handle.store(ptr::from_ref(cpu).expose_provenance() as u64, Relaxed);
        if cpu.sleep(&waiter.token, deadline.is_some()) { Parked::Woken } else { Parked::TimedOut }
    }

    /// As that of `Metal`.
    fn unpark(waiter: WaiterRef) {
        if let Some((token, sleeper)) = sleep_of(waiter) {
            Cpu::wake(token, sleeper);
        }
    }

    /// As that of `Metal`, with kicks one by one or together: by one command to all others, or
    /// each.
    fn unpark_all(waiters: impl Iterator<Item = WaiterRef>) {
        let own = &ALL[Check::thread().0 as usize % CPUS];
        let reached = match choose(3) {
            0 => return waiters.for_each(Self::unpark),
            1 => 4,
            _ => CPUS,
        };
        let caller = Caller::on(own.line(), ALL[..reached].iter().map(Cpu::line));
        let sleepers = waiters.filter_map(sleep_of);
        let sleepers = sleepers.map(|(token, sleeper)| (token, || at_home(sleeper())));
        // SAFETY: the CPUs are static.
        unsafe { kick::wake_all::<_, _, _, CPUS>(&caller, sleepers) };
        probe("kicked together");
    }
}

/// As in the `platform` of `antiphon-metal`.
fn sleep_of(
    waiter: WaiterRef,
) -> Option<(&'static <Check as Atomics>::U32, impl FnOnce() -> *const Cpu)> {
    let node = NODES.get(waiter.index as usize)?;
    // Relaxed: it only keeps late wakes from most of the node's next waits; the token orders.
    if node.generation.load(Relaxed) != waiter.generation {
        return None;
    }
    // Relaxed: acquired with the token.
    let cpu = || ptr::with_exposed_provenance::<Cpu>(node.handle.load(Relaxed) as usize);
    Some((&node.token, cpu))
}
