//! The implementation of the platform traits by the checker.

use std::sync::atomic::Ordering;

use antiphon_platform::{
    Arena, Atomics, Clock, Clocks, CpuId, Deadline, Hint, Hints, Indicator, LightUnlock, Local,
    Parked, Platform, SocketId, ThreadId, Topology, Unsupported, Urgency, Waiter, WaiterRef,
    WordWaits,
};
use antiphon_platform::{Atomic as _, AtomicInteger as _};

use crate::atomic::{U8, U16, U32, U64};
use crate::clock::SLOTS;
use crate::context;
use crate::graph::What;
use crate::model::HeavyFence;
use crate::op::Op;
use crate::shared;

/// The platform of the checker, on which everything possible happens, one execution at a time.
///
/// Its functions and words work only inside [`Model::run`](crate::Model::run).
#[derive(Clone, Copy, Debug)]
pub struct Check;

const WAITERS: usize = 64;

static NODES: [Waiter<Check>; WAITERS] = [const { Waiter::NEW }; WAITERS];
// SAFETY: the only arena of this platform; `Check::arena` returns it.
static ARENA: Arena<Check> = unsafe { Arena::new() };
static READERS: [Indicator<Check>; 2] = [const { Indicator::NEW }; 2];
static LOCALS: [Local<Check>; SLOTS] = [const { Local::NEW }; SLOTS];
/// Whether each thread has ended, where threads are mortal.
static ENDED: [U8; SLOTS] = [const { U8::ZERO }; SLOTS];

/// Number of loans of each thread that were not reclaimed.
static LOANS: [U32; SLOTS] = [const { U32::ZERO }; SLOTS];

/// Ticks since the model began; only the counters show them.
static TICKS: U64 = U64::ZERO;

/// The first value of counters: a stamp of zero is old, however far they are apart.
const COUNTER_START: u64 = 1 << 20;

/// The difference of the realtime clock from the monotonic clock.
const REALTIME_AHEAD_NS: u64 = 1_000_000_000_000;

/// Returns whether a word belongs to one thread, so that its accesses need not be enumerated.
pub(crate) fn is_private(address: usize) -> bool {
    let from = LOCALS.as_ptr().addr();
    (from..from + size_of_val(&LOCALS)).contains(&address)
}

/// The name of a word that belongs to the platform.
pub(crate) fn describe(address: usize) -> Option<String> {
    let from = NODES.as_ptr().addr();
    if (from..from + size_of_val(&NODES)).contains(&address) {
        let index = (address - from) / size_of::<Waiter<Check>>();
        let node = &NODES[index];
        let halves: [(&U16, &str); 4] = [
            (&node.socket, "socket"),
            (&node.cpu, "cpu"),
            (&node.rank, "rank"),
            (&node.passed, "passed"),
        ];
        let half = halves.iter().find(|(word, _)| std::ptr::from_ref(*word).addr() == address);
        if let Some((_, field)) = half {
            return Some(format!("waiter{index}.{field}"));
        }
        let fields: [(&U32, &str); 10] = [
            (&node.generation, "generation"),
            (&node.owner, "owner"),
            (&node.next, "next"),
            (&node.status, "status"),
            (&node.batch, "batch"),
            (&node.resume, "resume"),
            (&node.wants, "wants"),
            (&node.called, "called"),
            (&node.due, "due"),
            (&node.token, "token"),
        ];
        let named = fields.iter().find(|(word, _)| std::ptr::from_ref(*word).addr() == address);
        let is_queue = std::ptr::from_ref(&node.queue).addr() == address;
        let field = named.map_or(if is_queue { "queue" } else { "handle" }, |(_, name)| name);
        return Some(format!("waiter{index}.{field}"));
    }
    let from = ENDED.as_ptr().addr();
    if (from..from + size_of_val(&ENDED)).contains(&address) {
        return Some(format!("thread{}.ended", (address - from) / size_of::<U8>()));
    }
    if std::ptr::from_ref(&TICKS).addr() == address {
        return Some("ticks".to_owned());
    }
    let from = READERS.as_ptr().addr();
    if (from..from + size_of_val(&READERS)).contains(&address) {
        let each = size_of::<Indicator<Check>>();
        let (indicator, at) = ((address - from) / each, (address - from) % each);
        return Some(format!("readers{indicator}+{at}"));
    }
    let from = std::ptr::from_ref(&ARENA).addr();
    let inside = (from..from + size_of::<Arena<Check>>()).contains(&address);
    inside.then(|| format!("arena+{}", address - from))
}

