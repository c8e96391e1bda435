//! `messages`: each form of active message, with actions that are unregistered while they are
//! posted; and waits by halt.
//!
//! | part | counts |
//! |---|---|
//! | `slot` | runs of an action that all CPUs post by slots: as many as posts |
//! | `bitmap.late`, `slot.late`, `direct.late`, `broadcast.late` | late or wrong runs: must be 0 |
//! | `bitmap.ran` and so on | rounds in which the action has run |
//! | `bitmap.twice` and so on | second calls with a copy of the name that were refused |
//! | `awaited` | messages that a CPU has awaited by halt |

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU64, fence};

use antiphon_metal::kernel::lock::Lock;
use antiphon_metal::kernel::message::direct::{Direct, DirectAction};
use antiphon_metal::kernel::message::{self, Action, BroadcastAction, NotRegistered, direct, slot};
use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::kernel::{cpu, schedule};
use antiphon_metal::options::Options;
use antiphon_metal::x86::clock;
use antiphon_metal::x86::cpu::{restore, without_interrupts};
use antiphon_metal::x86::power::Outcome;
use antiphon_metal::{Metal, println};

use antiphon_platform::Platform;

use crate::programs::parts::Parts;

pub fn run(options: Options<'_>) -> Outcome {
    let Ok(rounds) = options.number("rounds", 100) else {
        println!("`rounds` is a number");
        return Outcome::Misused;
    };
    let mut parts = Parts::NONE;
    parts.add("slot", slots(rounds));
    in_flight(&BITMAP, rounds, &mut parts, "bitmap.late", "bitmap.ran");
    in_flight(&SLOTS, rounds, &mut parts, "slot.late", "slot.ran");
    in_flight(&VECTORS, rounds, &mut parts, "direct.late", "direct.ran");
    parts.add("bitmap.twice", twice(&BITMAP, rounds));
    parts.add("direct.twice", twice(&VECTORS, rounds));
    parts.add("broadcast.twice", twice(&BROADCASTS, rounds));
    if cpu::count() > 1 {
        in_flight(&BROADCASTS, rounds, &mut parts, "broadcast.late", "broadcast.ran");
        parts.add("awaited", awaited(rounds));
    }
    parts.outcome()
}

/// The last round whose action has run, or the number of runs.
static RAN: AtomicU64 = AtomicU64::new(0);
/// The number of runs of the actions of all rounds.
static RUNS: AtomicU64 = AtomicU64::new(0);
/// The round whose action may run; 0 if none may.
static LIVE: AtomicU64 = AtomicU64::new(0);
static LATE: AtomicU64 = AtomicU64::new(0);

fn count(_: usize) {
    // Relaxed: the joins and the slot order the reads at the end.
    RAN.fetch_add(1, Relaxed);
}

/// A thread on each CPU posts to all CPUs in turn.
fn slots(rounds: u64) -> (u64, u64) {
    RAN.store(0, Relaxed);
    let action = message::register(count, 0).expect("an action of the kernel");
    let post = move |cpu: u32| {
        let all = cpu::count();
        let body =
            move || (0..rounds).for_each(|round| slot::post((cpu + round as u32) % all, action));
        thread::spawn_on(cpu, body).expect("memory for a thread")
    };
    let handles: Vec<_> = (0..cpu::count()).map(post).collect();
    handles.into_iter().for_each(JoinHandle::join);
    let posted = rounds * u64::from(cpu::count());
    let end = clock::now_ns() + 1_000_000_000;
    while RAN.load(Relaxed) < posted && clock::now_ns() < end {
        thread::sleep_ns(10_000);
    }
    message::unregister(action).expect("it is registered");
    (RAN.load(Relaxed), posted)
}

/// A form of message.
struct Form<A> {
    /// Registers the action of a round, which calls [`run_of`] with its number.
    register: fn(u64) -> A,
    unregister: fn(A) -> Result<(), NotRegistered>,
    post: fn(u32, A),
}

const BITMAP: Form<Action> =
    Form { register: by_word, unregister: message::unregister, post: message::post };
