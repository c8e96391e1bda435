//! Functions of a simulated thread beyond the trait `Platform`: compute, touch data, count.

use crate::line::Kind;
use crate::step::{access_range, compute, step};
use crate::world::with;

/// Whether a thread owns a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owns {
    /// It does not.
    #[default]
    No,
    /// It does.
    Yes,
    /// It gives the lock back, the one that the whole simulation is about: so it owns it, but the
    /// wakes that come with that are those of one that does not, for they come afterwards.
    GivesBack,
}

/// A value on cache lines of its own, wherever the host's allocator puts it. Shared data in a
/// simulation should be in one: otherwise the host decides which words share a line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct OwnLine<T>(pub T);

impl<T> std::ops::Deref for OwnLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The access that [`touch`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
}

/// The present simulated time in nanoseconds. Costs nothing: it is for the experiment, where
/// [`Clocks::now`](antiphon_platform::Clocks::now) is for the program.
#[must_use]
pub fn now() -> u64 {
    with(|world| world.now_ns)
}

/// When the caller last ran again after it had been parked, in simulated nanoseconds; 0 if it never
/// was. Costs nothing, as [`now`].
#[must_use]
pub fn up_since() -> u64 {
    with(|world| world.up_ns())
}

/// Computes for `ns` of simulated time, without touching memory. May be preempted.
pub fn work(ns: u64) {
    compute(ns);
}

/// Computes for a random time of at most `most_ns`: think time that breaks lockstep.
pub fn think(most_ns: u64) {
    compute(with(|world| {
        let me = world.me();
        world.threads[me].random.up_to(most_ns)
    }));
}

/// Accesses all lines of `data`, plain data of a critical section, as priced for this machine. The
/// accesses overlap: the slowest counts, and one hit for each further line. What is in them is the
/// caller's business.
pub fn touch<T: ?Sized>(data: &T, access: Access) {
    let kind = match access {
        Access::Read => Kind::Load,
        Access::Write => Kind::Store,
    };
    access_range(std::ptr::from_ref(data).addr(), size_of_val(data), kind);
}

/// Whether the simulation's limit has passed: where a thread's loop ends that measures throughput.
/// Costs a hit.
#[must_use]
pub fn finished() -> bool {
    step(|world| world.machine.hit_ns);
    with(|world| world.now_ns >= world.limit_ns)
}

/// Counts one operation of the calling thread, if the limit has not passed.
pub fn count() {
    with(|world| {
        let me = world.me();
        world.threads[me].operations += u64::from(world.now_ns < world.limit_ns);
    });
}

/// Says how urgent the calling thread is to the simulated scheduler, on the scale of
/// [`Urgency::rank`](antiphon_platform::Urgency::rank): a core goes to the most urgent that wants
/// it, at once.
pub fn set_rank(rank: u8) {
    with(|world| world.set_rank(rank));
    // The caller may have lost its core by that.
    step(|world| world.machine.hit_ns);
}

/// How urgent the calling thread is at present, with what it was lent.
#[must_use]
pub fn effective_rank() -> u8 {
    with(|world| world.threads[world.me()].effective_rank())
}

/// Tells the machine whether the calling thread owns a lock, for [`Counts`](crate::Counts). A lock
/// whose owner goes on to do something for waiters says so itself, by
/// [`Hint::Owns`](antiphon_platform::Hint::Owns). Costs nothing.
pub fn owns(owns: Owns) {
    with(|world| {
        let me = world.me();
        world.threads[me].owns = owns;
        if owns == Owns::GivesBack {
            let socket = world.machine.socket_of(world.my_core());
            let before = world.last_owner.replace(socket);
            world.counts.handovers += u64::from(before.is_some());
            world.counts.handovers_within_socket += u64::from(before == Some(socket));
        }
    });
}

/// Counts that something has happened, such as a step of a policy, and whether some thread owned a
/// lock then. Costs nothing.
pub fn note() {
    with(|world| {
        world.counts.notes += 1;
        let owned = world.threads.iter().any(|thread| thread.owns != Owns::No);
        world.counts.notes_while_owned += u64::from(owned);
    });
}

/// Names the line of `data` in reports of a simulation that is stuck.
pub fn name_line<T: ?Sized>(data: &T, name: &'static str) {
    with(|world| {
        let label = world.label(std::ptr::from_ref(data).addr());
        world.lines.set_name(label, name);
    });
}
