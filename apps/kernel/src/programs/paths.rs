//! `paths`: measures the time from an interrupt, a message or a wake to its effect.
//!
//! Times are read from the time-stamp counter. In an `--exact` run (`-icount shift=0`) the counter
//! counts instructions, and each figure is the length of a path; otherwise the figures are ticks of
//! this machine's counter.
//!
//! In an `--exact` run the CPUs take turns, and a CPU runs until it pauses or halts: so a sender
//! pauses as soon as it has sent, and its instructions until then are part of the figure.
//!
//! | figure | from | to |
//! |---|---|---|
//! | `instruction` | `int` | the first instructions of its handler, which read the counter |
//! | `icr_write` | before an interrupt is sent | after the send, at the sender |
//! | `raw_ipi` | before an interrupt is sent | its handler begins, on a halted CPU |
//! | `message_entry` | before a message is posted | its handler has saved registers; Rust begins |
//! | `message_body` | as above | the first instruction of the action |
//! | `direct_body` | as above | the same, by a vector of its own |
//! | `unblock_running` | as above | the thread that the action unblocks runs |
//! | `mailbox_body` | before a runtime message is posted | its action begins, in the interrupt |
//! | `condvar_running` | before `notify_one` | the waiter runs again |
//! | `condvar_returned` | as above | the waiter has its mutex |
//! | `condvar_send` | as above | after `notify_one`, at the sender |
//! | `percpu_running` | before `notify_all` of the kernel's condition variable | its waiter runs |
//! | `percpu_send` | as above | after it, at the sender |
//! | `event_returned` | before `set` | `wait` has returned |
//! | `broadcast_send` | before a broadcast | after it, at the sender |
//! | `broadcast_last` | as above | the last CPU's action begins |
//! | `unicast_send`, `unicast_last` | as above | the same, with an interrupt for each CPU |

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_metal::kernel::{cpu, message, thread};
use antiphon_metal::options::Options;
use antiphon_metal::statistics::{Summary, deviation};
use antiphon_metal::x86::cpu::tsc_unordered;
use antiphon_metal::x86::power::Outcome;
use antiphon_metal::x86::{apic, vectors};
use antiphon_metal::{Metal, println};
use antiphon_runtime::message::{Actions, Message};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait::{Condvar, Event};

use crate::programs::prompt::Prompt;
use crate::programs::trial::{SETTLE_NS, noted, settle};
use crate::programs::{sender, shortcuts};

pub fn run(options: Options<'_>) -> Outcome {
    let Ok(trials) = options.number("trials", 100) else {
        println!("`trials` is a number");
        return Outcome::Misused;
    };
    let trials = trials.clamp(1, 100_000) as usize;
    print("instruction", &mut instruction(trials));
    if cpu::count() > 1 {
        let (mut sent, mut raw) = raw_ipi(trials);
        print("icr_write", &mut sent);
        print("raw_ipi", &mut raw);
        let (mut entry, mut body) = kernel_message(trials);
        print("message_entry", &mut entry);
        print("message_body", &mut body);
        print("direct_body", &mut shortcuts::direct(trials));
        print("unblock_running", &mut shortcuts::unblocked(trials));
        match mailbox_message(trials) {
            Some(mut body) => print("mailbox_body", &mut body),
            None => return Outcome::Failed,
        }
        let (mut running, mut returned) = condvar(trials);
        print("condvar_running", &mut running);
        print("condvar_returned", &mut returned);
        print("condvar_send", &mut sender::notify_one(trials, SETTLE_NS));
        let (mut running, mut sent) = shortcuts::percpu(trials);
        print("percpu_running", &mut running);
        print("percpu_send", &mut sent);
        print("event_returned", &mut event(trials));
        let (mut sent, mut last) = broadcast(trials, true);
        print("broadcast_send", &mut sent);
        print("broadcast_last", &mut last);
        let (mut sent, mut last) = broadcast(trials, false);
        print("unicast_send", &mut sent);
        print("unicast_last", &mut last);
    }
    Outcome::Passed
}

fn print(name: &str, samples: &mut [u64]) {
    let sigma = deviation(samples);
    let Some(Summary { min, median, p99, max }) = Summary::of(samples) else { return };
    println!("{name}={median}");
    println!("{name}.min={min}");
    println!("{name}.p99={p99}");
    println!("{name}.max={max}");
    println!("{name}.sigma={sigma}");
}

fn instruction(trials: usize) -> Vec<u64> {
    let here = cpu::this();
    let trial = |_| {
        let began = tsc_unordered();
        // SAFETY: the handler of this vector notes the time, and returns.
        unsafe { core::arch::asm!("int {}", const vectors::INSTRUCTION) };
        noted(&here.noted) - began
    };
    (0..trials).map(trial).collect()
}

fn raw_ipi(trials: usize) -> (Vec<u64>, Vec<u64>) {
    let target = cpu::get(1);
    let trial = |_| {
        settle();
        let began = tsc_unordered();
        apic::send(target.apic_id(), vectors::RAW);
        let sent = tsc_unordered();
        core::hint::spin_loop();
        (sent - began, noted(&target.noted) - began)
    };
    (0..trials).map(trial).unzip()
}

