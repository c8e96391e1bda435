//! Players that share a CPU as a group.

use std::sync::Arc;

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Synthetic};
use crate::program::Program;
use crate::{Cpu, Headless, Options, Player, Report, VirtualLoop, jain, made};

/// The reports of players that share a CPU. `costs_us` are the mean costs of a frame, in
/// microseconds.
fn group(costs_us: &[u64]) -> Vec<Report> {
    let cpu = Cpu::new(1_000_000_000, 100);
    let clip = Arc::new(Clip::parse(made::layered(100, 60)).unwrap());
    let player = |(phase, &us): (usize, &u64)| {
        let clock = cpu.clone();
        let costs = Costs::by_size(&clip, us * 1000).unwrap();
        let decoder = Synthetic::new(costs, move |ns| clock.spend(ns));
        let options = Options { phase: phase as u64, ..Options::default() };
        Player::new(Arc::clone(&clip), decoder, Headless, options)
    };
    let mut players: Vec<_> = costs_us.iter().enumerate().map(player).collect();
    let mut programs: Vec<_> = players.iter_mut().map(|p| p as &mut dyn Program).collect();
    VirtualLoop::new(cpu).run(&mut programs, u64::MAX);
    players.iter().map(|player| player.report().clone()).collect()
}

#[test]
fn a_group_of_players_has_one_quality_whatever_their_clips_cost() {
    let reports = group(&[1000, 2000, 3000, 4000, 5000, 6000]);
    let rates: Vec<_> = reports.iter().map(|report| report.total().shown as f64).collect();
    let total: f64 = rates.iter().sum();
    // 21 ms of work for each 16.7 ms: not all frames are shown.
    assert!(total < 6.0 * 500.0 && total > 3.0 * 500.0, "{rates:?}");
    assert!(jain(&rates) > 0.97, "{rates:?}");
    for report in &reports {
        assert_eq!(report.layer(Layer::Intra).dropped, 0, "{report}");
    }
}

#[test]
fn where_not_even_the_essential_can_be_done_a_part_of_it_is() {
    // The essential frames alone would need 1.4 times the CPU.
    let reports = group(&[3000; 24]);
    let rates: Vec<_> = reports.iter().map(|r| r.layer(Layer::Intra).shown as f64).collect();
    let shown: f64 = rates.iter().sum::<f64>() / 2400.0;
    assert!((0.3..0.95).contains(&shown), "{shown}");
    assert!(jain(&rates) > 0.9, "{rates:?}");
}
