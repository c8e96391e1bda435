//! Shares of the CPU, and when threads get them.

use super::cpu::{Cpu, Program, jain};
use super::lines;
use crate::coop::{Group, Options, Pick, WEIGHT};

const SECOND_NS: u64 = 1_000_000_000;
const FRAME: u64 = 16_666_667;

fn eight_players(group: impl Fn(u32) -> Group) -> Cpu {
    let mut cpu = Cpu::new(Options::default());
    for n in 0..8 {
        let frame_ns = 6_000_000 + 3_000_000 * u64::from(n);
        cpu.add(group(n), Program::Player { frame_ns, period_ns: FRAME });
    }
    for _ in 0..4 {
        cpu.add(Group::Own, Program::Hog);
    }
    cpu.run(5 * SECOND_NS);
    cpu
}

/// §5.2 and §5.3: eight players that want the CPU all the time, and four hogs.
#[test]
fn players_are_on_time_and_everybody_has_a_twelfth() {
    let cpu = eight_players(|_| Group::Own);
    // A piece of work of one player, and the timers of the seven others.
    assert!(cpu.latest_ns(0..8) <= 250_000 + 8 * 50_000, "{} ns", cpu.latest_ns(0..8));
    let index = jain(cpu.actors.iter().map(|a| a.cpu_ns as f64));
    assert!(index > 0.999, "{index}");
    assert!((cpu.share(0..8) - 8.0 / 12.0).abs() < 0.005, "{}", cpu.share(0..8));
}

/// §3.1: a group has the shares of its members, and gives them to the member with the most
/// important work.
#[test]
fn a_group_divides_its_share_by_what_its_members_say() {
    let apart = eight_players(|_| Group::Own);
    let together = eight_players(|_| Group::Number(7));
    let fair = |cpu: &Cpu| jain(cpu.actors[..8].iter().map(|a| a.frames() as f64));
    assert!(fair(&apart) < 0.9, "{}", fair(&apart));
    assert!(fair(&together) > 0.999, "{}", fair(&together));
    assert!((together.share(0..8) - 8.0 / 12.0).abs() < 0.01, "{}", together.share(0..8));
    assert!(together.latest_ns(0..8) <= 250_000 + 8 * 50_000);
}

#[test]
fn shares_go_by_weight() {
    let mut cpu = Cpu::new(Options::default());
    for weight in [WEIGHT, 3 * WEIGHT, WEIGHT / 2] {
        cpu.add_weighted(Group::Own, weight, Program::Hog);
    }
    cpu.run(10 * SECOND_NS);
    let shares: [f64; 3] = core::array::from_fn(|n| cpu.share(n..n + 1) * 4.5);
    for (share, weight) in shares.iter().zip([1.0, 3.0, 0.5]) {
        assert!((share - weight).abs() < 0.05, "{shares:?}");
    }
}

/// A slice at the least weight costs the thread more than the page can express: the thread is then
/// as far ahead as possible, and does not stay before others for good.
#[test]
fn who_weighs_nearly_nothing_is_not_before_others() {
    let least = |weight| {
        let mut cpu = Cpu::over(lines(), Options::default());
        cpu.add_weighted(Group::Own, WEIGHT, Program::Hog);
        cpu.add_weighted(Group::Own, weight, Program::Hog);
        cpu.run(60 * SECOND_NS);
        cpu.share(1..2)
    };
    for weight in [1, 2, 15] {
        let (share, fair) = (least(weight), f64::from(weight) / f64::from(WEIGHT));
        // A thread of that weight has a turn in the first and in the last of 4 s.
        assert!(share <= 2.0 * fair + 0.003, "{share} of weight {weight}");
    }
}

/// §3.2: "use it or lose it".
#[test]
fn who_slept_has_not_saved() {
    let mut cpu = Cpu::new(Options::default());
    cpu.add(Group::Own, Program::Sleeper { runs_ns: u64::MAX / 4, sleeps_ns: 0 });
    cpu.add(Group::Own, Program::Hog);
    let [sleeper, hog] = [0, 1].map(|n| cpu.actors[n].id);
    assert!(matches!(cpu.scheduler.pick(0), Pick::Run { id, .. } if id == sleeper));
    cpu.scheduler.block(sleeper, 1000);
    assert!(matches!(cpu.scheduler.pick(0), Pick::Run { id, .. } if id == hog));
    cpu.scheduler.preempt(hog, 5 * SECOND_NS);
    cpu.scheduler.wake(sleeper);
    cpu.run(2 * SECOND_NS);
    assert!((cpu.share(0..1) - 0.5).abs() < 0.02, "{}", cpu.share(0..1));
}

/// §5.7: the scheduler switches when a thread is due, or has used its slice, and no more often.
#[test]
fn switches_for_a_reason_only() {
    let cpu = eight_players(|_| Group::Own);
    // Two switches for each frame shown, and a turn for each slice.
    let frames = 5 * 8 * 60;
    let slices = 5 * 12 * 50 * 2;
    assert!(cpu.switches < 2 * frames + slices, "{}", cpu.switches);
}
