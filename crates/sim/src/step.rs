//! The steps of a simulated thread, between two suspensions.
//!
//! Every step has the same shape. First the thread may be preempted. Then the step is *issued*;
//! simulated time reaches its end, with the step in flight and the thread not preemptible; and only
//! then does the step take effect. Steps are issued in order of simulated time, because the running
//! thread is the earliest.

use std::thread::panicking;

use crate::buffer::drain;
use crate::events::Event;
use crate::line::{By, Kind, LINE, LineId};
use crate::requests::Issued;
use crate::shadow;
use crate::thread::State;
use crate::world::{World, suspend, with};

/// The largest number of concurrent line transfers of one [`access_range`]: a core has 10 line fill
/// buffers on Haswell and Broadwell (Intel's optimization manual).
const OUTSTANDING: usize = 10;

/// Lets simulated time reach `at_ns`. The step is in flight: the thread is not preempted in it.
fn wait_until(at_ns: u64) {
    if !panicking() && !with(|world| world.runs_ahead(at_ns)) {
        suspend();
    }
}

/// The only place of preemption: between steps, never within one.
fn preemption_point() {
    while !panicking() && with(World::yields_core) {
        suspend();
    }
}

/// The progress of an access.
enum Arrival {
    /// The access takes effect now.
    There(LineId),
    /// The access takes effect when the caller runs again.
    Under(LineId),
    /// The access has not begun; the caller tries again when it runs again.
    Later,
}

/// Begins an access to the line at `address`, and waits until it takes effect.
pub(crate) fn arrive(address: usize, kind: Kind) -> LineId {
    loop {
        match with(|world| world.arrive_at(address, kind)) {
            Arrival::There(line) => return line,
            Arrival::Under(line) => {
                suspend();
                return line;
            }
            Arrival::Later => suspend(),
        }
    }
}

impl World {
    fn arrive_at(&mut self, address: usize, kind: Kind) -> Arrival {
        // BUFFER-2: a read-modify-write waits for an empty buffer.
        if self.yields_core() || (kind == Kind::ReadModifyWrite && self.drains(0)) {
            return Arrival::Later;
        }
        let (me, core) = (self.me(), self.my_core());
        let label = self.label(address);
        if kind == Kind::ReadModifyWrite {
            self.count_atomic();
        }
        let shadows = &self.lines.get(label).shadows;
        let own = kind == Kind::Load && shadow::is_of(shadows, (address % LINE) as u8, me);
        let issued = if own {
            self.counts.hits += 1;
            Issued::At(self.now_ns + self.hit_ns(me, kind))
        } else {
            self.request(label, core, kind, By::Access(me as u32))
        };
        let there = match issued {
            Issued::At(done_ns) => self.runs_ahead(done_ns),
            Issued::Queued => false,
            Issued::Alone(done_ns) if self.is_next(done_ns) => {
                self.advance(done_ns);
                let _mine = self.end_request(label);
                true
            }
            Issued::Alone(done_ns) => {
                self.events.push(done_ns, Event::Served { line: label });
                false
            }
        };
        if there { Arrival::There(label) } else { Arrival::Under(label) }
    }
}

/// Accesses to all lines of an address range: they overlap, up to the limit of concurrent
/// transfers, and the core takes one arrived line each [`hit_ns`](crate::Machine::hit_ns).
pub(crate) fn access_range(address: usize, bytes: usize, kind: Kind) {
    if bytes == 0 {
        return;
    }
    preemption_point();
    let lines: Vec<usize> = (address / LINE..(address + bytes).div_ceil(LINE)).collect();
    let mut labels = Vec::with_capacity(lines.len());
    for some in lines.chunks(OUTSTANDING) {
        if !with(|world| world.touch(some, kind, &mut labels)) {
            suspend();
        }
    }
    with(|world| {
        let me = world.me();
        for label in labels {
            world.commit(me, label, kind, kind != Kind::Load);
        }
    });
}

