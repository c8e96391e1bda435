//! A stub of the bare-metal platform: core atomics, no allocation, no system call, waits that spin.
//!
//! It stands in for a kernel until there is one, to check the seam (`Platform`): statics and a CPU
//! number provide everything that a lock needs. Test threads play the CPUs.

use core::cell::Cell;
use core::sync::atomic::{self, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{
    Arena, Atomic, AtomicInteger as _, Atomics, Clock, Clocks, CoreWord, CpuId, Deadline, Hints,
    LightUnlock, Local, Parked, Platform, SocketId, ThreadId, Topology, Turns, Urgency, Waiter,
    WaiterRef, WordWaits,
};

/// The stub platform, bare metal in name only.
pub struct Metal;

pub const CPUS: usize = 4;
/// More than 16 bits can distinguish; fewer under Miri, which is slow with memory.
const NODES: usize = if cfg!(miri) { 64 } else { (1 << 16) + 64 };

static MEMORY: [Waiter<Metal>; NODES] = [const { Waiter::NEW }; NODES];
// SAFETY: the only arena of this platform.
static ARENA: Arena<Metal> = unsafe { Arena::new() };
static LOCAL: [Local<Metal>; CPUS] = [const { Local::NEW }; CPUS];
static TICKS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CPU: Cell<u32> = const { Cell::new(0) };
}

/// Makes the calling thread play CPU `cpu` from now on.
pub fn boot(cpu: usize) {
    CPU.set(cpu as u32);
}

/// Returns the arena of nodes.
pub fn arena() -> &'static Arena<Metal> {
    // SAFETY: tests only count nodes and take them.
    unsafe { Metal::arena() }
}

impl Atomics for Metal {
    type U8 = CoreWord<AtomicU8, Turns<1>>;
    type U16 = CoreWord<AtomicU16, Turns<1>>;
    type U32 = CoreWord<AtomicU32, Turns<1>>;
    type U64 = CoreWord<AtomicU64, Turns<1>>;

    fn fence(order: Ordering) {
        atomic::fence(order);
    }
}

impl Topology for Metal {
    fn cpu() -> CpuId {
        CpuId(CPU.get())
    }

    fn socket() -> SocketId {
        SocketId(CPU.get() / 2)
    }

    fn numa() -> bool {
        true
    }
}

impl Urgency for Metal {}

impl Clocks for Metal {
    fn now(_: Clock) -> u64 {
        TICKS.fetch_add(1, Ordering::Relaxed)
    }
}

impl LightUnlock for Metal {}

impl WordWaits for Metal {}

impl Hints for Metal {}

// SAFETY: words are those of `core`; a node is an entry of `MEMORY`, and `ARENA` alone hands them
// out.
unsafe impl Platform for Metal {
    const WAITERS: u32 = NODES as u32;

    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>> {
        MEMORY.get(index as usize)
    }

    unsafe fn arena() -> &'static Arena<Self> {
        &ARENA
    }

    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R {
        f(&LOCAL[CPU.get() as usize])
    }

    fn thread() -> ThreadId {
        ThreadId(CPU.get() + 1)
    }

    fn alive(_: ThreadId) -> bool {
        true
    }

    fn epoch() -> u32 {
        1
    }

    fn random() -> u32 {
        let seed = Self::local(|local| local.seed.fetch_add(0x9E37_79B9, Ordering::Relaxed));
        seed.wrapping_mul(0x85EB_CA6B).rotate_left(13)
    }

    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked {
        loop {
            // Acquire: pairs with the release in `unpark`.
            if waiter.token.swap(0, Ordering::Acquire) != 0 {
                return Parked::Woken;
            }
            if deadline.is_some_and(|deadline| Self::now(deadline.clock) >= deadline.ns) {
                return Parked::TimedOut;
            }
            // A kernel would halt here until the interrupt that `unpark` sends.
            core::hint::spin_loop();
        }
    }

    fn unpark(waiter: WaiterRef) {
        if let Some(node) = MEMORY.get(waiter.index as usize)
            && node.generation.load(Ordering::Relaxed) == waiter.generation
        {
            node.token.store(1, Ordering::Release);
        }
    }
}
