//! Tests of the order in which each policy serves waiters, on simulated machines.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_platform::Budget;
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, effective_rank, finished, now, set_rank};
use antiphon_sim::{think, work};
use antiphon_sync::lock::{Form, Lock, ShflMutex, ShflOwned, ShflSpin};
use antiphon_sync::policy::set_priority;
use antiphon_sync::policy::{
    Boost, Chosen, Distance, None, Numa, Policy, Priority, Scl, Then, Waiting, WakeUp,
};

fn unlock(lock: &impl Lock) {
    // SAFETY: each caller owns it.
    unsafe { lock.unlock() }
}

/// A waiter: its core and its rank.
type Comer = (u32, u8);

/// Length of a critical section.
const STEP_NS: u64 = 1_000;
/// Time from one arrival to the next: longer than a waiter spins before it joins the queue.
const APART_NS: u64 = 4_000;

/// A lock that is held until all of `comers` wait for it, which come one after the other.
#[derive(Clone)]
struct Case {
    machine: Machine,
    comers: &'static [Comer],
    /// Time for which each waiter has the lock.
    section_ns: u64,
}

impl Case {
    fn new(machine: Machine, comers: &'static [Comer]) -> Self {
        Self { machine: machine.without_jitter(), comers, section_ns: STEP_NS }
    }

    /// Lengthens the critical sections, which gives the head the time to look at all others.
    fn long(self) -> Self {
        Self { section_ns: 4 * STEP_NS, ..self }
    }

    /// Returns the waiters, by their places in `comers`, in the order in which they were served.
    /// Calls `before` on the lock before any comes, and `then` when all have come.
    fn run<L: Lock>(self, before: fn(&L), then: fn(&L)) -> Vec<usize> {
        self.run_until(before, then).0
    }

    /// Like [`run`](Self::run); also returns when the last waiter was done.
    fn run_until<L: Lock>(self, before: fn(&L), then: fn(&L)) -> (Vec<usize>, u64) {
        let shared = Rc::new((OwnLine(L::NEW), RefCell::new(Vec::new()), Cell::new(0)));
        let result = Rc::clone(&shared);
        let holder = Rc::clone(&shared);
        let Self { machine, comers, section_ns } = self;
        let last_core = machine.cores() - 1;
        let mut simulation = Simulation::new(machine, 1).thread_on(last_core, move || {
            before(&holder.0.0);
            holder.0.lock();
            work(APART_NS * (comers.len() as u64 + 4));
            then(&holder.0.0);
            work(STEP_NS);
            unlock(&holder.0.0);
        });
        for (nth, &(core, rank)) in comers.iter().enumerate() {
            let shared = Rc::clone(&shared);
            simulation = simulation.thread_on(core, move || {
                set_priority::<Sim>(Some(rank));
                work(APART_NS * (nth as u64 + 1));
                shared.0.lock();
                shared.1.borrow_mut().push(nth);
                work(section_ns);
                shared.2.set(now());
                unlock(&shared.0.0);
            });
        }
        let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"));
        (result.1.take(), result.2.get())
    }

    /// Runs the case on a lock whose type has the policy.
    fn served<L: Lock>(self) -> Vec<usize> {
        self.run::<L>(|_| (), |_| ())
    }
}

fn served<L: Lock>(machine: Machine, comers: &'static [Comer]) -> Vec<usize> {
    Case::new(machine, comers).served::<L>()
}

/// Returns a machine of one socket, with a core for each waiter.
fn flat() -> Machine {
    Machine::two_sockets().shape(1, 16)
}

/// The first is the head before any can be sorted, and the last is never moved.
const RANKED: &[Comer] =
    &[(0, 0), (1, 5), (2, 9), (3, 5), (4, 1), (5, 9), (6, 200), (7, 5), (8, 0)];
const BY_RANK: [usize; 9] = [0, 6, 2, 5, 1, 3, 7, 4, 8];
const AS_THEY_CAME: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn the_most_urgent_is_served_first_and_equals_as_they_came() {
    assert_eq!(served::<ShflSpin<Sim, Priority>>(flat(), RANKED), BY_RANK);
    assert_eq!(served::<ShflMutex<Sim, Priority>>(flat(), RANKED), BY_RANK);
    assert_eq!(served::<ShflSpin<Sim, None>>(flat(), RANKED), AS_THEY_CAME);
    assert_eq!(served::<ShflMutex<Sim, None>>(flat(), RANKED), AS_THEY_CAME);
}

