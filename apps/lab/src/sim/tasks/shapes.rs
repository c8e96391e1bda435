//! Shapes that hold at any size, and the two that the dissertation is about: its scheduler gets
//! slower when workers are added, ours does not. All figures are simulated; `docs/tasks.md` has the
//! full results.

use antiphon_sim::known;

use super::cases::{CASES, COSTS, Case, Then};
use super::experiment::Setting;
use super::rows::Row;
use super::subjects::{Form, SUBJECTS, named};

fn setting(packets: u32, workers: usize) -> Setting<'static> {
    let machine = &known("epyc-2x64c").expect("it is shipped").machine;
    Setting { machine, costs: &COSTS[0], seed: 1, packets, workers }
}

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).expect("a case")
}

fn row(name: &str, form: Form, case: &'static Case, packets: u32, workers: usize) -> Row {
    let subject = named(name, Some(form)).expect("a subject").subjects[0];
    Row::of(&setting(packets, workers), subject, case).unwrap_or_else(|why| panic!("{why:?}"))
}

/// A task that ran twice would panic.
#[test]
fn each_task_is_run_once() {
    for case in &CASES {
        for subject in &SUBJECTS {
            let row = Row::of(&setting(50, 6), subject, case);
            let row = row.unwrap_or_else(|why| panic!("{}, {}: {why:?}", subject.name, case.name));
            let follow = |packet: u32| match case.then {
                Then::Nothing => 0,
                Then::Reads(steps) | Then::Sleeps(steps) => u64::from(steps),
                Then::Folds(..) => case.depth(packet).map_or(0, u64::from),
            };
            let sleeps = row.tasks() - (0..50).map(|packet| 1 + follow(packet)).sum::<u64>();
            assert!(
                sleeps == 0 || matches!(case.then, Then::Sleeps(_)) && sleeps.is_multiple_of(2)
            );
            assert!(row.busy() > 0.0 && row.busy() <= 1.0, "{}: {}", subject.name, row.busy());
        }
    }
}

#[test]
fn a_spawner_with_no_room_runs_a_task_or_tries_again() {
    let retries = |form| row("lifo", form, case("general"), 400, 2).per_task(|of| of.retries);
    // Half of the tasks are run by the spawner, whose queue is soon full.
    assert!((0.1..1.0).contains(&retries(Form::Ours)), "{}", retries(Form::Ours));
    assert!(retries(Form::Published) > 10.0, "{}", retries(Form::Published));
}

/// The published order of the 99th percentile: first in, first out, the long options end last.
#[test]
fn short_options_end_sooner_first_in_first_out() {
    let options = case("options");
    for form in [Form::Ours, Form::Published] {
        let p99 = |name| row(name, form, options, 1500, 2).quantile_ns(0.99);
        let (fifo, lifo) = (p99("fifo"), p99("lifo"));
        assert!(fifo < 0.7 * lifo, "{fifo} {lifo}");
    }
}

/// Figures 7.1 and 7.2.
#[test]
fn only_thieves_that_never_rest_make_the_spawner_slower() {
    let general = case("general");
    let [few, many] = [20, 80].map(|workers| row("lifo", Form::Published, general, 500, workers));
    assert!(many.ops_per_s() < 0.9 * few.ops_per_s(), "{}", many.ops_per_s());
    assert!(many.per_task(|of| of.attempts) > 10.0 * few.per_task(|of| of.attempts));
    assert!(many.per_task(|of| of.push_ns) > 4.0 * few.per_task(|of| of.push_ns));
    let [few, many] = [20, 80].map(|workers| row("lifo-blocks", Form::Ours, general, 500, workers));
    assert!(many.ops_per_s() > 0.95 * few.ops_per_s(), "{}", many.ops_per_s());
}
