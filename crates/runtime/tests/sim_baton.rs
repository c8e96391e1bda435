//! The baton on a simulated machine: how long others wait for one that has it and does not run, and
//! what members have of a CPU that others use, too.
//! All times are simulated, and each run is the same.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_platform::{Atomic, Clock, Deadline, Platform, SharedWait, ThreadId};
use antiphon_runtime::coop::{
    Accounts, Ask, Baton, Cooperate, Demotion, Doing, Group, Options, Page, Seen, WEIGHT, Weigh,
    Weighted,
};
use antiphon_sim::{Machine, Sim, Simulation, now, ran_ns, sleeps, work};

const MS: u64 = 1_000_000;
const MEMBERS: u64 = 10;
/// So many of them have nothing to do now and then; the others always have.
const IDLERS: u64 = 3;
const END_NS: u64 = 2_000 * MS;
/// What wakes and switches cost, and then some.
const COSTS_NS: u64 = 200_000;

/// Nobody keeps accounts.
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
    let word = <Sim as Platform>::U32::ZERO;
    let deadline = Some(Deadline { clock: Clock::Monotonic, ns: until_ns });
    let _ = Sim::wait_shared(&word, 0, deadline);
}

/// Numbers that look like random ones.
fn lots(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |most| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % most
    }
}

/// Who has stopped with the baton, one at a time.
#[derive(Default)]
struct Stops {
    stopped: Cell<bool>,
    /// The one that has given the baton away has nothing to do, and does not watch.
    is_alone: Cell<bool>,
    /// Since when, if nobody has come to run since.
    since_ns: Cell<Option<u64>>,
    longest_ns: Cell<u64>,
    count: Cell<u64>,
}

impl Stops {
    fn stop(&self, for_ns: u64) {
        // While all are there.
        if now() + for_ns < END_NS && !self.stopped.replace(true) {
            self.since_ns.set(Some(now()));
            sleep(now() + for_ns);
            self.stopped.set(false);
        }
    }

    /// A member has its turn.
    fn ended(&self) {
        if let Some(since_ns) = self.since_ns.take() {
            self.longest_ns.set(self.longest_ns.get().max(now() - since_ns));
            self.count.set(self.count.get() + 1);
        }
    }
}

/// Members that work in chunks, poll, and now and then sleep with the baton for long; with that
/// release, from when they poll.
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
            // It has told when its timer is due, and is late for that.
            let ask = Ask { release_ns: Some(now() + MS), importance: Some(0) };
            let mut member = member.expect("a place");
            member.poll(ask, &mut |_: Option<u64>| ());
            sleep(END_NS);
        });
    }
    let _ = simulation.run(2 * END_NS).expect("nobody waits for good");
    (stops.longest_ns.get(), stops.count.get())
}

/// BATON-4: where nobody is due, too: no longer than its slice, and the slack.
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

/// The machine knows of all.
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

/// So many members that always have work, and a timer each 16 ms, on a CPU of which four hogs that
/// know nothing of them have most. What the members have had of it, and how often they were demoted
/// for what they have not done.
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

/// BATON-5: who is due, and looks, has a CPU; it leaves none of that to one that has waited for it,
/// and is to wait again. And who was only kept from running is not demoted.
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

/// BATON-4: of two, one has lost the baton before it came to run, to the other, which stops then.
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
                // It gives the baton back long before it is late.
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
    // The slack, and what the hog goes on.
    assert!(waits_ns.iter().all(|&ns| ns <= 6 * MS), "{waits_ns:?}");
}