/// The number of loans of [`Urgency::lend`](antiphon_platform::Urgency::lend) that have not been
/// reclaimed.
pub fn loans() -> u32 {
    LOANS.iter().map(|loans| loans.load(Ordering::Relaxed)).sum()
}

/// Gives the current thread a real-time priority with this
/// [`Urgency::urgency`](antiphon_platform::Urgency::urgency).
pub fn set_urgency(urgency: u8) {
    context::with(|execution| {
        let current = execution.current;
        execution.threads[current].urgency = urgency;
    });
}

/// Notes that the current thread has ended.
pub(crate) fn end_thread() {
    let (mortal, me) = context::with(|execution| (execution.config.mortal, execution.current));
    if mortal {
        // Relaxed: a kernel's answer about an ended thread orders nothing.
        ENDED[me].store(1, Ordering::Relaxed);
    }
}

pub(crate) fn choose(what: What, options: u64) -> u64 {
    context::perform(&Op::Choice { what, options }).value
}

fn fence(order: Ordering) {
    assert!(order != Ordering::Relaxed, "a fence can't be `Relaxed`");
    context::perform(&Op::Fence(order));
}

/// Advances time by `ticks`; returns the counter of the current thread.
fn counter_in(ticks: u64) -> u64 {
    // All readings are totally ordered, and accesses of other threads are before or after each.
    fence(Ordering::SeqCst);
    let passed = TICKS.fetch_add(ticks, Ordering::Relaxed) + ticks;
    fence(Ordering::SeqCst);
    COUNTER_START + passed + ahead()
}

/// The lead of the current thread's counter: zero, or the largest.
fn ahead() -> u64 {
    let (known, apart) = context::with(|execution| {
        (execution.threads[execution.current].ahead, u64::from(execution.config.apart))
    });
    known.unwrap_or_else(|| {
        let ahead = if apart > 0 { choose(What::Ahead, 2) * apart } else { 0 };
        context::with(|execution| execution.threads[execution.current].ahead = Some(ahead));
        ahead
    })
}

fn node(index: u32) -> Option<&'static Waiter<Check>> {
    let there = index > 0 && index < context::with(|execution| execution.config.waiters);
    there.then(|| &NODES[index as usize])
}

impl Atomics for Check {
    type U8 = U8;
    type U16 = U16;
    type U32 = U32;
    type U64 = U64;

    fn fence(order: Ordering) {
        fence(order);
    }
}

impl Topology for Check {
    fn cpu() -> CpuId {
        let socket = Self::socket().0;
        context::with(|execution| {
            CpuId(socket + execution.config.sockets * execution.current as u32)
        })
    }

    fn socket() -> SocketId {
        let (may_move, sockets) = context::with(|execution| {
            let thread = &execution.threads[execution.current];
            let sockets = execution.config.sockets;
            (sockets > 1 && thread.moves < execution.config.migrations, sockets)
        });
        let by = if may_move { choose(What::Move, sockets.into()) as u32 } else { 0 };
        context::with(|execution| {
            let thread = &mut execution.threads[execution.current];
            thread.moves += u32::from(by > 0);
            thread.socket = (thread.socket + by) % sockets;
            SocketId(thread.socket)
        })
    }

    fn numa() -> bool {
        context::with(|execution| execution.config.sockets > 1)
    }

