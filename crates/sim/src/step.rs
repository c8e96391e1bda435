//! The steps of a simulated thread: what it does between two suspensions.
//!
//! Every step has the same shape. First the thread may be preempted. Then the step is *issued*,
//! which fixes when it is done; simulated time reaches that point, with the step in flight and the
//! thread not preemptible; and only then does the step take effect. Steps are issued in order of
//! simulated time, because whoever runs is the earliest.

use std::thread::panicking;

use crate::line::{Kind, LINE, LineId};
use crate::os::State;
use crate::world::{World, suspend, with};

/// Lets simulated time reach `at_ns`. The step is in flight: the thread is not preempted in it.
fn wait_until(at_ns: u64) {
    if !panicking() && !with(|world| world.runs_ahead(at_ns)) {
        suspend();
    }
}

/// Preemption happens here, between steps, and nowhere within one.
fn preemption_point() {
    if !panicking() && with(World::yields_core) {
        suspend();
    }
}

/// What an access came to.
pub(crate) struct Done<R> {
    pub(crate) result: R,
    pub(crate) line: LineId,
    /// The line's version when the access took effect.
    pub(crate) version: u64,
}

/// One access to the line at `address`: waits until it is done, then lets `effect` happen. That
/// returns its result and whether a value was written.
pub(crate) fn access<R>(address: usize, kind: Kind, effect: impl FnOnce() -> (R, bool)) -> Done<R> {
    preemption_point();
    let (line, done_ns) = with(|world| world.issue(address, kind));
    wait_until(done_ns);
    let (result, wrote) = effect();
    let version = with(|world| world.commit(line, kind, wrote));
    Done { result, line, version }
}

/// Accesses to all lines of an address range at once: they overlap, and each further line is
/// ready one hit after the slowest.
pub(crate) fn access_range(address: usize, bytes: usize, kind: Kind) {
    let lines = address / LINE..(address + bytes).div_ceil(LINE);
    if bytes == 0 {
        return;
    }
    preemption_point();
    let mut labels = Vec::with_capacity(lines.len());
    let done_ns = with(|world| {
        let mut slowest_ns = world.now_ns;
        for line in lines {
            let (label, done_ns) = world.issue(line * LINE, kind);
            labels.push(label);
            slowest_ns = slowest_ns.max(done_ns);
        }
        slowest_ns + (labels.len() as u64 - 1) * world.machine.hit_ns
    });
    wait_until(done_ns);
    with(|world| {
        for label in labels {
            world.commit(label, kind, kind != Kind::Load);
        }
    });
}

/// A step that takes `ns` and touches no line.
pub(crate) fn step(ns: impl FnOnce(&World) -> u64) {
    preemption_point();
    let done_ns = with(|world| world.now_ns + ns(world));
    wait_until(done_ns);
}

/// Computes for `ns`; may be preempted at any instant of it.
pub(crate) fn compute(ns: u64) {
    preemption_point();
    let suspends = !panicking()
        && with(|world| {
            let until_ns = world.now_ns.saturating_add(ns);
            let ahead = world.runs_ahead(until_ns);
            if !ahead {
                let me = world.me();
                world.threads[me].state = State::Computing { until_ns };
            }
            !ahead
        });
    if suspends {
        suspend();
    }
}

/// A heavy fence of the running thread.
pub(crate) fn heavy_fence() {
    preemption_point();
    let done_ns = with(World::issue_heavy_fence);
    wait_until(done_ns);
}
