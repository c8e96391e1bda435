//! Models of the scheduler: each thread is in one place, and runs only after it has left its CPU.
//!
//! A thread of the kernel, and the idle thread of a CPU, is a thread of the checker. It waits for
//! its turn, which the thread that runs before it on its CPU gives it. Its registers are plain
//! data, which one thread writes when it leaves, and another reads when it goes on with it: a
//! thread that is run before it has left is a data race.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_metal::scheduler::{self, After, Kernel, Turns};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_wakeup::inbox::{Inbox, Link, Linked};
use antiphon_wakeup::machine::Machine as Hardware;
use antiphon_wakeup::{kick, token};

use super::cpu::Line;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::{Anywhere, Program};

type U32 = <Check as Atomics>::U32;

/// Number of CPUs. Threads 0 and 1 are their idle threads.
const CPUS: usize = 2;
/// Number of threads, at most.
const THREADS: usize = 4;
/// The first thread that is not idle.
const FIRST: usize = CPUS;

/// What a thread does, step by step; then it ends.
#[derive(Clone, Copy)]
enum Step {
    /// Sleeps until it is woken.
    Sleep,
    /// Wakes that thread.
    Wake(usize),
    /// Lets other threads of its CPU run.
    Yield,
    /// Moves to that CPU.
    Move(usize),
    /// Makes a new thread for that CPU of one that has ended, if it has ended; it has no steps.
    Reuse(usize, usize),
}

use Step::{Move, Reuse, Sleep, Wake, Yield};

pub fn entries() -> Vec<Entry> {
    let moves: Steps = &[(0, &[Move(1)])];
    let returns: Steps = &[(0, &[Move(1), Move(0)])];
    let cross: Steps = &[(0, &[Move(1)]), (1, &[Move(0)])];
    let sleeps: Steps = &[(0, &[Sleep]), (1, &[Wake(FIRST)])];
    let both: Steps = &[(0, &[Sleep]), (0, &[Wake(FIRST), Yield])];
    let moves_and_sleeps: Steps = &[(0, &[Move(1), Sleep]), (0, &[Wake(FIRST)])];
    let yields: Steps = &[(0, &[Yield, Wake(FIRST + 1)]), (0, &[Yield, Sleep])];
    let reuses: Steps = &[(0, &[]), (1, &[Reuse(FIRST, 1)])];
    let asleep = &["slept", "woken first"];
    Subject("metal-threads").models([
        model("moves-2+1", running(moves), PLAIN).reaches(&["moved"]),
        model("moves-back-2+1", running(returns), PLAIN).reaches(&["moved"]),
        model("moves-across-2+2", running(cross), PLAIN).reaches(&["moved"]),
        model("sleeps-2+2", running(sleeps), PLAIN).reaches(asleep),
        model("sleeps-beside-2+2", running(both), PLAIN).reaches(&["slept"]),
        model("sleeps-moved-2+2", running(moves_and_sleeps), PLAIN).reaches(asleep),
        model("yields-2+2", running(yields), PLAIN).reaches(&["yielded"]),
        model("reuses-2+2", running(reuses), PLAIN).reaches(&["reused", "not ended"]),
    ])
}

/// The CPU and the steps of each thread.
type Steps = &'static [(usize, &'static [Step])];

/// A thread.
struct Thread {
    link: Link<Check>,
    number: usize,
    /// The CPU that it is bound to. The thread itself writes it, or its maker.
    bound: Data<usize>,
    /// The CPU that runs it, as the thread before it has noted.
    on: Data<usize>,
    /// Written when it leaves, read by the one that goes on with it.
    registers: Data<u32>,
    /// [`GO`] when it is its turn, [`OVER`] at the end.
    turn: U32,
    token: U32,
    /// 1 if it has ended and may be reused.
    free: U32,
}

const GO: u32 = 1;
const OVER: u32 = 2;

// SAFETY: threads of a model run one at a time, on one OS thread.
unsafe impl Sync for Thread {}

// SAFETY: the link is always the same, and of this entry alone.
unsafe impl Linked for Thread {
    type Words = Check;

    fn link(&self) -> &Link<Check> {
        &self.link
    }
}

impl Thread {
    fn new(number: usize, cpu: usize) -> Self {
        Self {
            link: Link::NEW,
            number,
            bound: Data::new(cpu),
            on: Data::new(cpu),
            registers: Data::new(0),
            turn: Atomic::ZERO,
            token: Atomic::ZERO,
            free: Atomic::ZERO,
        }
    }

    /// Waits for its turn; `false` at the end.
    fn wait(&self) -> bool {
        // Acquire: what the thread before it did; pairs with `run` and with the end.
        let turn = self.turn.wait_while(Acquire, |turn| turn == 0);
        if turn == GO {
            self.turn.store(0, Relaxed);
        }
        turn == GO
    }
}

