//! Tests of the baton on a simulated machine: how long others wait for a holder that does not run,
//! and the share of members in a CPU that other threads also use. All times are simulated, and each
//! run is the same.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use antiphon_platform::{Atomic, Atomics, Clock, Deadline, Platform, SharedWait, ThreadId};
use antiphon_runtime::coop::{
    Accounts, Ask, Baton, Cooperate, Demotion, Doing, Group, Options, Page, Seen, WEIGHT, Weigh,
    Weighted,
};
use antiphon_sim::{Machine, Schedule, Sim, Simulation, Stop, Turn, now, ran_ns, sleeps, work};

const MS: u64 = 1_000_000;
const MEMBERS: u64 = 10;
/// Number of members that sometimes have nothing to do; the others always have work.
const IDLERS: u64 = 3;
const END_NS: u64 = 2_000 * MS;
/// An upper bound on the cost of wakes and switches.
const COSTS_NS: u64 = 200_000;

/// A system that keeps no accounts.
struct Nobody;

impl Accounts for Nobody {
    fn own_ns(&mut self) -> u64 {
        0
    }

    fn of(&mut self, _: ThreadId) -> Seen {
        Seen { ran_ns: None, doing: Doing::Unknown }
    }
}

impl Weigh for Nobody {
    fn step(&mut self, _: i32) {}
}

fn sleep(until_ns: u64) {
    if until_ns <= now() {
        return;
    }
    let word = <Sim as Atomics>::U32::ZERO;
    let deadline = Some(Deadline { clock: Clock::Monotonic, ns: until_ns });
    let _ = Sim::wait_shared(&word, 0, deadline);
}

/// Returns a generator of pseudorandom numbers.
fn lots(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |most| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    }
}

/// The times at which members have stopped with the baton, one at a time.
#[derive(Default)]
struct Stops {
    stopped: Cell<bool>,
    /// Whether the member that has given the baton away is idle, and does not watch.
    is_alone: Cell<bool>,
    /// Time at which the holder stopped, if no member has run after that.
    since_ns: Cell<Option<u64>>,
    longest_ns: Cell<u64>,
    count: Cell<u64>,
}

impl Stops {
    fn stop(&self, for_ns: u64) {
        // While all members are there.
        if now() + for_ns < END_NS && !self.stopped.replace(true) {
            self.since_ns.set(Some(now()));
            sleep(now() + for_ns);
            self.stopped.set(false);
        }
    }

    /// Records that a member has its turn.
    fn ended(&self) {
        if let Some(since_ns) = self.since_ns.take() {
            self.longest_ns.set(self.longest_ns.get().max(now() - since_ns));
            self.count.set(self.count.get() + 1);
        }
    }
}

/// Runs members that work in chunks, poll with that release (relative to the poll), and sometimes
/// sleep for long with the baton.
fn longest_wait(release_ns: Option<u64>, beside: bool, seed: u64) -> (u64, u64) {
    let page = Rc::new(Page::<Sim>::NEW);
    page.header.set_options(&Options::default());
    let stops = Rc::new(Stops::default());
    let mut simulation = Simulation::new(Machine::eight_sockets(), seed);
    for number in 0..MEMBERS {
        let (page, stops) = (page.clone(), stops.clone());
        simulation = simulation.thread(move || {
            let mut draw = lots(seed * MEMBERS + number);
            let mut member = Baton::join(page, Nobody, Group::Own, WEIGHT).expect("a place");
            while now() < END_NS {
                let is_idle = number < IDLERS && draw(3) == 0;
                let back_ns = now() + 10 * MS + draw(20 * MS);
                stops.is_alone.set(is_idle);
                let ask = Ask {
                    release_ns: release_ns.map(|ns| now() + ns),
                    importance: (!is_idle).then_some(0),
                };
                member.poll(ask, &mut |until_ns: Option<u64>| {
                    sleep(until_ns.map_or(back_ns, |at| at.min(back_ns)));
                });
                stops.ended();
                work(50_000 + draw(500_000));
                let likely = if stops.is_alone.get() { 2 } else { 16 };
                if draw(likely) == 0 {
                    stops.stop(30 * MS);
                }
            }
        });
    }
    if beside {
        simulation = simulation.thread(move || {
            let group = Group::Own;
            let member = Weighted::join(page, Nobody, Nobody, group, WEIGHT);
            // The member has announced its release, and is late for it.
            let ask = Ask { release_ns: Some(now() + MS), importance: Some(0) };
            let mut member = member.expect("a place");
            member.poll(ask, &mut |_: Option<u64>| ());
            sleep(END_NS);
        });
    }
    let _ = simulation.run(2 * END_NS).expect("nobody waits for good");
    (stops.longest_ns.get(), stops.count.get())
}

