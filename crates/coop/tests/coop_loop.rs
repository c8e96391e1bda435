//! Tests of event loops in tiers that change while they run, of reports on loops whose work never
//! ends, and of loops that lose their place in a tier, for each reason. If real-time priorities are
//! refused, a test prints that and is skipped.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon_coop::event_loop::{Context, End, Event, Loop, Step, now_ns};
use antiphon_coop::{
    Alone, Ask, BoostOptions, Booster, Cooperate as _, Demotion, Domain, DomainOptions, Group,
    Membership, Options, WEIGHT,
};
use antiphon_linux::schedule::{self, Policy};
use antiphon_linux::{allowed, pin};
use antiphon_platform::ThreadId;

const MS: u64 = 1_000_000;

fn policy() -> Policy {
    schedule::class(ThreadId(0)).expect("the kernel says so").policy
}

/// Runs while the condition holds, for at most 20 s.
fn run_while(mut holds: impl FnMut() -> bool) {
    let until_ns = now_ns() + 20_000 * MS;
    while holds() {
        assert!(now_ns() < until_ns, "nothing happens");
        std::hint::spin_loop();
    }
}

/// Runs until the calling thread has that policy.
fn run_until(wanted: Policy) {
    run_while(|| policy() != wanted);
}

fn spin(ns: u64) {
    let until_ns = now_ns() + ns;
    run_while(|| now_ns() < until_ns);
}

/// Sets the flag when it is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Opens a domain that no other test uses.
fn domain(name: &str) -> Domain {
    let name = format!("{name}-{}", std::process::id());
    Domain::open(&name, DomainOptions::on(allowed()[0])).expect("a domain")
}

fn join(domain: &Domain) -> Membership {
    domain.join(Group::Own, WEIGHT).expect("a place")
}

fn wait(until_ns: Option<u64>) {
    let left_ns = until_ns.map_or(MS, |at| at.saturating_sub(now_ns()).min(MS));
    thread::sleep(Duration::from_nanos(left_ns));
}

#[test]
fn a_loop_that_always_has_work_is_raised_when_its_timer_is_overdue() {
    // A slack that does not run out in this test.
    let options = Options { slack_ns: 10_000 * MS, ..Options::default() };
    let booster = Booster::start(BoostOptions { options, ..BoostOptions::default() });
    let booster = match booster {
        Ok(booster) => booster,
        Err(refused) => return println!("skipped: {refused}"),
    };
    let mut events = Loop::new().expect("files");
    events.cooperate_by(Box::new(booster.boost(Alone)));
    let timers = Rc::new(Cell::new(0));
    let called = timers.clone();
    events.submit(Event::timer_in_steps(now_ns() + MS, move |context| {
        called.set(called.get() + 1);
        // The loop is overdue, and the helper knows.
        run_until(Policy::Fifo);
        if called.get() == 5 {
            context.stop();
        }
        Step::At(now_ns() + 5 * MS)
    }));
    // Its work ignores the budget of a step.
    events.submit(Event::best_effort_in_steps(0, move |_| {
        run_until(Policy::Fifo);
        Step::More(0)
    }));
    assert_eq!(events.run(), End::Stopped);
    assert_eq!(timers.get(), 5);
    assert!(booster.stats().counts.raises >= 1, "{:?}", booster.stats().counts);
    drop(events);
    assert_eq!(policy(), Policy::Other);
}