/// Pending lines of a thread's [`access_range`].
#[derive(Default)]
pub(crate) struct Touch {
    left: u32,
    /// The time at which the core has taken all arrived lines.
    until_ns: u64,
}

impl Touch {
    /// Takes a line that arrives at `done_ns`.
    fn take(&mut self, done_ns: u64, hit_ns: u64) {
        self.until_ns = done_ns.max(self.until_ns + hit_ns);
    }
}

impl World {
    /// Issues accesses to these lines. Returns `false` if they are pending; the caller must then
    /// suspend.
    #[must_use]
    fn touch(&mut self, lines: &[usize], kind: Kind, labels: &mut Vec<LineId>) -> bool {
        let (me, core) = (self.me(), self.my_core());
        self.threads[me].touch = Touch { left: 0, until_ns: self.now_ns };
        for line in lines {
            let label = self.label(line * LINE);
            labels.push(label);
            let issued = self.request(label, core, kind, By::Touch(me as u32));
            let touch = &mut self.threads[me].touch;
            match issued {
                Issued::At(done_ns) => touch.take(done_ns, self.machine.hit_ns),
                Issued::Queued => touch.left += 1,
                Issued::Alone(done_ns) => {
                    touch.left += 1;
                    self.events.push(done_ns, Event::Served { line: label });
                }
            }
        }
        let touch = &self.threads[me].touch;
        touch.left == 0 && self.runs_ahead(touch.until_ns)
    }

    /// Notes that one of a thread's pending lines arrives at `done_ns`.
    pub(crate) fn touched(&mut self, thread: u32, done_ns: u64) {
        let touch = &mut self.threads[thread as usize].touch;
        touch.left -= 1;
        touch.take(done_ns, self.machine.hit_ns);
        if touch.left == 0 {
            let until_ns = touch.until_ns;
            self.resume_at(thread as usize, until_ns);
        }
    }
}

/// A step that takes `ns` and accesses no line.
pub(crate) fn step(ns: impl FnOnce(&mut World) -> u64) {
    preemption_point();
    let done_ns = with(|world| world.now_ns + ns(world));
    wait_until(done_ns);
}

/// Like [`step`], for a thread that holds a lock of the system, and therefore keeps its core until
/// the step is over.
pub(crate) fn hold(ns: u64) {
    wait_until(with(|world| world.now_ns + ns));
}

/// A system call that takes `ns`.
pub(crate) fn call(ns: impl FnOnce(&mut World) -> u64) {
    drain();
    step(ns);
}

/// Computes for `ns`; may be preempted at any instant.
pub(crate) fn compute(ns: u64) {
    preemption_point();
    let suspends = !panicking()
        && with(|world| {
            let until_ns = world.now_ns.saturating_add(world.paced_ns(ns));
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

impl World {
    /// The time that work of `ns` takes on the running thread's core, by the core's speed and the
    /// number of other hardware threads of the core that are busy when the work begins. A thread
    /// that spins does not count as busy: it pauses between its loads, which leaves the core to the
    /// others (Intel's optimization manual, on PAUSE).
    fn paced_ns(&self, ns: u64) -> u64 {
        let core = self.my_core();
        let topology = &self.machine.topology;
        let ns = topology.work_ns(core, ns);
        let Some(permille) = topology.crowded_permille() else { return ns };
        let busy = |other: u32| {
            let current = self.cores[other as usize].current;
            current.is_some_and(|thread| !self.threads[thread].state.spins())
        };
        if topology.siblings(core).any(busy) {
            ns.saturating_mul(u64::from(permille)) / 1_000
        } else {
            ns
        }
    }
}

/// A heavy fence of the running thread. Each other thread executes a full fence in the instant in
/// which this begins: so it sees the caller's writes, and the fence waits for the stores that it
/// has posted by then.
pub(crate) fn heavy_fence() {
    drain();
    preemption_point();
    let (under_way, done_ns) = with(|world| (world.under_way(), world.issue_heavy_fence()));
    wait_until(done_ns);
    if !panicking() && with(|world| world.awaits(under_way)) {
        suspend();
    }
}