/// The time at which an action has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

fn note_begun(_: usize) {
    BEGUN.store(tsc_unordered(), Release);
}

fn kernel_message(trials: usize) -> (Vec<u64>, Vec<u64>) {
    let action = message::register(note_begun, 0).expect("an action of the kernel");
    let target = cpu::get(1);
    let trial = |_| {
        settle();
        let began = tsc_unordered();
        message::post_noted(1, action);
        core::hint::spin_loop();
        (noted(&target.noted) - began, noted(&BEGUN) - began)
    };
    let trials = (0..trials).map(trial).unzip();
    message::unregister(action).expect("it is registered");
    trials
}

fn mailbox_message(trials: usize) -> Option<Vec<u64>> {
    let actions = Actions::<Metal>::new(1);
    let action = actions.register(|_| note_begun(0)).ok()?;
    let sender = Prompt::open(1, &actions, 16).ok()?;
    let trial = |_| {
        settle();
        let message = Message { action, payload: [0; 3] };
        let began = tsc_unordered();
        let posted = sender.post(message);
        core::hint::spin_loop();
        posted.ok().map(|()| noted(&BEGUN) - began)
    };
    (0..trials).map(trial).collect()
}

/// A mutex, a condition variable and the times that the waiter notes.
struct Waited {
    mutex: ShflMutex<Metal>,
    condvar: Condvar<Metal>,
    event: Event<Metal>,
    running: AtomicU64,
    returned: AtomicU64,
}

impl Waited {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            mutex: ShflMutex::NEW,
            condvar: Condvar::NEW,
            event: Event::NEW,
            running: AtomicU64::new(0),
            returned: AtomicU64::new(0),
        })
    }
}

fn condvar(trials: usize) -> (Vec<u64>, Vec<u64>) {
    let waited = Waited::new();
    let ours = waited.clone();
    let waiter = thread::spawn_on(1, move || {
        for _ in 0..trials {
            ours.mutex.lock();
            let entry = ours.condvar.prepare();
            // SAFETY: locked above.
            unsafe { ours.mutex.unlock() };
            while !entry.sleep(None) {}
            let running = tsc_unordered();
            // SAFETY: the same condition variable has prepared the entry.
            let _ = unsafe { ours.condvar.finish(entry) };
            ours.mutex.lock();
            let returned = tsc_unordered();
            // SAFETY: locked above.
            unsafe { ours.mutex.unlock() };
            ours.running.store(running, Release);
            ours.returned.store(returned, Release);
        }
    });
    let trial = |_| {
        settle();
        let began = tsc_unordered();
        waited.condvar.notify_one();
        core::hint::spin_loop();
        (noted(&waited.running) - began, noted(&waited.returned) - began)
    };
    let trials = (0..trials).map(trial).unzip();
    waiter.expect("memory for a thread").join();
    trials
}

fn event(trials: usize) -> Vec<u64> {
    let waited = Waited::new();
    let ours = waited.clone();
    let waiter = thread::spawn_on(1, move || {
        for _ in 0..trials {
            ours.event.wait();
            ours.returned.store(tsc_unordered(), Release);
        }
    });
    let trial = |_| {
        // Until the waiter no longer spins.
        while !waited.event.has_waiters() {
            settle();
        }
        settle();
        let began = tsc_unordered();
        waited.event.set();
        core::hint::spin_loop();
        noted(&waited.returned) - began
    };
    let trials = (0..trials).map(trial).collect();
    waiter.expect("memory for a thread").join();
    trials
}

/// The time at which the last action of a broadcast has begun, and the number that have begun.
static LAST: AtomicU64 = AtomicU64::new(0);
static CAME: AtomicU64 = AtomicU64::new(0);

fn note_last(_: usize) {
    LAST.fetch_max(tsc_unordered(), Relaxed);
    // Release: the time; pairs with the acquire in `broadcast`.
    CAME.fetch_add(1, Release);
}

/// Makes all other CPUs run an action: by one command, or by one command for each CPU.
fn broadcast(trials: usize, by_one: bool) -> (Vec<u64>, Vec<u64>) {
    let others = u64::from(cpu::count()) - 1;
    let each = message::register(note_last, 0).expect("an action of the kernel");
    let all = message::register_broadcast(note_last, 0).expect("an action of the kernel");
    let trial = |_| {
        settle();
        LAST.store(0, Relaxed);
        CAME.store(0, Relaxed);
        let began = tsc_unordered();
        if by_one {
            message::broadcast(all)
        } else {
            message::post_to_others(each)
        }
        let sent = tsc_unordered();
        while CAME.load(Acquire) < others {
            core::hint::spin_loop();
        }
        (sent - began, LAST.load(Relaxed) - began)
    };
    let trials = (0..trials).map(trial).unzip();
    message::unregister(each).expect("it is registered");
    message::unregister_broadcast(all).expect("it is registered");
    trials
}
