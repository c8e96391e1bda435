//! Linux as a platform: threads and fibers on futexes.
//!
//! [`Linux`] implements [`Platform`]. Everything that a lock can reach works without setup, in a
//! signal handler, before the first constructor and after the last destructor, and in the child of
//! any kind of fork; it does not allocate, takes no locks and leaves `errno` alone.
//!
//! Each module wraps one facility of the kernel; the crate's README lists these with the kernel
//! versions that they need and the behaviour without them.

mod affinity;
mod atomic;
mod cgroup;
mod clock;
mod counter;
mod cpu_time;
mod cpus;
mod crowd;
mod distance;
mod expect;
mod fencer;
pub mod fiber;
pub mod files;
mod filter;
mod foreign;
mod futex;
pub mod glance;
mod identity;
mod image;
mod lending;
pub mod light;
mod local;
mod membarrier;
mod moment;
mod nodes;
pub mod notify;
mod pace;
mod pages;
mod parent;
mod park;
mod polled;
#[cfg(feature = "pretend")]
pub mod pretend;
#[cfg(not(feature = "pretend"))]
mod pretend;
mod probe;
mod random;
mod rank;
mod rseq;
pub mod schedule;
pub mod section;
mod shared;
mod slack;
mod sleep;
mod spin;
pub mod stack;
mod sys;
mod thread;
mod topology;
mod tsc;
mod umwait;
mod words;

use core::sync::atomic::Ordering;

use antiphon_platform::{
    Arena, Atomics, Clock, Clocks, CpuId, Deadline, Hint, Hints, Indicator, LightUnlock, Local,
    Parked, Platform, Probe, SocketId, ThreadId, Topology, Unsupported, Urgency, Waiter, WaiterRef,
    WordWaits,
};

pub use affinity::{allowed, pin, usable};
pub use atomic::{U8, U16, U32, U64};
pub use clock::{Slices, see_clocks_by};
pub use counter::{ClockSource, Distrust, source};
pub use cpu_time::{Account, account, cpu_time_ns};
pub use cpus::survey;
pub use crowd::{Crowding, crowding};
pub use distance::{Whereabouts, whereabouts};
pub use expect::{end_thread, expect_filter};
pub use filter::{filtered, forked, optional};
pub use foreign::{forget_shared, is_shared, note_shared};
pub use futex::yield_now;
pub use image::{Image, each_image};
pub use lending::may_lend;
pub use local::FIBERS_MAY_MOVE;
pub use moment::measure_ticks;
pub use pace::{Changed, Pace};
pub use parent::{die_with_parent, end_with_parent};
pub use park::{FutexWait, park_begin, park_end};
pub use rank::{ask_when_told, real_time_is_about};
pub use slack::{set_timer_slack, timer_slack};
#[doc(hidden)]
pub use sys::instruction as system_call;
pub use tsc::{forbid_counter, ticks};

// SAFETY: the only arena of this platform; `Linux::arena` returns it.
static ARENA: Arena<Linux> = unsafe { Arena::new() };

/// Number of locks that can count their readers by socket at a time.
const INDICATORS: usize = 256;

/// Pages that no lock uses are never touched.
static READERS: [Indicator<Linux>; INDICATORS] = [const { Indicator::NEW }; INDICATORS];

/// The path of this file as its compiler saw it: debug information names the file of a function so.
#[doc(hidden)]
pub const FILE: &str = file!();

/// The platform that users run on.
///
/// Pointers in the nodes of waiters are followed and written through, so getting a node is
/// `unsafe`:
///
/// ```compile_fail,E0133
/// use antiphon_linux::Linux;
/// use antiphon_platform::Platform;
/// let _ = Linux::arena();
/// ```
///
/// ```compile_fail,E0133
/// use antiphon_linux::Linux;
/// use antiphon_platform::Platform;
/// let _ = Linux::waiter(1);
/// ```
///
/// So is implementing a platform, which provides nodes:
///
/// ```compile_fail,E0200
/// struct Machine;
/// impl antiphon_platform::Platform for Machine {}
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Atomics for Linux {
    type U8 = U8;
    type U16 = U16;
    type U32 = U32;
    type U64 = U64;

    #[inline]
    fn fence(order: Ordering) {
        core::sync::atomic::fence(order);
    }
}

impl Topology for Linux {
    fn cpus() -> u32 {
        cpus::available()
    }