struct Cpu {
    inbox: Inbox<Thread>,
    line: Line,
    turns: UnsafeCell<Turns<Thread>>,
    running: Data<*const Thread>,
    /// Changed by each use of `turns`: two at a time race.
    uses: Data<u32>,
}

struct Machine {
    cpus: [Cpu; CPUS],
    threads: Vec<Thread>,
    /// Number of threads that have ended, and that will have.
    ended: U32,
    expected: U32,
}

impl Machine {
    fn new(steps: Steps) -> Self {
        let bound = |number: usize| if number < CPUS { number } else { steps[number - FIRST].0 };
        let count = FIRST + steps.len();
        assert!(count <= THREADS);
        let cpu = |_| Cpu {
            inbox: Inbox::NEW,
            line: Line::new(),
            turns: UnsafeCell::new(Turns::NEW),
            running: Data::new(ptr::null()),
            uses: Data::new(0),
        };
        Self {
            cpus: [0, 1].map(cpu),
            threads: (0..count).map(|number| Thread::new(number, bound(number))).collect(),
            ended: Atomic::ZERO,
            expected: Atomic::ZERO,
        }
    }

    fn all_have_ended(&self) -> bool {
        // Acquire: the end of each; pairs with `end`.
        self.ended.load(Acquire) == self.expected.load(Relaxed)
    }
}

/// The kernel, as thread `me` sees it. After its end a thread is no thread of the kernel, until it
/// is reused: what it still calls concerns no CPU.
struct View<'a> {
    machine: &'a Machine,
    me: usize,
    /// Whether the thread leaves for good, and whether it has.
    ends: Data<bool>,
    is_gone: Data<bool>,
    nowhere: UnsafeCell<Turns<Thread>>,
}

/// The CPU of a thread that has ended.
const NOWHERE: usize = CPUS;

impl Hardware for View<'_> {
    type Words = Check;
    type Cpu = usize;
    type Signal = ();

    const KICK: () = ();

    fn is_current(&self, cpu: usize) -> bool {
        cpu == self.this()
    }

    fn others(&self) -> usize {
        CPUS - 1
    }

    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    fn interrupt(&self, cpu: usize, (): ()) {
        assert_ne!(cpu, self.this(), "KICK-3");
        let _ = self.machine.cpus[cpu].line.raise();
    }

    fn interrupt_others(&self, (): ()) {
        (0..CPUS).filter(|cpu| *cpu != self.this()).for_each(|cpu| self.interrupt(cpu, ()));
    }

    fn halt(&self) {
        self.machine.cpus[self.this()].line.wait();
    }
}

impl Kernel for View<'_> {
    type Thread = Thread;

    fn this(&self) -> usize {
        if self.is_gone.get() { NOWHERE } else { self.machine.threads[self.me].on.get() }
    }

    fn cpu_of(&self, thread: *const Thread) -> usize {
        // SAFETY: threads live as long as the model.
        unsafe { (*thread).bound.get() }
    }

    fn inbox(&self, cpu: usize) -> &Inbox<Thread> {
        &self.machine.cpus[cpu].inbox
    }

    fn running(&self, cpu: usize) -> *const Thread {
        self.machine.cpus[cpu].running.get()
    }

    fn set_running(&self, cpu: usize, thread: *const Thread) {
        self.machine.cpus[cpu].running.set(thread);
    }

    unsafe fn turns(&self, cpu: usize) -> &mut Turns<Thread> {
        if cpu == NOWHERE {
            // SAFETY: only this thread uses it.
            return unsafe { &mut *self.nowhere.get() };
        }
        let cpu = &self.machine.cpus[cpu];
        cpu.uses.with_mut(|uses| *uses += 1);
        // SAFETY: the threads of a CPU run by turns, which the line above checks.
        unsafe { &mut *cpu.turns.get() }
    }

    fn begin_slice(&self, _: usize, _: bool) {}

    unsafe fn switch(&self, from: *const Thread, to: *const Thread) {
        assert!(!ptr::eq(from, to), "a thread that runs has no registers to go on with");
        // SAFETY: threads live as long as the model.
        let (from, to) = unsafe { (&*from, &*to) };
        assert_eq!(from.number, self.me, "the thread that runs leaves");
        // RUN-2: the thread has left when its registers are saved.
        from.registers.with_mut(|registers| *registers += 1);
        to.on.set(from.on.get());
        let _ = to.registers.get();
        // Release: pairs with the acquire in `wait`.
        to.turn.store(GO, Release);
        if self.ends.get() {
            // The kernel does not return from this switch.
            self.is_gone.set(true);
        } else {
            assert!(from.wait(), "the last has ended while a thread was away");
        }
    }

    fn reap(&self, thread: *const Thread) {
        // Release: RUN-3, that it has left; pairs with the acquire of `Reuse`.
        // SAFETY: threads live as long as the model.
        unsafe { (*thread).free.store(1, Release) };
    }
}

impl<'a> View<'a> {
    fn new(machine: &'a Machine, me: usize) -> Self {
        let nowhere = UnsafeCell::new(Turns::NEW);
        Self { machine, me, ends: Data::new(false), is_gone: Data::new(false), nowhere }
    }

