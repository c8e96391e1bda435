//! A player that does not adapt.

use std::sync::Arc;

use crate::decode::{Costs, Synthetic};
use crate::{Clip, Cpu, Headless, Options, Report, Steady, VirtualLoop, made};

/// The report of two passes over 60 frames that cost 12 ms each of 16.7 ms, with `percent` of the
/// CPU.
fn played(stream: Vec<u8>, percent: u64) -> Report {
    let clip = Arc::new(Clip::parse(stream).unwrap());
    let cpu = Cpu::new(1_000_000_000, percent);
    let clock = cpu.clone();
    let costs = Costs::by_size(&clip, 12_000_000).unwrap();
    let decoder = Synthetic::new(costs, move |ns| clock.spend(ns));
    let options = Options { passes: Some(2), has_counter: true, ..Options::default() };
    let mut player = Steady::new(clip, decoder, Headless, options);
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    player.report().clone()
}

#[test]
fn each_frame_is_shown_on_time_where_there_is_enough() {
    for stream in [made::layered(12, 60), made::chained(15, 60)] {
        let report = played(stream, 100);
        assert_eq!(report.total().shown, report.read, "{report}");
        assert!(report.read >= 120 && report.total().dropped == 0, "{report}");
        // A timer waits for at most one piece of a frame.
        assert!(report.tardiness.quantile(1000) <= 500_000, "{report}");
    }
}

#[test]
fn each_frame_is_shown_and_late_where_there_is_not() {
    let report = played(made::layered(12, 60), 50);
    assert_eq!((report.total().shown, report.total().dropped, report.read), (120, 0, 120));
    // 24 ms of work for each 16.7 ms: it falls further and further behind.
    let late = report.tardiness.samples();
    assert!(late[119] > late[60] && late[60] > late[30], "{late:?}");
    assert!(late[119] > 300_000_000, "{late:?}");
}