    /// 1 if the CPUs are on different sockets, which [`cpu`](Self::cpu) encodes; otherwise 0.
    fn distance(one: CpuId, other: CpuId) -> u32 {
        let sockets = context::with(|execution| execution.config.sockets);
        u32::from(one.0 % sockets != other.0 % sockets)
    }

    /// Enough CPUs for waiters that spin.
    fn cpus() -> u32 {
        4
    }
}

impl Urgency for Check {
    /// The urgency that the thread has [set](set_urgency).
    fn urgency() -> u8 {
        context::with(|execution| execution.threads[execution.current].urgency)
    }

    /// Counts the loan; it has no other effect, because any thread may run at any time.
    fn lend(thread: ThreadId, _rank: u8) -> Result<(), Unsupported> {
        LOANS[thread.0 as usize % SLOTS].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Looks before it subtracts, as Linux does: so it may miss a loan that does not happen before.
    fn reclaim(thread: ThreadId) {
        let loans = &LOANS[thread.0 as usize % SLOTS];
        assert!(loans.load(Ordering::Relaxed) > 0, "what was not lent is given back");
        loans.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Clocks for Check {
    fn now(clock: Clock) -> u64 {
        let now = context::with(|execution| {
            let thread = &mut execution.threads[execution.current];
            thread.time += 1;
            thread.time
        });
        match clock {
            Clock::Monotonic | Clock::SeenMonotonic => now,
            Clock::Realtime | Clock::SeenRealtime => now + REALTIME_AHEAD_NS,
        }
    }

    /// The counter of the thread's own CPU: see [`Model::apart`](crate::Model::apart).
    fn counter() -> u64 {
        counter_in(1)
    }

    /// Advances time by the missing ticks.
    fn counter_after(value: u64) -> u64 {
        let now = counter_in(1);
        if now > value { now } else { counter_in(value - now + 1) }
    }
}

impl LightUnlock for Check {
    unsafe fn store_unless(word: *const U8, value: u8, flag: *const U16) -> bool {
        assert!(Self::light(), "`store_unless` may not be called where `light` is false");
        let value = u64::from(value);
        let op = Op::Section { word: word.addr(), value, flag: flag.addr() };
        context::perform(&op).ok
    }

    fn light() -> bool {
        context::with(|execution| execution.config.light)
    }

    fn fenced() -> bool {
        Self::light()
    }

    fn light_fence() {
        context::perform(&Op::Light);
    }

    fn heavy_fence() -> Result<(), Unsupported> {
        let refused = match context::with(|execution| execution.config.heavy) {
            HeavyFence::Granted => false,
            HeavyFence::Refused => true,
            HeavyFence::Either => choose(What::Heavy, 2) == 1,
        };
        if refused {
            return Err(Unsupported);
        }
        context::perform(&Op::Heavy);
        Ok(())
    }
}

impl WordWaits for Check {
    fn waits_on_words() -> bool {
        context::with(|execution| execution.current > execution.config.fibers as usize)
    }

    fn wait_on(word: &U64, low: u32, place: u32, deadline: Option<Deadline>) -> Parked {
        let address = std::ptr::from_ref(word).addr();
        shared::wait((address, place), deadline, || word.load(Ordering::Relaxed) as u32 == low)
    }

    fn wake_on(word: *const U64, places: u32, count: u32) -> u32 {
        shared::wake(word.addr(), places, count)
    }
}

impl Hints for Check {
    fn hint(_hint: Hint) {}

    fn crowded() -> bool {
        let asked = context::with(|execution| {
            execution.threads[execution.current].crowded < execution.config.crowded
        });
        let crowded = asked && choose(What::Crowded, 2) == 1;
        context::with(|execution| {
            execution.threads[execution.current].crowded += u32::from(crowded);
        });
        crowded
    }
}

// SAFETY: words behave as atomics of `core` may; each node is an entry of `NODES`, and only `ARENA`
// hands them out.
unsafe impl Platform for Check {
    const WAITERS: u32 = WAITERS as u32;

    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>> {
        node(index)
    }

    unsafe fn arena() -> &'static Arena<Self> {
        &ARENA
    }

    unsafe fn indicators() -> &'static [Indicator<Self>] {
        &READERS
    }

    fn arena_block() -> u32 {
        context::with(|execution| execution.config.arena_block)
    }

    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R {
        f(&LOCALS[context::with(|execution| execution.current)])
    }

    fn thread() -> ThreadId {
        let current = context::with(|execution| execution.current);
        ThreadId(if current == 0 { SLOTS as u32 } else { current as u32 })
    }

    fn alive(thread: ThreadId) -> bool {
        // The setup thread has the number after the last one, and does not end.
        let ended = ENDED.get(thread.0 as usize);
        let mortal = context::with(|execution| execution.config.mortal);
        // Relaxed: see `end_thread`.
        !mortal || ended.is_none_or(|ended| ended.load(Ordering::Relaxed) == 0)
    }

    fn epoch() -> u32 {
        1
    }

    fn random() -> u32 {
        context::with(|execution| {
            let state = &mut execution.threads[execution.current].random;
            *state ^= *state << 13;
            *state ^= *state >> 17;
            *state ^= *state << 5;
            *state
        })
    }

    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked {
        match way_of(deadline) {
            Way::Wait if take(&waiter.token, deadline) => Parked::Woken,
            Way::Wait | Way::TimeOut => Parked::TimedOut,
            Way::Spurious => Parked::Woken,
        }
    }

    fn unpark(waiter: WaiterRef) {
        let Some(node) = node(waiter.index) else { return };
        if node.generation.load(Ordering::Relaxed) == waiter.generation {
            // Release: pairs with the acquire with which `park` takes the token.
            node.token.swap(1, Ordering::Release);
        }
    }

    fn unpark_asleep(waiter: WaiterRef) -> bool {
        Self::unpark(waiter);
        context::with(|execution| execution.config.asleep)
    }
}

/// The continuation of a sleep.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Wait,
    Spurious,
    TimeOut,
}