/// A thread that sets no rank is as urgent as its scheduling priority.
#[test]
fn a_thread_has_the_schedulers_rank_until_it_says_its_own() {
    let ranks = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&ranks);
    let thread = move || {
        for own in [Option::None, Some(7), Option::None] {
            set_priority::<Sim>(own);
            let node = antiphon_platform::Waiter::<Sim>::NEW;
            Priority.on_wait(Waiting::of(&node));
            seen.borrow_mut().push(Waiting::of(&node).rank());
        }
    };
    let done = Simulation::new(flat(), 1).thread(thread).run(0);
    assert!(done.is_ok(), "{:?}", done.err());
    let usual = u16::from(antiphon_platform::RANK);
    assert_eq!(ranks.take(), [usual, 7, usual]);
}

/// Returns how often others got the lock while one waiter of the lowest rank was in the queue,
/// behind some waiters and before an endless stream of more urgent ones.
fn overtaken<L: Lock>() -> u32 {
    const URGENT: u32 = 12;
    const AHEAD: u64 = 3;
    struct Shared<L> {
        lock: OwnLine<L>,
        waits: Cell<bool>,
        served: Cell<bool>,
        passed: Cell<u32>,
    }
    let shared = Rc::new(Shared {
        lock: OwnLine(L::NEW),
        waits: Cell::new(false),
        served: Cell::new(false),
        passed: Cell::new(0),
    });
    let patient = Rc::clone(&shared);
    let mut simulation = Simulation::new(flat(), 3).thread_on(0, move || {
        set_priority::<Sim>(Some(1));
        work(AHEAD * STEP_NS);
        patient.waits.set(true);
        patient.lock.lock();
        patient.served.set(true);
        unlock(&patient.lock.0);
    });
    for nth in 0..URGENT {
        let urgent = Rc::clone(&shared);
        simulation = simulation.thread_on(1 + nth, move || {
            set_priority::<Sim>(Some(9));
            work(u64::from(nth) * STEP_NS / 4);
            // Longer than any thread should wait, so that starvation is noticed.
            for _ in 0..60 {
                urgent.lock.lock();
                work(STEP_NS);
                let passed = urgent.waits.get() && !urgent.served.get();
                urgent.passed.set(urgent.passed.get() + u32::from(passed));
                unlock(&urgent.lock.0);
            }
        });
    }
    let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"));
    shared.passed.get()
}

/// INV-7, as a number: with the spinlock, which no thread steals while one waits, a waiter waits
/// for those before it and for as many more as the policy may let pass.
#[test]
fn whoever_is_less_urgent_is_overtaken_so_often_and_then_served() {
    let bound = u32::from(Priority.bypass());
    let in_turn = overtaken::<ShflSpin<Sim, None>>();
    let least = overtaken::<ShflSpin<Sim, Priority>>();
    assert!(in_turn <= 13, "{in_turn}");
    assert!(least >= bound, "it is the least urgent: {least}");
    assert!(least <= in_turn + bound, "{least}, in turn {in_turn}");
}

/// Returns a machine with four caches of two cores on each of four sockets, two to a board.
fn boards() -> Machine {
    Machine::two_sockets().nested(&[("cache", 2), ("socket", 4), ("board", 2), ("machine", 2)])
}

/// Comers by their places: of the first's board but not its socket, of its cache, of the other
/// board, of its socket, …
const SPREAD: &[Comer] =
    &[(0, 0), (8, 0), (1, 0), (16, 0), (2, 0), (9, 0), (24, 0), (3, 0), (17, 0), (30, 0)];

/// From the second, when the first found no waiter to sort: the one that shares its cache, those on
/// the other socket of its board, and of the other board one of each socket, the last of all last.
const NEAREST: [usize; 10] = [0, 1, 5, 2, 4, 7, 3, 8, 6, 9];

/// The standard form, except that waiters sleep soon, and no thread wakes them ahead of their turn.
struct Drowsy;