const SLOTS: Form<Action> = Form { post: slot::post, ..BITMAP };
const VECTORS: Form<DirectAction> =
    Form { register: by_parity, unregister: direct::unregister, post: direct::post };
const BROADCASTS: Form<BroadcastAction> = Form {
    register: to_all,
    unregister: message::unregister_broadcast,
    post: |_, action| message::broadcast(action),
};

fn by_word(round: u64) -> Action {
    message::register(run_word, round as usize).expect("an action of the kernel")
}

fn to_all(round: u64) -> BroadcastAction {
    message::register_broadcast(run_word, round as usize).expect("an action of the kernel")
}

fn by_parity(round: u64) -> DirectAction {
    let action = if round.is_multiple_of(2) {
        direct::register::<Parity<false>>()
    } else {
        direct::register::<Parity<true>>()
    };
    action.expect("a vector")
}

/// The body of the action of a round.
fn run_of(round: u64) {
    let is_live = || LIVE.load(Acquire) == round;
    let began_live = is_live();
    // Takes some time, so that others find the action running.
    clock::delay_ns(300);
    if began_live && is_live() {
        RAN.store(round, Relaxed);
    } else {
        LATE.fetch_add(1, Relaxed);
    }
    RUNS.fetch_add(1, Relaxed);
}

fn run_word(round: usize) {
    run_of(round as u64);
}

/// The actions of even and of odd rounds, two types because a vector's action has no word.
struct Parity<const ODD: bool>;

impl<const ODD: bool> Direct for Parity<ODD> {
    fn run() {
        let live = LIVE.load(Acquire);
        // If the open round is of the other kind, or none is open, the action runs late.
        let is_mine = live != 0 && (live % 2 == 1) == ODD;
        run_of(if is_mine { live } else { u64::MAX });
    }
}

/// The round that is open to posts, 0 if none is; its action; and the number of senders that are
/// posting.
struct Open<A> {
    round: AtomicU64,
    posting: AtomicU64,
    action: Lock<Option<A>>,
    ends: AtomicBool,
}

impl<A> Open<A> {
    /// Closes the round, and waits until no sender posts.
    fn close(&self) {
        self.round.store(0, Relaxed);
        // Pairs with the fence in `send`: a sender sees the end of the round, or is seen.
        fence(SeqCst);
        // Acquire: the last posts; pairs with the release in `send`.
        wait_until(|| self.posting.load(Acquire) == 0);
    }
}

/// The CPUs that post. The last one only receives, if there are several.
fn senders() -> core::ops::Range<u32> {
    0..(cpu::count() - 1).max(1)
}

fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        core::hint::spin_loop();
        schedule::yield_now();
    }
}

/// Lets a random time pass, up to `most_ns`.
fn some_time(most_ns: u64) {
    clock::delay_ns(u64::from(Metal::random()) % most_ns);
}

/// Lets a random time pass with interrupts off: messages to this CPU stay pending.
fn deaf_time(most_ns: u64) {
    let were_on = without_interrupts();
    some_time(most_ns);
    restore(were_on);
}

