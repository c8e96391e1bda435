//! Demotion: which threads are believed, and for how long.

use super::cpu::{Cpu, Program};
use crate::coop::{Demotion, Group, Member, Members, Options, Pick, Scheduler, Standing, WEIGHT};

const SECOND_NS: u64 = 1_000_000_000;
const FRAME: u64 = 16_666_667;

fn players(cpu: &mut Cpu, count: u64) {
    for n in 0..count {
        let frame_ns = 6_000_000 + 3_000_000 * n;
        cpu.add(Group::Own, Program::Player { frame_ns, period_ns: FRAME });
    }
}

/// §5.5: one piece in a hundred takes 10 ms. The others are late by the slack at most.
#[test]
fn who_overruns_is_demoted_and_the_others_are_on_time() {
    let options = Options::default();
    let mut cpu = Cpu::new(options);
    players(&mut cpu, 7);
    cpu.add(Group::Own, Program::Late { each: 100, late_ns: 10_000_000, period_ns: FRAME });
    cpu.add(Group::Own, Program::Hog);
    cpu.run(5 * SECOND_NS);
    let late = cpu.actors[7].id;
    let overruns = cpu.scheduler.table().demotions(late, Demotion::Overrun);
    assert!(overruns > 0);
    let bound = options.slack_ns + 250_000 + 9 * 50_000;
    assert!(cpu.latest_ns(0..7) <= bound, "{} ns", cpu.latest_ns(0..7));
    assert!(cpu.latest_ns(7..8) > bound, "{} ns", cpu.latest_ns(7..8));
    for other in &cpu.actors[..7] {
        assert_eq!(cpu.scheduler.table().demotions(other.id, Demotion::Overrun), 0);
    }
    assert!((cpu.share(7..8) - 1.0 / 9.0).abs() < 0.01, "{}", cpu.share(7..8));
}

/// A thread that always has a timer gets its share plus the threshold, and no more.
#[test]
fn who_is_always_due_gains_the_threshold_once() {
    let options = Options::default();
    let mut cpu = Cpu::new(options);
    cpu.add(Group::Own, Program::Liar);
    for _ in 0..3 {
        cpu.add(Group::Own, Program::Hog);
    }
    players(&mut cpu, 4);
    cpu.run(5 * SECOND_NS);
    let fair_ns = cpu.now_ns / 8;
    let gained = cpu.actors[0].cpu_ns.saturating_sub(fair_ns);
    assert!(gained <= options.threshold_ns + options.period_ns, "{gained} ns");
    assert!(cpu.scheduler.table().demotions(cpu.actors[0].id, Demotion::Share) > 0);
    assert!(cpu.latest_ns(4..8) <= 250_000 + 90_000 + 8 * 50_000, "{}", cpu.latest_ns(4..8));
}

#[test]
fn who_sleeps_without_a_word_is_demoted_until_it_polls() {
    let mut cpu = Scheduler::new(Members::new(), Options::default());
    let id = cpu.join(Member::new(Group::Own, WEIGHT)).expect("a place");
    let standing = |cpu: &Scheduler| cpu.members().next().expect("a member").1.standing;
    assert_eq!(standing(&cpu), Standing::Plain);
    assert!(matches!(cpu.pick(0), Pick::Run { due: false, .. }));
    assert_eq!(cpu.poll(id, 10, Some(5000), Some(1)), Standing::Cooperative);
    assert!(matches!(cpu.pick(100), Pick::Run { .. }));
    cpu.block(id, 10);
    assert_eq!(standing(&cpu), Standing::Demoted(Demotion::Slept));
    assert_eq!(cpu.table().demotions(id, Demotion::Slept), 1);
    // The release of the thread is cleared by that.
    assert_eq!(cpu.pick(6000), Pick::Idle { until_ns: None });
    cpu.wake(id);
    assert!(matches!(cpu.pick(6000), Pick::Run { due: false, .. }));
    cpu.poll(id, 10, Some(7000), None);
    assert_eq!(cpu.pick(6500), Pick::Idle { until_ns: Some(7000) });
    assert!(matches!(cpu.pick(7000), Pick::Run { due: true, .. }));
}

/// A thread that is alone keeps no other waiting.
#[test]
fn who_is_alone_does_not_overrun() {
    let mut cpu = Cpu::new(Options::default());
    cpu.add(Group::Own, Program::Late { each: 3, late_ns: 40_000_000, period_ns: FRAME });
    cpu.run(SECOND_NS);
    assert_eq!(cpu.scheduler.table().demotions(cpu.actors[0].id, Demotion::Overrun), 0);
    assert_eq!(cpu.standing(0), Standing::Cooperative);
}

/// A thread that was demoted for its share sleeps until its release, and is on time again when it
/// is no longer ahead.
#[test]
fn a_share_that_is_made_up_for_is_forgiven() {
    let options = Options::default();
    let mut cpu = Scheduler::new(Members::new(), options);
    let greedy = cpu.join(Member::new(Group::Own, WEIGHT)).expect("a place");
    let hog = cpu.join(Member::new(Group::Own, WEIGHT)).expect("a place");
    assert!(matches!(cpu.pick(0), Pick::Run { id, .. } if id == greedy));
    let standing = cpu.poll(greedy, 3 * options.threshold_ns, Some(100), None);
    assert_eq!(standing, Standing::Demoted(Demotion::Share));
    // The thread's release time has passed, but another thread runs.
    assert!(matches!(cpu.pick(100), Pick::Run { id, .. } if id == hog));
    cpu.preempt(hog, 2 * options.threshold_ns);
    assert!(matches!(cpu.pick(200), Pick::Run { id, due: true, .. } if id == greedy));
    assert_eq!(cpu.table().demotions(greedy, Demotion::Share), 1);
}