impl Form for Drowsy {
    const QUEUE_SPIN: Budget = Budget::ns(2_000);
    const LINGER: Budget = Budget::NONE;
}

#[test]
fn the_nearest_is_served_first() {
    let case = || Case::new(boards(), SPREAD).long();
    assert_eq!(case().served::<ShflSpin<Sim, None>>(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(case().served::<ShflSpin<Sim, Distance>>(), NEAREST);
    assert_eq!(case().served::<ShflMutex<Sim, Distance>>(), NEAREST);
    // A sleeping waiter sorts no other, but the first does so before it goes on.
    let from_first = [0, 2, 4, 7, 1, 5, 3, 8, 6, 9];
    assert_eq!(case().served::<ShflMutex<Sim, Distance, Drowsy>>(), from_first);
    assert_eq!(case().served::<ShflMutex<Sim, None>>(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn where_there_is_one_cache_nobody_is_sorted_by_distance() {
    assert_eq!(served::<ShflSpin<Sim, Distance>>(flat(), RANKED), AS_THEY_CAME);
}

/// Two ranks on two sockets in turn.
const MIXED: &[Comer] =
    &[(0, 9), (8, 1), (1, 9), (9, 9), (2, 1), (10, 1), (3, 9), (11, 9), (4, 1), (12, 0)];

#[test]
fn one_policy_decides_where_the_other_is_silent() {
    type Both = Then<Priority, Distance>;
    let case = || Case::new(Machine::two_sockets().shape(2, 8), MIXED);
    // The urgent by sockets, and then the others, from the socket on which the urgent have ended.
    let expected = [0, 2, 6, 3, 7, 1, 5, 4, 8, 9];
    assert_eq!(case().served::<ShflSpin<Sim, Both>>(), expected);
    assert_eq!(case().served::<ShflMutex<Sim, Both>>(), expected);
}

/// A policy that is set before any thread comes works like one in the lock's type.
#[test]
fn a_policy_that_is_chosen_does_what_the_type_does() {
    fn chosen(case: Case, choose: fn(&ShflMutex<Sim>)) -> Vec<usize> {
        case.run(choose, |_| ())
    }
    let choose = |name| Chosen::named(name).expect("a policy's name");
    let (flat, spread) = (Case::new(flat(), RANKED), Case::new(boards(), SPREAD).long());
    let in_turn = chosen(flat.clone(), |lock| lock.set_policy(Chosen::NONE));
    assert_eq!(in_turn, AS_THEY_CAME);
    let ranked = chosen(flat, |lock| lock.set_policy(Chosen::named("priority").unwrap()));
    assert_eq!(ranked, BY_RANK);
    let near = chosen(spread.clone(), |lock| lock.set_policy(Chosen::DISTANCE));
    assert_eq!(near, spread.clone().served::<ShflMutex<Sim, Distance>>());
    let sockets = chosen(spread.clone(), |_| ());
    assert_eq!(sockets, spread.clone().served::<ShflMutex<Sim, Numa>>());
    assert_eq!(choose("numa+priority"), choose("priority"));
}

/// The policy is changed while the lock is held and its waiters sleep: waiters already in the queue
/// are put in the new order.
#[test]
fn a_change_reaches_those_who_wait() {
    let spread = Case::new(boards(), SPREAD).long();
    let choose = |lock: &ShflMutex<Sim>| lock.set_policy(Chosen::DISTANCE);
    assert_eq!(spread.run(|_| (), choose), NEAREST);
    let ranked = Case::new(flat(), RANKED);
    let choose = |lock: &ShflMutex<Sim>| lock.set_policy(Chosen::NONE.with_priority());
    assert_eq!(ranked.run(|_| (), choose), [0, 1, 6, 2, 5, 3, 7, 4, 8]);
}

/// Returns how long an urgent thread waits for a lock that a patient thread holds, while a third,
/// of a rank in between, wants the core of the owner for ten milliseconds.
fn inverted<L: Lock>() -> u64 {
    const HOG_NS: u64 = 10_000_000;
    let shared = Rc::new((OwnLine(L::NEW), Cell::new(0)));
    let result = Rc::clone(&shared);
    let (owner, urgent) = (Rc::clone(&shared), shared);
    let simulation = Simulation::new(flat().without_jitter(), 1)
        .thread_on(0, move || {
            owner.0.lock();
            // From now on the third thread has the core, unless priority is lent.
            set_rank(1);
            work(50 * STEP_NS);
            unlock(&owner.0.0);
            assert_eq!(effective_rank(), 1, "what was lent is given back");
        })
        .thread_on(0, || {
            work(HOG_NS);
        })
        .thread_on(1, move || {
            set_rank(100);
            work(20 * STEP_NS);
            let began = now();
            urgent.0.lock();
            urgent.1.set(now() - began);
            unlock(&urgent.0.0);
        });
    let _ = simulation.run(0).unwrap_or_else(|stuck| panic!("{stuck}"));
    result.1.get()
}

/// Priority inversion: a waiter of the owner waits also for any thread that keeps the owner from
/// its core, unless it lends the owner its rank.
#[test]
fn an_owner_that_was_lent_a_rank_is_not_kept_from_its_core() {
    const HOG_NS: u64 = 10_000_000;
    for wait in [
        inverted::<ShflOwned<Sim, None>>(),
        inverted::<ShflOwned<Sim, Priority>>(),
        // Without an owner word, the lock knows no thread to lend to.
        inverted::<ShflMutex<Sim, Boost>>(),
    ] {
        assert!(wait > HOG_NS / 2, "{wait} ns");
    }
    for wait in
        [inverted::<ShflOwned<Sim, Boost>>(), inverted::<ShflOwned<Sim, Then<Priority, Boost>>>()]
    {
        assert!(wait < 100 * STEP_NS, "{wait} ns");
    }
}

/// Returns the share of the lock's time of a thread whose critical sections are ten times as long
/// as those of the eleven others.
fn greedy_share<L: Lock>() -> f64 {
    let shared = Rc::new((OwnLine(L::NEW), [const { Cell::new(0_u64) }; 12]));
    let result = Rc::clone(&shared);
    let thread = move |nth: usize| {
        let section_ns = if nth == 0 { 20 * STEP_NS } else { 2 * STEP_NS };
        while !finished() {
            shared.0.lock();
            work(section_ns);
            shared.1[nth].set(shared.1[nth].get() + section_ns);
            unlock(&shared.0.0);
            think(STEP_NS);
        }
    };
    let done = Simulation::new(flat(), 5).threads(12, thread).run(20_000_000);
    assert!(done.is_ok(), "{:?}", done.err());
    let all: u64 = result.1.iter().map(Cell::get).sum();
    result.1[0].get() as f64 / all as f64
}

/// Scheduler-cooperative: time is shared out, not turns.
#[test]
fn who_holds_the_lock_for_longer_waits_for_longer() {
    let (by_turns, by_time) =
        (greedy_share::<ShflOwned<Sim, None>>(), greedy_share::<ShflOwned<Sim, Scl>>());
    let unmeasured = greedy_share::<ShflMutex<Sim, Scl>>();
    assert!(by_turns > 0.35, "{by_turns}");
    assert!(unmeasured > 0.35, "without an owner nothing is measured: {unmeasured}");
    // Its fair share would be a twelfth.
    assert!(by_time < 0.15, "{by_time}");
}

/// Nine waiters sleep; from then on each is awake when its turn comes, and no hand-off waits for a
/// wake.
#[test]
fn who_is_woken_ahead_is_up_in_time() {
    fn until<L: Lock>() -> u64 {
        let (order, end_ns) = Case::new(flat(), RANKED).long().run_until::<L>(|_| (), |_| ());
        assert_eq!(order, AS_THEY_CAME);
        end_ns
    }
    let late = until::<ShflMutex<Sim, None, Drowsy>>();
    let in_time = until::<ShflMutex<Sim, WakeUp, Drowsy>>();
    let saved = Machine::two_sockets().wake_latency_ns * (RANKED.len() as u64 - 2);
    assert!(in_time + saved <= late, "{in_time}, and {late} without");
    let standard = until::<ShflMutex<Sim, None>>();
    assert!(
        standard <= in_time,
        "where there are CPUs to spare, all are up: {standard}, {in_time}"
    );
}
