//! The implementation of the platform traits for the running thread of the simulation.

use core::sync::atomic::Ordering::{self, Relaxed};

use antiphon_platform::{
    Arena, Atomic, AtomicInteger, Atomics, Clock, Clocks, CpuId, Deadline, Hint, Hints, Indicator,
    LightUnlock, Local, Parked, Platform, SocketId, ThreadId, Topology, Unsupported, Urgency,
    Waiter, WaiterRef, WordWaits,
};

use crate::atomic::{SimU8, SimU16, SimU32, SimU64};
use crate::buffer::drain;
use crate::nodes::NODES;
use crate::parking;
use crate::step::{call, heavy_fence, step};
use crate::thread::State;
use crate::word;
use crate::words;
use crate::workload::{Owns, owns};
use crate::world::{World, local, simulated, with};

/// The simulated machine as a platform. All of its time is simulated time.
///
/// Its functions panic outside a thread of a [`Simulation`](crate::Simulation). Of the operations
/// on its atomic words, only waits panic there, and only if they would have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sim;

/// The simulated time of day at which a simulation starts: far from the monotonic clock, so that a
/// deadline in the wrong clock is noticed.
const REALTIME_START_NS: u64 = 1_000_000_000_000_000_000;

pub(crate) fn monotonic_ns(deadline: Deadline) -> u64 {
    match deadline.clock {
        Clock::Monotonic | Clock::SeenMonotonic => deadline.ns,
        Clock::Realtime | Clock::SeenRealtime => deadline.ns.saturating_sub(REALTIME_START_NS),
    }
}

/// Runs read-modify-writes of the platform itself: they take time, but are not counted as the
/// lock's.
fn uncounted<R>(access: impl FnOnce() -> R) -> R {
    let set = |uncounted| {
        with(|world| {
            let me = world.me();
            world.threads[me].uncounted = uncounted;
        });
    };
    set(true);
    let done = access();
    set(false);
    done
}

/// Changes the number of open spins of the calling thread; returns the new number.
fn spins(change: impl FnOnce(u32) -> u32) -> u32 {
    with(|world| {
        let me = world.me();
        let spins = &mut world.threads[me].spins;
        *spins = change(*spins);
        *spins
    })
}

/// Changes the number of open sections of the calling thread, as its host sees it.
fn sections(change: impl FnOnce(u32) -> u32) {
    step(|world| world.machine.hit_ns);
    with(|world| {
        let me = world.me();
        world.threads[me].sections = change(world.threads[me].sections);
    });
}

fn arena() -> &'static Arena<Sim> {
    &with(|world| world.process).arena.0
}

impl Atomics for Sim {
    type U8 = SimU8;
    type U16 = SimU16;
    type U32 = SimU32;
    type U64 = SimU64;

    fn fence(order: Ordering) {
        if order == Ordering::SeqCst && simulated() {
            drain();
            step(|world| world.machine.fence_ns);
        }
    }
}

impl Topology for Sim {
    fn cpus() -> u32 {
        with(|world| world.machine.cores())
    }

    fn cpu() -> CpuId {
        with(|world| CpuId(world.my_core()))
    }

    fn socket() -> SocketId {
        with(|world| SocketId(world.machine.socket_of(world.my_core())))
    }

    fn numa() -> bool {
        with(|world| world.machine.topology.nodes() > 1)
    }

    /// The class of the distance, by levels and hops.
    fn distance(one: CpuId, other: CpuId) -> u32 {
        with(|world| world.machine.topology.class(one.0, other.0) as u32)
    }

    fn tiered() -> bool {
        with(|world| world.machine.topology.tiered())
    }
}

impl Urgency for Sim {
    /// The rank that the thread has [set](crate::set_rank), or the lent rank if that is higher.
    fn rank() -> u8 {
        crate::effective_rank()
    }

    /// Lends a rank. Costs as much as a wake, because it is a system call.
    fn lend(thread: ThreadId, rank: u8) -> Result<(), Unsupported> {
        call(|world| world.machine.wake_ns);
        with(|world| world.lend(thread.0 as usize - 1, rank));
        Ok(())
    }

    fn reclaim(thread: ThreadId) {
        call(|world| world.machine.wake_ns);
        with(|world| world.reclaim(thread.0 as usize - 1));
    }
}

impl Clocks for Sim {
    /// Nanoseconds of simulated time; reading the clock takes time.
    fn now(clock: Clock) -> u64 {
        step(|world| world.machine.clock_ns);
        let now_ns = with(|world| world.now_ns);
        match clock {
            Clock::Monotonic | Clock::SeenMonotonic => now_ns,
            Clock::Realtime | Clock::SeenRealtime => now_ns + REALTIME_START_NS,
        }
    }

    /// In nanoseconds of simulated time; each node's counters are ahead by
    /// [`clock_offsets_ns`](crate::Machine::clock_offsets_ns).
    fn counter() -> u64 {
        step(|world| world.machine.clock_ns);
        with(|world| world.clocks.read_ns(world.machine.socket_of(world.my_core()), world.now_ns))
    }

    /// Computes until then, with a reading of the counter at each end.
    fn counter_after(value: u64) -> u64 {
        loop {
            let now = Self::counter();
            if now > value {
                return now;
            }
            crate::work((value - now).max(1));
        }
    }
}