#[test]
fn a_loop_changes_its_tier_while_it_runs() {
    let booster = Booster::start(BoostOptions::default());
    if let Err(refused) = &booster {
        println!("skipped: T1: {refused}");
    }
    let booster = booster.ok();
    let shares = domain("changes");
    let mut events = Loop::new().expect("files");
    let (mut step, members) = (0, shares.clone());
    events.submit(Event::timer_in_steps(now_ns(), move |context: &mut Context<'_>| {
        // It is not raised by its former tier.
        let is_member = !members.members().is_empty();
        match (step % 5, &booster) {
            // None, T3, none, T1, T1 over T3: the request of the last step is in force.
            (0, _) => context.cooperate_by(Box::new(Alone)),
            (1, _) => {
                assert!(!is_member);
                run_until(Policy::Other);
                context.cooperate_by(Box::new(join(&shares)));
            }
            (2, _) => {
                assert!(is_member);
                context.cooperate_by(Box::new(Alone));
            }
            (3, Some(booster)) => {
                assert!(!is_member);
                context.cooperate_by(Box::new(booster.boost(Alone)));
            }
            (4, Some(booster)) => {
                // The release of this call is overdue, and the helper knows.
                run_until(Policy::Fifo);
                context.cooperate_by(Box::new(booster.boost(join(&shares))));
            }
            _ => {}
        }
        step += 1;
        if step == 50 {
            context.stop();
        }
        Step::At(now_ns() + MS / 2)
    }));
    events.submit(Event::best_effort_in_steps(0, |context| {
        while !context.is_over() {}
        Step::More(0)
    }));
    assert_eq!(events.run(), End::Stopped);
    drop(events);
    assert_eq!(policy(), Policy::Other);
    assert!(members_of("changes").is_empty());
}

fn members_of(name: &str) -> Vec<antiphon_coop::MemberStatus> {
    domain(name).members()
}

/// Runs a member that does `act`, beside another that always has work and a third with timers,
/// until it is demoted for the reason `why`.
fn is_demoted(name: &str, why: Demotion, act: impl Fn(&mut Membership) + Sync) {
    let (shares, over) = (domain(name), AtomicBool::new(false));
    let count =
        |member: &Membership| member.status().map_or(0, |status| status.demotions[why as usize]);
    thread::scope(|scope| {
        let (shares, over) = (&shares, &over);
        scope.spawn(move || {
            let mut hog = join(shares);
            while !over.load(Relaxed) {
                spin(200_000);
                hog.poll(Ask { release_ns: None, importance: Some(0) }, &mut wait);
            }
        });
        scope.spawn(move || {
            let mut timers = join(shares);
            while !over.load(Relaxed) {
                let release_ns = Some(now_ns() + 2 * MS);
                timers.poll(Ask { release_ns, importance: None }, &mut wait);
            }
        });
        let who = scope.spawn(|| {
            let _over = Over(over);
            let mut member = join(shares);
            run_while(|| {
                act(&mut member);
                count(&member) == 0
            });
        });
        who.join().expect("it is demoted");
    });
}

#[test]
fn who_overruns_the_slack_is_demoted_for_that() {
    is_demoted("overrun", Demotion::Overrun, |member| {
        member.poll(Ask { release_ns: None, importance: Some(0) }, &mut wait);
        spin(30 * MS);
    });
}

#[test]
fn who_sleeps_in_its_turn_is_demoted_for_that() {
    is_demoted("slept", Demotion::Slept, |member| {
        member.poll(Ask { release_ns: None, importance: Some(0) }, &mut wait);
        thread::sleep(Duration::from_millis(30));
    });
}

#[test]
fn whose_timers_want_more_than_its_share_is_demoted_for_that() {
    is_demoted("share", Demotion::Share, |member| {
        spin(MS / 4);
        member.poll(Ask { release_ns: Some(now_ns()), importance: Some(0) }, &mut wait);
    });
}

#[test]
fn a_boosted_loop_whose_timers_want_more_than_its_share_is_demoted_for_that() {
    let options = Options { threshold_ns: 100_000, ..Options::default() };
    let booster = Booster::start(BoostOptions { options, ..BoostOptions::default() });
    let booster = match booster {
        Ok(booster) => booster,
        Err(refused) => return println!("skipped: {refused}"),
    };
    let (cpu, over) = (allowed()[0], AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpu).expect("it may run there");
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        let looper = scope.spawn(|| {
            let _over = Over(&over);
            pin(cpu).expect("as above");
            let mut tier = booster.boost(Alone);
            run_while(|| {
                // Always due.
                tier.poll(Ask { release_ns: Some(now_ns()), importance: Some(0) }, &mut |_| {});
                spin(MS / 4);
                tier.counts().demotions[Demotion::Share as usize] == 0
            });
        });
        looper.join().expect("it is demoted");
    });
    assert!(booster.stats().counts.demotions[Demotion::Share as usize] > 0);
}
