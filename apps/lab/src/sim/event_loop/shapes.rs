//! Shapes that hold at any size. All figures are simulated; `docs/loop-sim.md` has the full
//! results.

use antiphon_runtime::coop::Options;
use antiphon_sim::known;

use super::cases::{CASES, Case, Placement};
use super::colours;
use super::plan::{Plan, Setting};
use super::rows::Row;
use super::subjects::{SUBJECTS, Subject};

fn setting(cores: usize, hogs: usize) -> Setting<'static> {
    let machine = &known("8s-192c").expect("it is shipped").machine;
    let (counted_ns, warm_ns) = (250_000_000, 60_000_000);
    let (placement, round_ns) = (Placement::Even, 1_000_000);
    let (seed, players, options) = (1, 8, Options::default());
    Setting {
        machine,
        seed,
        counted_ns,
        warm_ns,
        cores,
        players,
        hogs,
        placement,
        options,
        round_ns,
    }
}

fn case(name: &str) -> &'static Case {
    CASES.iter().find(|case| case.name == name).expect("a case")
}

fn row(setting: &Setting<'_>, subject: Subject, name: &str) -> Row {
    Row::of(setting, subject, case(name)).unwrap_or_else(|why| panic!("{why:?}"))
}

/// Each timer is dispatched; otherwise the simulation would report a deadlock.
#[test]
fn every_subject_plays_every_case_to_its_end() {
    for case in &CASES {
        for subject in SUBJECTS {
            let setting = Setting { counted_ns: 60_000_000, ..setting(2, 1) };
            let row = Row::of(&setting, subject, case).unwrap_or_else(|why| panic!("{why:?}"));
            let frames = 60_000_000 * case.hz / 1_000_000_000 * row.players as u64;
            let timers = row.tardiness.timers;
            assert!(timers.abs_diff(frames) <= row.players as u64, "{}: {timers}", case.name);
            assert!((0.0..=1.0).contains(&row.players_share) && row.jain_cpu <= 1.0);
        }
    }
}

#[test]
fn who_hands_over_is_on_time_where_slices_are_not() {
    let here = setting(2, 0);
    let alone = row(&here, Subject::Alone, "each");
    for subject in [Subject::T3, Subject::T1, Subject::Coop] {
        let row = row(&here, subject, "each");
        let (p99, slices) = (row.tardiness.p99_us, alone.tardiness.p99_us);
        assert!(10.0 * p99 < slices, "{}: {p99} {slices}", subject.name());
        assert!(row.jain_cpu > 0.95, "{}: {}", subject.name(), row.jain_cpu);
        assert!(row.chunks_per_s > 0.9 * alone.chunks_per_s, "{}", subject.name());
    }
}

/// §5.7: without hints from the loops, turns of a period of 1 ms make timers later, and need more
/// switches.
#[test]
fn short_turns_for_all_are_later_and_cost_more_switches() {
    let here = setting(2, 0);
    let [told, turns] = [Subject::Coop, Subject::Periodic].map(|it| row(&here, it, "each"));
    assert!(turns.tardiness.p99_us > 2.0 * told.tardiness.p99_us);
    assert!(turns.switches_per_s > 4.0 * told.switches_per_s);
}

/// However short all turns are, a chunk that has begun must end before a timer's callback, and gets
/// only its share meanwhile: no turns make timers as early as hints from the loops.
#[test]
fn turns_that_are_shorter_are_no_earlier() {
    for hogs in [0, 4] {
        let told = [Subject::T1, Subject::Coop].map(|it| row(&setting(2, hogs), it, "each"));
        for round_ns in [4_000_000, 1_000_000, 250_000, 62_500] {
            let here = Setting { round_ns, ..setting(2, hogs) };
            let turns = row(&here, Subject::Periodic, "each");
            for told in &told {
                let (told, turns) = (told.tardiness.p99_us, turns.tardiness.p99_us);
                assert!(4.0 * told < turns, "{hogs} hogs, {round_ns}: {told} {turns}");
            }
        }
    }
}

#[test]
fn beside_hogs_a_kernel_that_knows_is_on_time_and_fair() {
    let here = setting(2, 4);
    let alone = row(&here, Subject::Alone, "each");
    for subject in [Subject::T1, Subject::Coop] {
        let row = row(&here, subject, "each");
        let (p99, slices) = (row.tardiness.p99_us, alone.tardiness.p99_us);
        assert!(10.0 * p99 < slices, "{}: {p99} {slices}", subject.name());
        // Eight of twelve programs are players.
        let share = row.players_share;
        assert!((0.55..0.75).contains(&share), "{}: {share}", subject.name());
    }
    let coop = row(&here, Subject::Coop, "each");
    assert!(coop.jain_cpu > 0.95, "{}", coop.jain_cpu);
    // If the kernel does not know that there are eight players behind one token, they get the share
    // of few.
    assert!(row(&here, Subject::T3, "each").players_share < 0.5);
}