impl LightUnlock for Sim {
    unsafe fn store_unless(word: *const SimU8, value: u8, flag: *const SimU16) -> bool {
        // SAFETY: the caller promises that both are valid until the store takes effect. The store
        // below takes effect last, and neither is accessed after it.
        let (word, flag) = unsafe { (&*word, &*flag) };
        let raised = flag.load(Relaxed) != 0;
        if raised {
            return false;
        }
        if !simulated() {
            word.store(value, Relaxed);
            return true;
        }
        // The flag is checked again in the instant in which the store is posted or done: a thread
        // that raised it in between restarts this section, and a thread that raises it later waits
        // in its heavy fence for stores that were posted before.
        word::store(word, u64::from(value), |world| world.peek(flag) != 0)
    }

    fn light() -> bool {
        simulated() && with(|world| world.machine.light && !world.heeds_sections())
    }

    fn fenced() -> bool {
        Self::light()
    }

    /// Does nothing: a heavy fence drains the stores of all other threads, in one instant.
    fn light_fence() {}

    fn heavy_fence() -> Result<(), Unsupported> {
        heavy_fence();
        Ok(())
    }
}

impl WordWaits for Sim {
    fn waits_on_words() -> bool {
        with(|world| !world.model.fibers)
    }

    fn wait_on(word: &SimU64, low: u32, place: u32, deadline: Option<Deadline>) -> Parked {
        words::wait(word, low, place, deadline.map(monotonic_ns))
    }

    fn wake_on(word: *const SimU64, places: u32, count: u32) -> u32 {
        words::wake(word.addr(), places, count)
    }
}

impl Hints for Sim {
    /// Spins are counted as on Linux, in a word that all threads share, with the cost of its
    /// accesses.
    fn hint(hint: Hint) {
        let spinners = || with(|world| world.spinners());
        match hint {
            Hint::SpinBegin => {
                spins(|spins| spins + 1);
                uncounted(|| spinners().fetch_add(1, Relaxed));
            }
            Hint::SpinEnd => {
                spins(|spins| spins - 1);
                uncounted(|| spinners().fetch_sub(1, Relaxed));
            }
            Hint::Owns => owns(Owns::Yes),
            Hint::SectionBegin => sections(|open| open + 1),
            Hint::SectionEnd => sections(|open| open.saturating_sub(1)),
            Hint::Released => with(World::gives_back),
            Hint::LooksAgain { .. } => {}
        }
    }

    /// Sections are told where a host heeds them, for the price of a store.
    fn heeds_sections() -> bool {
        simulated() && with(|world| world.heeds_sections())
    }

    /// Returns whether another thread waits for the caller's core, or the caller, if it spins,
    /// leaves no core for the thread that it waits for. A kernel would know the first exactly; by
    /// the second, an oversubscribed machine looks crowded even from a core that is not.
    fn crowded() -> bool {
        !leaves_cores(1)
    }

    fn roomy() -> bool {
        leaves_cores(2)
    }

    /// What the machine says, or the cost of a wake on it, without idle states of its CPUs.
    fn sleep_cost_ns() -> u32 {
        let ns = with(|world| {
            let machine = &world.machine;
            machine.sleep_cost_ns.unwrap_or(machine.wake_ns + machine.wake_latency_ns)
        });
        u32::try_from(ns).unwrap_or(u32::MAX)
    }

    /// Exact, as a kernel knows it for its own CPU.
    fn slice_left_ns() -> u32 {
        with(|world| world.slice_left_ns())
    }

    /// Exact, as a kernel knows it; in a guest, of virtual CPUs, unless the host tells more.
    fn runs(thread: ThreadId) -> bool {
        with(|world| world.seems_to_run(thread.0 as usize - 1))
    }
}

// SAFETY: words behave as atomics of `core`, with one thread at a time; each node is an entry of
// the world's `Nodes`, and only the world's arena hands them out.
unsafe impl Platform for Sim {
    const WAITERS: u32 = NODES;

    const COHORTS: usize = 512;

    /// A hash of the line's number, because addresses differ from run to run. Outside a simulation,
    /// where only uncontended locks can be taken, lines have no numbers.
    fn spread(address: usize) -> u32 {
        if !simulated() {
            return 0;
        }
        with(|world| world.label(address)).0.wrapping_mul(0x9E37_79B1)
    }

    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>> {
        Some(with(|world| world.nodes().get(index)))
    }

    unsafe fn arena() -> &'static Arena<Self> {
        arena()
    }

    unsafe fn indicators() -> &'static [Indicator<Self>] {
        with(|world| world.process).indicators()
    }

    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R {
        if simulated() {
            return f(&local());
        }
        // Outside a simulation no state is kept.
        let forgotten = Local::NEW;
        f(&forgotten)
    }

    fn thread() -> ThreadId {
        with(|world| ThreadId(world.me() as u32 + 1))
    }

    fn alive(thread: ThreadId) -> bool {
        with(|world| {
            let index = (thread.0 as usize).checked_sub(1);
            let state = index.and_then(|index| world.threads.get(index));
            state.is_some_and(|thread| thread.state != State::Finished)
        })
    }

    fn epoch() -> u32 {
        1
    }

    fn random() -> u32 {
        with(|world| {
            let me = world.me();
            (world.threads[me].random.next() >> 32) as u32
        })
    }

    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked {
        parking::park(waiter, deadline.map(monotonic_ns))
    }

    fn unpark(waiter: WaiterRef) {
        if let Some(node) = arena().resolve_index(waiter.index) {
            parking::unpark(node, waiter.generation);
        }
    }
}

/// Returns whether no thread waits for the caller's core, and at least `cores` cores are left
/// without a spinner.
fn leaves_cores(cores: u32) -> bool {
    let others = with(|world| world.spinners()).load(Relaxed).saturating_sub(spins(|n| n));
    with(|world| {
        let core = world.my_core();
        world.cores[core as usize].queue.is_empty()
            && !world.knows_rivals(core)
            && others + cores < world.machine.cores()
    })
}