/// Chooses how a sleep of the current thread continues, within the bounds. Any choice but
/// [`Way::Wait`] is counted, and its time passes.
pub(crate) fn way_of(deadline: Option<Deadline>) -> Way {
    let (spurious, timeout) = context::with(|execution| {
        let thread = &execution.threads[execution.current];
        let config = &execution.config;
        let timeout = deadline.is_some() && thread.timeouts < config.timeouts;
        (thread.spurious < config.spurious, timeout)
    });
    let ways: &[Way] = match (spurious, timeout) {
        (false, false) => &[Way::Wait],
        (true, false) => &[Way::Wait, Way::Spurious],
        (false, true) => &[Way::Wait, Way::TimeOut],
        (true, true) => &[Way::Wait, Way::Spurious, Way::TimeOut],
    };
    let way = if ways.len() > 1 { choose(What::Park, ways.len() as u64) } else { 0 };
    let way = ways[way as usize];
    context::with(|execution| {
        let thread = &mut execution.threads[execution.current];
        match way {
            Way::Wait => {}
            Way::Spurious => thread.spurious += 1,
            Way::TimeOut => {
                thread.timeouts += 1;
                thread.time = thread.time.max(deadline.map_or(0, monotonic));
            }
        }
    });
    way
}

/// Waits for a wake token and consumes it; returns `false` at the deadline.
pub(crate) fn take(token: &U32, deadline: Option<Deadline>) -> bool {
    let address = std::ptr::from_ref(token).addr();
    context::perform(&Op::Take { address, deadline: deadline.map(monotonic) }).ok
}

fn monotonic(deadline: Deadline) -> u64 {
    match deadline.clock {
        Clock::Monotonic | Clock::SeenMonotonic => deadline.ns,
        Clock::Realtime | Clock::SeenRealtime => deadline.ns.saturating_sub(REALTIME_AHEAD_NS),
    }
}