    fn thread(&self) -> &'a Thread {
        &self.machine.threads[self.me]
    }

    /// As `schedule::idle`, until all threads have ended.
    fn idle(&self) {
        let cpu = &self.machine.cpus[self.me];
        while !self.machine.all_have_ended() {
            // SAFETY: this is the idle thread of the CPU.
            unsafe { scheduler::switch_away(self, self.me) };
            if self.machine.all_have_ended() {
                break;
            }
            cpu.inbox.halt(|| self.halt());
        }
        // Release: pairs with the acquire in `wait`.
        let others = &self.machine.threads[FIRST..];
        others.iter().for_each(|thread| thread.turn.store(OVER, Release));
    }

    /// The lives of a thread, the first with these steps.
    fn live(&self, steps: &[Step]) {
        let mut steps = steps;
        while self.thread().wait() {
            self.ends.set(false);
            self.is_gone.set(false);
            // SAFETY: there are no interrupts. As `thread::enter`.
            unsafe { scheduler::arrive(self) };
            assert_eq!(self.this(), self.thread().bound.get(), "on the CPU that it is bound to");
            steps.iter().for_each(|step| self.take(*step));
            steps = &[];
            self.end();
        }
    }

    fn take(&self, step: Step) {
        let me = self.thread();
        match step {
            // As `schedule::sleep`.
            Sleep => {
                if token::fall_asleep(&me.token) {
                    probe("slept");
                    // SAFETY: the thread is asleep.
                    unsafe { scheduler::switch_away(self, self.this()) };
                    assert!(token::wake_up(&me.token), "RUN-1: not woken");
                } else {
                    probe("woken first");
                }
            }
            // As `schedule::wake`.
            Wake(other) => {
                let other = &self.machine.threads[other];
                let place = || (scheduler::home(self, other), ptr::from_ref(other));
                // SAFETY: threads live as long as the model.
                unsafe { kick::wake(self, &other.token, place) };
            }
            Yield => {
                // SAFETY: there are no interrupts.
                if unsafe { scheduler::yield_now(self, self.this()) } {
                    probe("yielded");
                }
            }
            // As `thread::bind`.
            Move(cpu) => {
                me.bound.set(cpu);
                // SAFETY: the thread runs, and is not idle.
                unsafe { scheduler::leave(self, After::Send(me)) };
                assert_eq!(self.this(), cpu, "the thread has moved");
                probe("moved");
            }
            // As `thread::spawn_on`.
            Reuse(other, cpu) => {
                let other = &self.machine.threads[other];
                // Acquire: RUN-3; pairs with `reap`.
                if other.free.swap(0, Acquire) == 1 {
                    probe("reused");
                    self.machine.expected.fetch_add(1, Relaxed);
                    other.bound.set(cpu);
                    // Prepares its stack.
                    other.registers.set(0);
                    // SAFETY: RUN-1: the thread is in no place.
                    unsafe { kick::make_runnable(self, scheduler::home(self, other), other) };
                } else {
                    probe("not ended");
                }
            }
        }
    }

    /// As the end of `thread::enter`.
    fn end(&self) {
        let cpu = self.this();
        self.ends.set(true);
        // Release: pairs with `all_have_ended`.
        self.machine.ended.fetch_add(1, Release);
        for other in (0..CPUS).filter(|other| *other != cpu) {
            let _ = self.machine.cpus[other].line.raise();
        }
        let after = After::Reap(ptr::from_ref(self.thread()));
        // SAFETY: the thread runs, and is not idle.
        unsafe { scheduler::leave(self, after) };
    }
}

/// Threads take their steps on two CPUs, and all of them end.
fn running(steps: Steps) -> Program {
    let count = FIRST + steps.len();
    let operations = CPUS as u32 + steps.iter().map(|(_, own)| 1 + own.len() as u32).sum::<u32>();
    Program::new(count as u32, operations, move |scope| {
        let machine = scope.share(Anywhere(Machine::new(steps)));
        machine.0.expected.store(steps.len() as u32, Relaxed);
        for cpu in 0..CPUS {
            let view = View::new(&machine.0, cpu);
            let idle = ptr::from_ref(view.thread());
            view.set_running(cpu, idle);
            // SAFETY: no thread runs yet.
            unsafe { view.turns(cpu).set_idle(idle) };
        }
        for (number, (cpu, _)) in steps.iter().enumerate() {
            let thread = &machine.0.threads[FIRST + number];
            // SAFETY: the thread is in no inbox, and lives as long as the model.
            let _ = unsafe { machine.0.cpus[*cpu].inbox.put(thread) };
        }
        scope.spawn_each(0..CPUS, move |cpu| View::new(&machine.0, cpu).idle());
        scope.spawn_each(steps.iter().enumerate(), move |(number, (_, steps))| {
            View::new(&machine.0, FIRST + number).live(steps)
        });
    })
}
