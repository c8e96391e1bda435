//! A simulation: a machine, its threads, and the loop that runs them.

use std::cmp::Reverse;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::buffer::drain;
use crate::events::Event;
use crate::guests::Hosting;
use crate::nodes::no_spinners;
use crate::outcome::{Outcome, Stuck, Wait, WaitsOn, Why};
use crate::random::Random;
use crate::schedule::Schedule;
use crate::sleep::SleepsOn;
use crate::thread::{State, Thread};
use crate::world::{Installed, World, with};
use crate::{Guests, Machine, Model};

/// The default stack of a simulated thread. Only touched pages use memory; the size leaves room for
/// the message of a failed assertion in a debug build.
const STACK_BYTES: usize = 256 << 10;

/// The default time for which threads may run past the limit, in simulated nanoseconds.
pub(crate) const GRACE_NS: u64 = 10_000_000_000;

/// The last time of any simulation: adding the length of a step to a time never overflows.
pub(crate) const LAST_NS: u64 = 1 << 63;

/// A thread that has not started yet.
struct Body {
    core: u32,
    pinned: bool,
    guest: u32,
    run: Box<dyn FnOnce()>,
}

/// Threads on a machine, ready to run. See the [crate's page](crate) for an example.
#[must_use]
pub struct Simulation {
    machine: Machine,
    model: Model,
    seed: u64,
    grace_ns: u64,
    stack_bytes: usize,
    bodies: Vec<Body>,
    schedules: Vec<(u32, Box<dyn Schedule>)>,
    accounts_ns: Vec<u64>,
    guests: Option<Guests>,
}

impl Simulation {
    /// Creates a simulation of `machine` without threads. All its randomness comes from `seed`.
    ///
    /// # Panics
    ///
    /// If the machine has no core, or a cost is zero that must not be.
    pub fn new(machine: Machine, seed: u64) -> Self {
        machine.check();
        Self {
            machine,
            model: Model::default(),
            seed,
            grace_ns: GRACE_NS,
            stack_bytes: STACK_BYTES,
            bodies: Vec::new(),
            schedules: Vec::new(),
            accounts_ns: Vec::new(),
            guests: None,
        }
    }

    /// Uses the assumptions `model` instead of the default.
    pub fn model(mut self, model: Model) -> Self {
        self.model = model;
        self
    }

    /// Adds a thread on the next core: cores fill socket by socket, then their further hardware
    /// threads, and then again from the first. The thread moves only if the [`Model`] balances the
    /// load.
    pub fn thread(mut self, body: impl FnOnce() + 'static) -> Self {
        let core = self.machine.topology.place(self.bodies.len());
        self.bodies.push(Body { core, pinned: false, guest: 0, run: Box::new(body) });
        self
    }

    /// Adds a thread that is pinned to a core.
    ///
    /// # Panics
    ///
    /// If there is no such core.
    pub fn thread_on(self, core: u32, body: impl FnOnce() + 'static) -> Self {
        self.guest_thread_on(0, core, body)
    }

    /// Adds a thread of a virtual machine, pinned to a virtual CPU: the one of the same number as
    /// `core`.
    ///
    /// # Panics
    ///
    /// If there is no such core. [`run`](Self::run) panics if there is no such guest.
    pub fn guest_thread_on(mut self, guest: u32, core: u32, body: impl FnOnce() + 'static) -> Self {
        assert!(core < self.machine.cores(), "no core {core}");
        self.bodies.push(Body { core, pinned: true, guest, run: Box::new(body) });
        self
    }

    /// Runs the threads in virtual machines that share the CPUs. Threads that name no guest are in
    /// guest 0. The model must not balance the load, and no schedule replaces a queue.
    ///
    /// # Panics
    ///
    /// If there is no guest, or a slice of the host takes no time.
    pub fn guests(mut self, guests: Guests) -> Self {
        assert!(guests.count > 0 && guests.slice_ns > 0, "a guest and its slice");
        self.guests = Some(guests);
        self
    }

    /// Adds `count` threads that run the same body, which gets the thread's number among them.
    pub fn threads(mut self, count: usize, body: impl FnOnce(usize) + Clone + 'static) -> Self {
        for number in 0..count {
            let body = body.clone();
            self = self.thread(move || body(number));
        }
        self
    }

    /// Schedules a core's threads by `schedule` instead of the machine's queue. They stay there,
    /// and none handles interrupts.
    ///
    /// # Panics
    ///
    /// If there is no such core.
    pub fn schedule_on(mut self, core: u32, schedule: impl Schedule) -> Self {
        assert!(core < self.machine.cores(), "no core {core}");
        self.schedules.push((core, Box::new(schedule)));
        self
    }

    /// Records the usage of all threads and the machine's counts at `at_ns`: see
    /// [`Outcome::accounts`]. Does not change the simulation.
    pub fn account_at(mut self, at_ns: u64) -> Self {
        self.accounts_ns.push(at_ns);
        self
    }

    /// Sets the time for which threads may run past the limit of [`run`](Self::run), in simulated
    /// nanoseconds: ten seconds by default.
    pub fn grace_ns(mut self, grace_ns: u64) -> Self {
        self.grace_ns = grace_ns;
        self
    }

    /// Sets the size of each thread's stack: 256 KiB by default. A thread that overflows it ends
    /// the host process.
    pub fn stack_bytes(mut self, stack_bytes: usize) -> Self {
        self.stack_bytes = stack_bytes;
        self
    }