/// BATON-4, also if no member is due: others wait no longer than its slice and the slack.
#[test]
fn one_that_stops_keeps_nobody_waiting_for_longer_than_the_slack() {
    let options = Options::default();
    let slice_ns = options.period_ns / (MEMBERS - IDLERS - 1);
    for release_ns in [None, Some(1_000 * MS), Some(16 * MS)] {
        for (seed, beside) in (1..=4).flat_map(|seed| [(seed, false), (seed, true)]) {
            let (longest_ns, count) = longest_wait(release_ns, beside, seed);
            println!("{release_ns:?} {beside}: {longest_ns} ns, of {count}");
            assert!(count > 10, "{count}");
            assert!(longest_ns <= slice_ns + options.slack_ns + COSTS_NS, "{longest_ns} ns");
        }
    }
}

/// A system that keeps accounts of all threads.
struct System;

impl Accounts for System {
    fn own_ns(&mut self) -> u64 {
        ran_ns(Sim::thread()).expect("it runs")
    }

    fn of(&mut self, thread: ThreadId) -> Seen {
        let doing = if sleeps(thread) { Doing::Sleeps } else { Doing::Runs };
        Seen { ran_ns: ran_ns(thread), doing }
    }
}

/// Runs `members` members that always have work, and a timer every 16 ms, on a CPU that is mostly
/// used by four hogs that are not members. Returns the share of the members, and how often they
/// were demoted without a reason.
fn beside_hogs(members: u64, seed: u64) -> (u64, u32) {
    let page = Rc::new(Page::<Sim>::NEW);
    page.header.set_options(&Options::default());
    let (had_ns, demoted) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut simulation = Simulation::new(Machine::two_sockets(), seed);
    for number in 0..members {
        let (page, had_ns, demoted) = (page.clone(), had_ns.clone(), demoted.clone());
        simulation = simulation.thread_on(0, move || {
            let mut draw = lots(seed * members + number);
            let mut member = Baton::join(page, System, Group::Own, WEIGHT).expect("a place");
            let mut release_ns = now() + 16 * MS;
            while now() < END_NS {
                while release_ns <= now() {
                    work(20_000);
                    release_ns += 16 * MS;
                }
                work(50_000 + draw(300_000));
                let ask = Ask { release_ns: Some(release_ns), importance: Some(0) };
                member.poll(ask, &mut |_: Option<u64>| ());
            }
            had_ns.set(had_ns.get() + ran_ns(Sim::thread()).expect("it runs"));
            let counts = |why| member.page().demotions(member.place(), why);
            demoted.set(demoted.get() + counts(Demotion::Overrun) + counts(Demotion::Slept));
        });
    }
    for _ in 0..4 {
        simulation = simulation.thread_on(0, || {
            while now() < END_NS {
                work(MS);
            }
        });
    }
    let _ = simulation.run(2 * END_NS).expect("nobody waits for good");
    (had_ns.get(), demoted.get())
}

/// BATON-5: a member that is due, and checks, gets the CPU; it does not leave it to a holder that
/// has waited for it and must wait again. A holder that was only kept from running is not demoted.
#[test]
fn members_that_are_kept_from_running_get_on_beside_hogs() {
    for seed in 1..=4 {
        for members in [8, 12] {
            let (had_ns, demoted) = beside_hogs(members, seed);
            println!("{members} members: {had_ns} ns, demoted {demoted} times");
            assert!(had_ns >= END_NS / 13, "{members} members have had {had_ns} ns");
            assert_eq!(demoted, 0);
        }
    }
}

