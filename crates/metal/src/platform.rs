//! The kernel as a platform: the traits of `antiphon_platform` for `Metal`.

use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::fence;

use antiphon_platform::{
    Arena, Atomic, Atomics, Clock, Clocks, CpuId, Deadline, Hints, LightUnlock, Local, Parked,
    Platform, SocketId, ThreadId, Topology, Urgency, Waiter, WaiterRef, WordWaits,
};

use crate::kernel::state::Thread;
use crate::kernel::{cpu, schedule, thread, wake};
use crate::metal::Metal;
use crate::words::{U8, U16, U32, U64};
use crate::x86::{clock, cpu::tsc};

/// Number of waiter nodes: enough for eight waits at a time of 2048 threads.
const NODES: usize = 1 << 14;

static WAITERS: [Waiter<Metal>; NODES] = [const { Waiter::NEW }; NODES];
// SAFETY: the only arena of this platform; `Metal::arena` returns it.
static ARENA: Arena<Metal> = unsafe { Arena::new() };

impl Atomics for Metal {
    type U8 = U8;
    type U16 = U16;
    type U32 = U32;
    type U64 = U64;

    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
}

impl Topology for Metal {
    #[inline]
    fn cpus() -> u32 {
        cpu::count()
    }

    #[inline]
    fn cpu() -> CpuId {
        CpuId(cpu::number())
    }

    #[inline]
    fn socket() -> SocketId {
        SocketId(cpu::this().node.get().into())
    }

    #[inline]
    fn numa() -> bool {
        cpu::nodes() > 1
    }

    fn distance(one: CpuId, other: CpuId) -> u32 {
        u32::from(cpu::get(one.0).node.get() != cpu::get(other.0).node.get())
    }
}

impl Urgency for Metal {}

impl Clocks for Metal {
    fn now(clock: Clock) -> u64 {
        match clock {
            Clock::Monotonic | Clock::SeenMonotonic => clock::now_ns(),
            Clock::Realtime | Clock::SeenRealtime => clock::now_wall_ns(),
        }
    }

    #[inline]
    fn counter() -> u64 {
        tsc()
    }
}

impl LightUnlock for Metal {}

impl WordWaits for Metal {}

impl Hints for Metal {
    /// Returns whether other threads of this CPU are runnable: a spin keeps them from running.
    fn crowded() -> bool {
        schedule::has_others()
    }

    /// An estimate: a wake is an interrupt and a switch, without a system call.
    fn sleep_cost_ns() -> u32 {
        2_000
    }

    fn give_way() -> bool {
        schedule::yield_now()
    }
}

// SAFETY: the words are atomics of `core`; each index has a different entry of `WAITERS`, and only
// `ARENA` hands nodes out.
unsafe impl Platform for Metal {
    const WAITERS: u32 = NODES as u32;

    const COUNTERS: usize = 256;

    const COHORTS: usize = 512;

    #[inline]
    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>> {
        WAITERS.get(index as usize)
    }

    #[inline]
    unsafe fn arena() -> &'static Arena<Self> {
        &ARENA
    }

    #[inline]
    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R {
        f(&cpu::current().local)
    }

    #[inline]
    fn thread() -> ThreadId {
        ThreadId(cpu::current().number())
    }

    fn alive(thread: ThreadId) -> bool {
        thread::is_alive(thread.0)
    }

    #[inline]
    fn epoch() -> u32 {
        1
    }

    /// Marsaglia's xorshift, seeded by the thread's number: the same sequence in each run.
    fn random() -> u32 {
        Self::local(|local| {
            let seed = match local.seed.load(Relaxed) {
                0 => Self::thread().0.wrapping_mul(0x9e37_79b9) | 1,
                seed => seed,
            };
            let mut next = seed;
            next ^= next << 13;
            next ^= next >> 17;
            next ^= next << 5;
            local.seed.store(next, Relaxed);
            next
        })
    }

    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked {
        // Relaxed: published by the token.
        let me = core::ptr::from_ref(cpu::current()).expose_provenance();
        waiter.handle.store(me as u64, Relaxed);
        let deadline_ns = deadline.map(monotonic_ns);
        if schedule::sleep(&waiter.token, deadline_ns) {
            Parked::Woken
        } else {
            timed_out(deadline)
        }
    }

    fn unpark(waiter: WaiterRef) {
        if let Some((token, sleeper)) = sleep_of(waiter) {
            schedule::wake(token, sleeper);
        }
    }

    fn unpark_all(waiters: impl Iterator<Item = WaiterRef>) {
        if wake::is_batched() {
            schedule::wake_all(waiters.filter_map(sleep_of));
        } else {
            waiters.for_each(Self::unpark);
        }
    }
}

/// Returns the token of a waiter, and how its thread is found while it sleeps. `None` if the node
/// has changed hands.
#[inline]
fn sleep_of(waiter: WaiterRef) -> Option<(&'static U32, impl FnOnce() -> *const Thread)> {
    let node = WAITERS.get(waiter.index as usize)?;
    // Relaxed: the check only keeps late wakes from most of the node's next waits; the token
    // orders.
    if node.generation.load(Relaxed) != waiter.generation {
        return None;
    }
    // Relaxed: acquired with the token.
    let thread = || core::ptr::with_exposed_provenance(node.handle.load(Relaxed) as usize);
    Some((&node.token, thread))
}

/// Converts a deadline to the clock of the timer. The time of day is never set here, so the
/// difference of the clocks is constant.
fn monotonic_ns(deadline: Deadline) -> u64 {
    let ahead_ns = match deadline.clock {
        Clock::Monotonic | Clock::SeenMonotonic => 0,
        Clock::Realtime | Clock::SeenRealtime => clock::now_wall_ns() - clock::now_ns(),
    };
    deadline.ns.saturating_sub(ahead_ns)
}

/// Returns the result of a sleep that ended without a wake: a timeout if the deadline has passed,
/// otherwise a spurious return.
fn timed_out(deadline: Option<Deadline>) -> Parked {
    let passed = deadline.is_some_and(|deadline| Metal::now(deadline.clock) >= deadline.ns);
    if passed { Parked::TimedOut } else { Parked::Woken }
}
