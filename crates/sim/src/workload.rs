//! Functions of simulated threads beyond the trait `Platform`: computing, accessing data, counting.

use crate::line::Kind;
use crate::step::{access_range, compute, step};
use crate::world::with;

/// Whether a thread owns a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owns {
    /// It owns none.
    #[default]
    No,
    /// It owns one.
    Yes,
    /// It releases the lock that the simulation examines: it still owns the lock, but its wakes
    /// count as those of a thread that does not, because they come afterwards.
    GivesBack,
}

/// A value on its own cache lines, wherever the host's allocator puts it. Use it for shared data in
/// a simulation: otherwise the host decides which words share a line.
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
    /// Reads the data.
    Read,
    /// Writes the data.
    Write,
}

/// The present simulated time in nanoseconds. Costs nothing: for experiments, while
/// [`Clocks::now`](antiphon_platform::Clocks::now) is for programs.
#[must_use]
pub fn now() -> u64 {
    with(|world| world.now_ns)
}

/// The time at which the caller last ran again after it was parked, in simulated nanoseconds; 0 if
/// it never was. Costs nothing, like [`now`].
#[must_use]
pub fn up_since() -> u64 {
    with(|world| world.up_ns())
}

/// Computes for `ns` of simulated time, without touching memory. May be preempted.
pub fn work(ns: u64) {
    compute(ns);
}

/// Computes for the time of that many instructions of a kernel's path.
///
/// # Panics
///
/// If the machine's file does not say how long an instruction takes.
pub fn run_instructions(count: u32) {
    let ns = with(|world| world.machine.instructions_ns(count));
    compute(ns.expect("the machine has `instruction`"));
}

/// Computes for a random time of at most `most_ns`: think time that breaks lockstep.
pub fn think(most_ns: u64) {
    compute(with(|world| {
        let me = world.me();
        world.threads[me].random.up_to(most_ns)
    }));
}

/// Accesses all lines of `data`, such as plain data of a critical section, at the machine's costs.
/// The accesses overlap: the cost is that of the slowest, plus one hit for each further line. The
/// content is not read or changed.
pub fn touch<T: ?Sized>(data: &T, access: Access) {
    let kind = match access {
        Access::Read => Kind::Load,
        Access::Write => Kind::Store,
    };
    access_range(std::ptr::from_ref(data).addr(), size_of_val(data), kind);
}

/// Returns whether the simulation's limit has passed: the end of loops that measure throughput.
/// Costs a hit.
#[must_use]
pub fn finished() -> bool {
    step(|world| world.machine.hit_ns);
    with(|world| world.now_ns >= world.limit_ns)
}

/// Counts one operation of the calling thread, unless the limit has passed.
pub fn count() {
    with(|world| {
        let me = world.me();
        world.threads[me].operations += u64::from(world.now_ns < world.limit_ns);
    });
}

/// Sets the calling thread's rank in the simulated scheduler, on the scale of
/// [`Urgency::rank`](antiphon_platform::Urgency::rank): a core goes at once to the thread of the
/// highest rank that wants it.
pub fn set_rank(rank: u8) {
    with(|world| world.set_rank(rank));
    // The caller may have lost its core by the change.
    step(|world| world.machine.hit_ns);
}

/// The present rank of the calling thread, including loans.
#[must_use]
pub fn effective_rank() -> u8 {
    with(|world| world.threads[world.me()].effective_rank())
}

/// Tells the machine whether the calling thread owns a lock, for [`Counts`](crate::Counts). A lock
/// whose owner goes on to work for waiters reports that itself, by
/// [`Hint::Owns`](antiphon_platform::Hint::Owns). Costs nothing.
pub fn owns(owns: Owns) {
    with(|world| {
        let me = world.me();
        world.threads[me].owns = owns;
        world.owner_changes(owns);
        if owns == Owns::GivesBack {
            let socket = world.machine.socket_of(world.my_core());
            let before = world.last_owner.replace(socket);
            world.counts.handovers += u64::from(before.is_some());
            world.counts.handovers_within_socket += u64::from(before == Some(socket));
        }
    });
}

/// Counts an event, such as a step of a policy, and whether some thread owned a lock at that time.
/// Costs nothing.
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