    fn cpu() -> CpuId {
        topology::cpu()
    }

    fn socket() -> SocketId {
        topology::socket()
    }

    #[inline]
    fn numa() -> bool {
        topology::numa()
    }

    fn distance(one: CpuId, other: CpuId) -> u32 {
        distance::between(one, other)
    }

    fn tiered() -> bool {
        distance::tiered()
    }
}

impl Urgency for Linux {
    fn rank() -> u8 {
        rank::own()
    }

    fn urgency() -> u8 {
        rank::urgency()
    }

    fn lend(thread: ThreadId, rank: u8) -> Result<(), Unsupported> {
        lending::lend(thread, rank)
    }

    fn reclaim(thread: ThreadId) {
        lending::reclaim(thread);
    }
}

impl Clocks for Linux {
    fn now(clock: Clock) -> u64 {
        clock::now(clock)
    }

    #[inline]
    fn counter() -> u64 {
        counter::read()
    }
}

impl LightUnlock for Linux {
    #[inline]
    unsafe fn store_unless(word: *const U8, value: u8, flag: *const U16) -> bool {
        // SAFETY: both words are plain atomics of that size, and valid by the promise of the
        // caller, which has checked `light`, so the thread is registered.
        unsafe { rseq::store_unless(word.cast(), value, flag.cast()) }
    }

    #[inline]
    fn light() -> bool {
        light::light()
    }

    #[inline]
    fn fenced() -> bool {
        light::fenced()
    }

    #[inline]
    fn light_fence() {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    fn heavy_fence() -> Result<(), Unsupported> {
        light::heavy_fence()
    }
}

impl WordWaits for Linux {
    fn is_foreign(address: usize) -> bool {
        foreign::is_shared(address)
    }

    fn waits_on_words() -> bool {
        fiber::current().is_none()
    }

    fn wait_on(word: &U64, low: u32, place: u32, deadline: Option<Deadline>) -> Parked {
        words::wait(word, low, place, deadline)
    }

    fn wake_on(word: *const U64, places: u32, count: u32) -> u32 {
        words::wake(word, places, count)
    }
}

impl Hints for Linux {
    fn hint(hint: Hint) {
        crowd::hint(hint);
    }

    #[inline(always)]
    fn heeds_sections() -> bool {
        section::are_heeded()
    }

    #[inline(always)]
    fn probe(probe: Probe) {
        probe::probe(probe);
        fiber::probe(probe);
    }

    fn crowded() -> bool {
        // A fiber that spins keeps other fibers from its thread.
        fiber::current().is_some() || crowd::crowded()
    }

    fn roomy() -> bool {
        fiber::current().is_none() && crowd::roomy()
    }

    fn sleep_cost_ns() -> u32 {
        sleep::cost_ns()
    }

    fn give_way() -> bool {
        fiber::give_way()
    }
}

// SAFETY: the words are atomics of `core`; each index has a different node, and only `ARENA` hands
// nodes out.
unsafe impl Platform for Linux {
    const WAITERS: u32 = nodes::WAITERS;

    const COUNTERS: usize = 256;

    const COHORTS: usize = 512;

    #[inline]
    unsafe fn waiter(index: u32) -> Option<&'static Waiter<Self>> {
        nodes::node(index)
    }

    #[inline]
    unsafe fn arena() -> &'static Arena<Self> {
        &ARENA
    }

    #[inline]
    unsafe fn indicators() -> &'static [Indicator<Self>] {
        &READERS
    }

    #[inline]
    fn local<R>(f: impl FnOnce(&Local<Self>) -> R) -> R {
        local::with(|thread| f(&thread.local))
    }

    #[inline]
    fn thread() -> ThreadId {
        thread::current()
    }

    #[inline]
    fn task() -> u64 {
        fiber::number().unwrap_or_else(|| Self::thread().0.into())
    }

    fn alive(thread: ThreadId) -> bool {
        thread::alive(thread)
    }

    #[inline]
    fn epoch() -> u32 {
        identity::epoch()
    }

    fn random() -> u32 {
        random::next()
    }

    fn park(waiter: &Waiter<Self>, deadline: Option<Deadline>) -> Parked {
        park::park(waiter, deadline)
    }

    fn unpark(waiter: WaiterRef) {
        park::unpark(waiter);
    }

    fn unpark_asleep(waiter: WaiterRef) -> bool {
        park::unpark(waiter)
    }
}