/// In each round an action is registered, posted by threads of several CPUs, and unregistered: in
/// odd rounds while they still post, in even rounds after they have stopped, while posts may still
/// be on their way. The next round's action gets the same entry.
fn in_flight<A: Copy + Send + Sync + 'static>(
    form: &'static Form<A>,
    rounds: u64,
    parts: &mut Parts,
    late: &str,
    ran: &str,
) {
    RAN.store(0, Relaxed);
    LATE.store(0, Relaxed);
    let open = Arc::new(Open::<A> {
        round: AtomicU64::new(0),
        posting: AtomicU64::new(0),
        action: Lock::new(None),
        ends: AtomicBool::new(false),
    });
    let spawn = |cpu: u32| {
        let open = open.clone();
        thread::spawn_on(cpu, move || send(form, &open)).expect("memory for a thread")
    };
    let senders: Vec<_> = senders().map(spawn).collect();
    let ours = open.clone();
    let listen = move || {
        while !ours.ends.load(Relaxed) {
            deaf_time(5_000);
            schedule::yield_now();
        }
    };
    let listener = thread::spawn_on(cpu::count() - 1, listen).expect("memory for a thread");
    let mut rounds_that_ran = 0;
    for round in 1..=rounds {
        let action = (form.register)(round);
        if round % 2 == 1 {
            // Posts to the earlier action run nothing.
            some_time(5_000);
        }
        LIVE.store(round, Release);
        *open.action.lock() = Some(action);
        open.round.store(round, Release);
        let end = clock::now_ns() + 1_000_000_000;
        wait_until(|| RAN.load(Relaxed) == round || clock::now_ns() > end);
        rounds_that_ran += u64::from(RAN.load(Relaxed) == round);
        some_time(3_000);
        if round % 2 == 0 {
            open.close();
        }
        let is_done = (form.unregister)(action).is_ok();
        assert!(is_done, "the action of the round is registered");
        LIVE.store(0, Release);
        if round % 2 == 1 {
            open.close();
        }
    }
    open.ends.store(true, Relaxed);
    senders.into_iter().for_each(JoinHandle::join);
    listener.join();
    parts.add(late, (LATE.load(Relaxed), 0));
    parts.add(ran, (rounds_that_ran, rounds));
}

/// In each round a copy of an action's name is kept, and is unregistered a second time when its
/// entry belongs to another action. Counts the second calls that were refused and have left the
/// other action registered.
fn twice<A: Copy>(form: &'static Form<A>, rounds: u64) -> (u64, u64) {
    let refused = |round| {
        let first = (form.register)(round);
        let is_first = (form.unregister)(first).is_ok();
        let second = (form.register)(round + 1);
        let is_refused = (form.unregister)(first).is_err();
        let is_kept = (form.unregister)(second).is_ok();
        u64::from(is_first && is_refused && is_kept)
    };
    ((1..=rounds).map(refused).sum(), rounds)
}

/// Posts to all CPUs in turn while a round is open.
fn send<A: Copy>(form: &Form<A>, open: &Open<A>) {
    let count = cpu::count();
    let mut target = cpu::number();
    while !open.ends.load(Relaxed) {
        open.posting.fetch_add(1, Relaxed);
        // Pairs with the fence in `close`.
        fence(SeqCst);
        // Acquire: the action; pairs with the release in `in_flight`.
        let round = open.round.load(Acquire);
        if round != 0 {
            let action = *open.action.lock();
            let action = action.expect("the round is open");
            target = (target + 1) % count;
            let before = RUNS.load(Relaxed);
            (form.post)(target, action);
            deaf_time(1_500);
            // Without a pause, CPUs would only take messages.
            wait_until(|| RUNS.load(Relaxed) != before || open.round.load(Relaxed) != round);
        }
        // Release: the post; pairs with the acquire in `close`.
        open.posting.fetch_sub(1, Release);
        core::hint::spin_loop();
        schedule::yield_now();
    }
}

static ASKED: AtomicU64 = AtomicU64::new(0);
static ANSWERED: AtomicU64 = AtomicU64::new(0);

fn ask(_: usize) {
    ASKED.fetch_add(1, Release);
}

fn answer(_: usize) {
    ANSWERED.fetch_add(1, Release);
}

/// Two CPUs post to each other, and halt in between. If a message that comes between the check and
/// the halt were missed, the CPU would wait for it for ever.
fn awaited(rounds: u64) -> (u64, u64) {
    let asks = message::register(ask, 0).expect("an action of the kernel");
    let answers = message::register(answer, 0).expect("an action of the kernel");
    let other = thread::spawn_on(1, move || {
        for round in 1..=rounds {
            schedule::halt_until(|| ASKED.load(Acquire) >= round);
            message::post(0, answers);
        }
    });
    for round in 1..=rounds {
        message::post(1, asks);
        schedule::halt_until(|| ANSWERED.load(Acquire) >= round);
    }
    other.expect("memory for a thread").join();
    message::unregister(asks).expect("it is registered");
    message::unregister(answers).expect("it is registered");
    (ANSWERED.load(Relaxed), rounds)
}