#[test]
fn who_shares_one_part_shows_as_many_frames() {
    let here = Setting { counted_ns: 500_000_000, ..setting(1, 0) };
    for subject in [Subject::T3, Subject::Coop] {
        let [one, each] = ["one", "each"].map(|name| row(&here, subject, name));
        let (one, each) = (one.jain_fps, each.jain_fps);
        assert!(one > each, "{}: {one} {each}", subject.name());
    }
}

#[test]
fn one_that_is_late_delays_others_by_the_slack_at_most() {
    let here = setting(2, 0);
    for subject in [Subject::T1, Subject::T3, Subject::Coop] {
        let others = row(&here, subject, "misbehave").others.expect("there are others");
        // The slack is 1 ms, and a timer may be due just when the player begins to be late.
        assert!(others.max_us < 3_000.0, "{}: {}", subject.name(), others.max_us);
    }
}

#[test]
fn where_the_core_can_be_taken_away_others_do_not_notice_one_that_is_late() {
    let here = setting(8, 0);
    let both = |subject| {
        let before = row(&here, subject, "each").tardiness;
        let others = row(&here, subject, "misbehave").others.expect("there are others");
        assert!(others.p99_us < 1.1 * before.p99_us, "{}: {before:?} {others:?}", subject.name());
        (before, others)
    };
    both(Subject::Coop);
    // BOOST-6: a loop that is raised again after an overrun is ranked behind the others.
    let (before, others) = both(Subject::T1);
    assert!(others.p999_us < 1.1 * before.p999_us, "{} {}", before.p999_us, others.p999_us);
}

#[test]
fn domains_on_many_cores_share_no_line() {
    // Two cores of the second socket are among them.
    let here = Setting { counted_ns: 40_000_000, warm_ns: 0, ..setting(26, 0) };
    let t3 = row(&here, Subject::T3, "each");
    assert!(t3.handovers_per_s > Some(100.0), "{:?}", t3.handovers_per_s);
    assert_eq!(t3.remote_per_handover, Some(0.0));
}

#[test]
fn who_joins_where_there_are_few_is_as_well_off_as_others() {
    let jain = |placement| {
        let row = row(&Setting { placement, ..setting(6, 0) }, Subject::T3, "each");
        assert_eq!(row.moves > 0, placement == Placement::Move, "{:?}", row.placement);
        row.jain_cpu_players
    };
    let [lot, join, moves] = [Placement::Lot, Placement::Join, Placement::Move].map(jain);
    assert!(join > lot && moves > lot, "{lot} {join} {moves}");
}

#[test]
fn a_plan_has_all_players_once_and_is_the_seeds() {
    for placement in [Placement::Even, Placement::Lot, Placement::Join, Placement::Move] {
        let here = Setting { placement, ..setting(5, 0) };
        let plan = |seed| Plan::new(&Setting { seed, ..here }, case("each"));
        let counts = |seed| -> Vec<_> { (0..5).map(|core| plan(seed).on(core).count()).collect() };
        assert_eq!(counts(1).iter().sum::<usize>(), 40);
        assert_eq!(counts(1), counts(1));
        let even = matches!(placement, Placement::Even | Placement::Join);
        assert_eq!(counts(1) == [8; 5], even, "{placement:?}: {:?}", counts(1));
        let sum: f64 = plan(1).players.iter().map(|seat| seat.demand).sum();
        assert!((sum - 40.0 * 0.143).abs() < 1e-9, "{sum}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for subject in SUBJECTS {
        let trace = |seed| {
            let setting = Setting { seed, ..setting(1, 2) };
            row(&setting, subject, "misbehave").object(setting.machine).to_string()
        };
        assert_eq!(trace(1), trace(1), "{}", subject.name());
        assert_ne!(trace(1), trace(2), "{}", subject.name());
    }
}

#[test]
fn colours_use_as_many_cores_as_there_are_of_them() {
    let row = |cores, colours| {
        let machine = &known("8s-192c").expect("it is shipped").machine;
        let setting = colours::Setting { machine, seed: 1, cores, colours, counted_ns: 10_000_000 };
        colours::Row::of(&setting).unwrap_or_else(|why| panic!("{why:?}"))
    };
    let [alone, one, many] = [row(1, 8), row(4, 1), row(4, 8)];
    assert!(one.ops_per_s < 1.1 * alone.ops_per_s, "COLOUR-1: {}", one.ops_per_s);
    assert!(many.ops_per_s > 3.0 * alone.ops_per_s, "{}", many.ops_per_s);
    assert!(many.jain > 0.7, "{}", many.jain);
    // A core with nothing to do sleeps more deeply.
    for row in [alone, many] {
        // The time of an event, and the overhead around it.
        assert!(row.tardiness.max_us < 60.0, "{}", row.tardiness.max_us);
    }
}