    /// Runs until all threads have ended. Once `limit_ns` of simulated time has passed,
    /// [`finished`](crate::finished) returns `true`, and [`count`](crate::count) no longer counts.
    /// Simulations end after 2⁶³ ns (292 years) in any case. Blocks the calling host thread.
    ///
    /// # Errors
    ///
    /// [`Stuck`] if all threads wait for each other, or some run past the limit and the grace.
    /// Unfinished threads are then abandoned: values on their stacks are leaked, and no destructor
    /// runs.
    ///
    /// # Panics
    ///
    /// If a simulated thread panics, with its message; or if this host thread already runs a
    /// simulation.
    pub fn run(self, limit_ns: u64) -> Result<Outcome, Stuck> {
        let mut world = World::new(self.machine, self.model, self.seed, limit_ns, self.grace_ns);
        let plain = !self.model.balance && self.schedules.is_empty();
        assert!(plain || self.guests.is_none(), "guests schedule their threads by queues alone");
        world.hosting =
            self.guests.map(|guests| Hosting::new(guests, world.machine.cores(), self.seed));
        let guests = self.guests.map_or(0, |guests| guests.count);
        world.spinners = (0..guests).map(|_| no_spinners()).collect();
        let mut coroutines = Coroutines(Vec::new());
        for (core, schedule) in self.schedules {
            world.cores[core as usize].schedule = Some(schedule);
        }
        world.accounts_ns = self.accounts_ns;
        world.accounts_ns.sort_unstable_by_key(|&at_ns| Reverse(at_ns));
        for (number, Body { core, pinned, guest, run }) in self.bodies.into_iter().enumerate() {
            assert!(guest == 0 || guest < guests, "no guest {guest}");
            let random = Random::new(self.seed, 1 + number as u64);
            world.add(Thread::new(core, pinned, guest, random));
            coroutines.0.push(Some(coroutine(number, self.stack_bytes, run)));
        }
        let _installed = Installed::new(world);
        while let Some(thread) = with(World::next_turn) {
            with(|world| world.running = Some(thread));
            let over = coroutines.resume(thread);
            with(|world| {
                world.running = None;
                if over {
                    world.finish(thread);
                }
            });
        }
        with(World::outcome)
    }
}

type Fiber = Coroutine<(), (), ()>;

fn coroutine(number: usize, stack_bytes: usize, body: Box<dyn FnOnce()>) -> Fiber {
    let stack = DefaultStack::new(stack_bytes).expect("memory for a simulated thread's stack");
    Coroutine::with_stack(stack, move |yielder, ()| {
        with(|world| world.threads[number].yielder = yielder);
        body();
        // BUFFER-2: a thread that sees the end of this one sees its writes.
        drain();
    })
}

/// The coroutines of a simulation's threads; `None` for ended threads.
struct Coroutines(Vec<Option<Fiber>>);

impl Coroutines {
    /// Runs a thread until it suspends or ends; returns which.
    fn resume(&mut self, thread: usize) -> bool {
        let slot = &mut self.0[thread];
        let fiber = slot.as_mut().expect("a thread that is over has no turn");
        match fiber.resume(()) {
            CoroutineResult::Yield(()) => false,
            CoroutineResult::Return(()) => {
                *slot = None;
                true
            }
        }
    }
}

impl Drop for Coroutines {
    fn drop(&mut self) {
        for fiber in self.0.drain(..).flatten() {
            // Dropping a suspended coroutine unwinds it, and its destructors may wait for threads
            // that are gone. Forgetting it is always sound.
            if fiber.started() && !fiber.done() {
                std::mem::forget(fiber);
            }
        }
    }
}

impl World {
    fn add(&mut self, thread: Thread) {
        let at_ns = self.random.up_to(self.machine.start_jitter_ns);
        let thread_number = self.threads.len() as u32;
        self.events.push(at_ns, Event::Arrive { thread: thread_number });
        self.threads.push(thread);
    }

    fn next_turn(&mut self) -> Option<usize> {
        self.handed.take().unwrap_or_else(|| self.next_thread())
    }

    fn outcome(&mut self) -> Result<Outcome, Stuck> {
        let waits: Vec<Wait> = (0..self.threads.len()).filter_map(|n| self.wait_of(n)).collect();
        if waits.is_empty() {
            return Ok(Outcome {
                end_ns: self.now_ns,
                counts: self.counts.clone(),
                operations: self.threads.iter().map(|thread| thread.operations).collect(),
                trace_hash: self.trace,
                accounts: std::mem::take(&mut self.accounts),
                steals: self.steals(),
            });
        }
        let why = if self.waits_for_ever() { Why::Deadlock } else { Why::Overrun };
        Err(Stuck { why, at_ns: self.now_ns, waits })
    }

    fn wait_of(&self, number: usize) -> Option<Wait> {
        let thread = &self.threads[number];
        let on = match thread.state {
            State::Finished => return None,
            State::Watching(watch) | State::Rereading(watch) => WaitsOn::Word {
                line: watch.line.0,
                name: self.lines.name(watch.line),
                offset: watch.offset,
                value: watch.value,
                writer: self.lines.get(watch.line).writer,
            },
            State::Asleep(Some(sleep)) => match sleep.on {
                SleepsOn::Node(_) | SleepsOn::Nothing => WaitsOn::Unpark,
                SleepsOn::Word { line, offset, .. } => {
                    WaitsOn::Wake { line: line.0, name: self.lines.name(line), offset }
                }
            },
            State::Awaiting => WaitsOn::Interrupt,
            State::Step | State::Computing { .. } | State::Asleep(None) => WaitsOn::Nothing,
        };
        Some(Wait { thread: number, core: thread.core, on })
    }
}