/// BATON-4: one of two members has lost the baton, before it ran, to the other, which then stops.
#[test]
fn who_has_lost_the_baton_before_it_ran_watches_the_next() {
    let page = Rc::new(Page::<Sim>::NEW);
    page.header.set_options(&Options::default());
    let (ran, stopped_ns) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
    let (runs, stops_ns, late) = (ran.clone(), stopped_ns.clone(), page.clone());
    let waits_ns = Rc::new(Cell::new(Vec::new()));
    let waited_ns = waits_ns.clone();
    let simulation = Simulation::new(Machine::two_sockets(), 1)
        .thread_on(0, move || {
            let mut member = Baton::join(late, System, Group::Own, WEIGHT).expect("a place");
            while now() < END_NS {
                let ask = Ask { release_ns: None, importance: Some(0) };
                member.poll(ask, &mut |_: Option<u64>| ());
                runs.set(runs.get() + 1);
                if let Some(since_ns) = stops_ns.take() {
                    let mut all = waits_ns.take();
                    all.push(now() - since_ns);
                    waits_ns.set(all);
                }
                work(200_000);
            }
        })
        .thread_on(0, || {
            while now() < END_NS {
                work(MS);
            }
        })
        .thread_on(1, move || {
            sleep(5 * MS);
            let mut member = Baton::join(page, System, Group::Own, WEIGHT).expect("a place");
            while now() < END_NS {
                // The member gives the baton back long before it is late.
                let ask = Ask { release_ns: None, importance: Some(0) };
                member.poll(ask, &mut |_: Option<u64>| ());
                work(200_000);
                let (turns, before) = (member.page().turns(), ran.get());
                let ask = Ask { release_ns: Some(now() + MS / 2), importance: None };
                member.poll(ask, &mut |until_ns: Option<u64>| sleep(until_ns.expect("told")));
                if member.page().turns() >= turns + 2 && ran.get() == before {
                    stopped_ns.set(Some(now()));
                    sleep(now() + 100 * MS);
                }
                work(MS);
            }
        });
    let _ = simulation.run(2 * END_NS).expect("nobody waits for good");
    let waits_ns = waited_ns.take();
    println!("{waits_ns:?}");
    assert!(waits_ns.len() > 3, "{waits_ns:?}");
    // The slack, and the time that the hog goes on.
    assert!(waits_ns.iter().all(|&ns| ns <= 6 * MS), "{waits_ns:?}");
}

/// The way in which a holder of the baton stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    Dead,
    /// The holder is stopped, or asleep elsewhere.
    Asleep,
    Overruns,
}

/// Time for which it is stopped, unless for ever.
const GONE_NS: u64 = 100 * MS;

/// A core whose one thread can be stopped at any point.
struct Stoppable {
    until_ns: Rc<Cell<u64>>,
    thread: Option<usize>,
}

impl Schedule for Stoppable {
    fn arrives(&mut self, thread: usize, _: u64) {
        self.thread = Some(thread);
    }

    fn stops(&mut self, _: usize, why: Stop, _: u64, _: u64) {
        if why != Stop::Over {
            self.thread = None;
        }
    }

    fn picks(&mut self, now_ns: u64) -> Turn {
        let until_ns = self.until_ns.get();
        if now_ns < until_ns {
            Turn { thread: None, until_ns: Some(until_ns) }
        } else {
            Turn { thread: self.thread, until_ns: None }
        }
    }
}

/// The system, which reports a stopped thread as not runnable.
struct Stopping {
    second: Rc<Cell<Option<ThreadId>>>,
    until_ns: Rc<Cell<u64>>,
}

impl Accounts for Stopping {
    fn own_ns(&mut self) -> u64 {
        System.own_ns()
    }

    fn of(&mut self, thread: ThreadId) -> Seen {
        let seen = System.of(thread);
        let is_stopped = self.second.get() == Some(thread) && now() < self.until_ns.get();
        if is_stopped { Seen { doing: Doing::Sleeps, ..seen } } else { seen }
    }
}

/// The state that three members share, of which the first stops with the baton.
#[derive(Clone)]
struct Trio {
    page: Rc<Page<Sim>>,
    /// Time at which it stopped, if no other member has had a turn after that.
    since_ns: Rc<Cell<Option<u64>>>,
    second: Rc<Cell<Option<ThreadId>>>,
    /// Time until which the second member is stopped.
    stopped_ns: Rc<Cell<u64>>,
    longest_ns: Rc<Cell<u64>>,
    count: Rc<Cell<u64>>,
}

impl Trio {
    /// A member that always has work. Each time that it polls, its timer is `timer_ns` later, if it
    /// has one. `before` is called before its work, with the timer.
    fn be(&self, timer_ns: Option<u64>, mut before: impl FnMut(Option<u64>) -> bool) {
        let accounts = Stopping { second: self.second.clone(), until_ns: self.stopped_ns.clone() };
        let member = Baton::join(self.page.clone(), accounts, Group::Own, WEIGHT);
        // A member that is killed does not leave.
        let mut member = ManuallyDrop::new(member.expect("a place"));
        while now() < END_NS {
            let release_ns = timer_ns.map(|ns| now() + ns);
            member.poll(Ask { release_ns, importance: Some(0) }, &mut |_: Option<u64>| ());
            if !before(release_ns) {
                return;
            }
            work(300_000);
        }
    }

    /// Records, when a member runs, how long that took after the first stopped, or after its timer
    /// was due.
    fn comes(&self, release_ns: Option<u64>) -> bool {
        if let Some(since_ns) = self.since_ns.take() {
            let waited_ns = now().saturating_sub(since_ns.max(release_ns.unwrap_or(0)));
            self.longest_ns.set(self.longest_ns.get().max(waited_ns));
            self.count.set(self.count.get() + 1);
        }
        true
    }
}

/// Returns the longest wait of a member for a member that has stopped with the baton, and the
/// number of waits; optionally another member is also stopped at that time.
fn longest_of_three(gone: Gone, is_due: bool, other_too: bool, seed: u64) -> (u64, u64) {
    let (page, stopped_ns) = (Rc::new(Page::<Sim>::NEW), Rc::default());
    page.header.set_options(&Options::default());
    let all = Trio {
        page,
        since_ns: Rc::default(),
        second: Rc::default(),
        stopped_ns: Rc::clone(&stopped_ns),
        longest_ns: Rc::default(),
        count: Rc::default(),
    };
    let (first, second, third) = (all.clone(), all.clone(), all.clone());
    let timer_ns = is_due.then_some(MS);
    let simulation = Simulation::new(Machine::eight_sockets(), seed)
        .schedule_on(1, Stoppable { until_ns: stopped_ns, thread: None })
        .thread_on(0, move || {
            let mut draw = lots(seed);
            // Only when the other members are there.
            let goes = |_| {
                if now() < 50 * MS || draw(12) > 0 || now() + GONE_NS > END_NS {
                    return true;
                }
                first.since_ns.set(Some(now()));
                if other_too {
                    first.stopped_ns.set(now() + GONE_NS);
                }
                match gone {
                    Gone::Dead => return false,
                    Gone::Asleep => sleep(now() + GONE_NS),
                    Gone::Overruns => work(GONE_NS),
                }
                first.since_ns.set(None);
                true
            };
            first.be(None, goes);
        })
        .thread_on(1, move || {
            let come = second.clone();
            come.second.set(Some(Sim::thread()));
            second.be(None, move |release_ns| other_too || come.comes(release_ns));
        })
        .thread_on(2, move || {
            let come = third.clone();
            third.be(timer_ns, move |release_ns| come.comes(release_ns));
        });
    let _ = simulation.run(2 * END_NS).expect("nobody waits for good");
    (all.longest_ns.get(), all.count.get())
}

/// BATON-4, as in `docs/coop-line.md`: however the holder of the baton stops, and whether or not
/// the watcher is also stopped.
#[test]
fn nobody_waits_longer_than_the_table_says() {
    let Options { period_ns, slack_ns, .. } = Options::default();
    let slice_ns = period_ns / 3;
    let watcher_too_ns = 2 * (period_ns + slack_ns);
    for gone in [Gone::Dead, Gone::Asleep, Gone::Overruns] {
        for (is_due, other_too, most_ns) in [
            (true, false, slack_ns),
            (true, true, slack_ns),
            (false, false, slice_ns + slack_ns),
            (false, true, watcher_too_ns),
        ] {
            for seed in 1..=4 {
                let (longest_ns, count) = longest_of_three(gone, is_due, other_too, seed);
                let case = format!("{gone:?}, due {is_due}, other too {other_too}, seed {seed}");
                println!("{case}: {longest_ns} ns, of {count}");
                assert!(count > 0 && longest_ns <= most_ns + COSTS_NS, "{case}: {longest_ns} ns");
            }
        }
    }
}
