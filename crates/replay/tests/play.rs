//! Replays end, are the same each time, and predict what the program would do.

mod common;

use std::sync::Arc;

use antiphon_replay::{
    Confidence, Evidence, GLIBC, IDEAL, Plan, Play, Played, Row, Script, Subject, Verdict, Work,
    middle, recommend,
};
use antiphon_sim::{Arbitration, Machine};
use antiphon_trace::{Event, Thread, Trace, What};
use common::{releases, takes, thread, trace};

fn machine() -> Machine {
    Machine::two_sockets().shape(2, 8)
}

fn play(script: &Arc<Script>, lock: &str, seed: u64) -> Played {
    let play = Play { machine: machine(), arbitration: Arbitration::Fifo, seed, data_lines: 1 };
    let subject = Subject::named(lock).expect("a lock");
    play.play(script, subject).unwrap_or_else(|stuck| panic!("{lock}: {stuck}"))
}

/// A main thread that creates `workers` and joins them. Each takes one lock `rounds` times, holds
/// it for `held_ns` and then works for `away_ns`.
fn pool(workers: u32, rounds: u64, held_ns: u64, away_ns: u64) -> Trace {
    let mut main = vec![(0, What::Begins)];
    main.extend((1..=workers).map(|thread| (10, What::Creates { thread })));
    for thread in 1..=workers {
        main.push((20, What::Joins { thread }));
        main.push((20 + rounds * (held_ns + away_ns), What::Joined { thread }));
    }
    main.push((30 + rounds * (held_ns + away_ns), What::Ends));
    main.sort_by_key(|event| event.0);
    let mut threads = vec![thread(0, &main)];
    for worker in 0..workers {
        let mut events = vec![(15, What::Begins)];
        for round in 0..rounds {
            let at_ns = 20 + u64::from(worker) + round * (held_ns + away_ns);
            events.extend([(at_ns, takes(0)), (at_ns + held_ns, releases(0))]);
        }
        let end_ns = events.last().map_or(0, |event| event.0) + away_ns;
        events.push((end_ns, What::Ends));
        threads.push(thread(1, &events));
    }
    trace(threads)
}

fn plan(trace: &Trace) -> Arc<Plan> {
    Arc::new(Plan::new(trace))
}

#[test]
fn no_lock_is_faster_than_one_that_costs_nothing() {
    let plan = plan(&pool(8, 60, 500, 300));
    let script = Arc::new(Script::recorded(&plan));
    let ideal = play(&script, IDEAL, 1);
    // 480 sections of 500 ns, one after the other, and the time before the first.
    assert!((240_000..280_000).contains(&ideal.end_ns), "{}", ideal.end_ns);
    for subject in Subject::all() {
        let played = play(&script, subject.name, 1);
        assert_eq!((played.takes, played.fallbacks), (480, 0), "{}", subject.name);
        assert!(played.end_ns >= ideal.end_ns, "{}: {} ns", subject.name, played.end_ns);
        assert!(played.wait_share() > 0.3, "{}: {}", subject.name, played.wait_share());
    }
}

#[test]
fn a_seed_is_the_same_replay() {
    let plan = plan(&pool(4, 50, 200, 300));
    let script = Arc::new(Script::scaled(&plan, 9, Work::PerThread, 3));
    let again = Arc::new(Script::scaled(&plan, 9, Work::PerThread, 3));
    assert_eq!(script, again);
    assert_eq!(play(&script, "shfl-mutex", 5), play(&again, "shfl-mutex", 5));
    assert_ne!(play(&script, "shfl-mutex", 5).trace_hash, play(&again, "shfl-mutex", 6).trace_hash);
}

#[test]
fn more_workers_share_the_same_work_or_each_bring_their_own() {
    let plan = plan(&pool(4, 50, 100, 9_900));
    assert_eq!((plan.takes(), plan.peak()), (200, 5));
    let recorded = Script::recorded(&plan);
    assert_eq!(Script::scaled(&plan, 5, Work::Fixed, 1), recorded);
    for threads in [2, 3, 9, 17] {
        let fixed = Script::scaled(&plan, threads, Work::Fixed, 1);
        let own = Script::scaled(&plan, threads, Work::PerThread, 1);
        assert_eq!((fixed.threads(), own.threads()), (threads, threads));
        assert_eq!((fixed.takes(), fixed.busy_ns()), (200, recorded.busy_ns()));
        assert_eq!(own.takes(), 50 * (threads as u64 - 1));
        let (fixed, own) = (play(&Arc::new(fixed), IDEAL, 1), play(&Arc::new(own), IDEAL, 1));
        assert_eq!((fixed.fallbacks, own.fallbacks), (0, 0), "{threads} threads");
        assert_eq!((fixed.takes, own.takes), (200, 50 * (threads as u64 - 1)));
    }
    let two = play(&Arc::new(Script::scaled(&plan, 2, Work::Fixed, 1)), IDEAL, 1);
    let nine = play(&Arc::new(Script::scaled(&plan, 9, Work::Fixed, 1)), IDEAL, 1);
    assert!(two.end_ns > 4 * nine.end_ns, "{} and {} ns", two.end_ns, nine.end_ns);
}

#[test]
fn who_waits_with_a_lock_for_one_who_needs_it_goes_on_without() {
    // In the recording, the second thread held the lock before the first arrived, and then notified
    // it. In the replay the first already holds the lock and sleeps with it.
    let notified = What::Wakes { condition: 3, notified: true };
    let sleeper = [
        (0, takes(0)),
        (10, What::Sleeps { condition: 3, site: 0 }),
        (5000, notified),
        (5010, releases(0)),
    ];
    let waker = [
        (1000, takes(0)),
        (1010, What::Notifies { condition: 3, all: false }),
        (1020, releases(0)),
    ];
    let plan = plan(&trace(vec![thread(0, &sleeper), thread(0, &waker)]));
    let played = play(&Arc::new(Script::recorded(&plan)), GLIBC, 1);
    assert_eq!((played.takes, played.fallbacks), (2, 1));
    assert!(played.end_ns >= 10_000_000, "it waited for as long as it should");
    assert!(played.lost_share() > 0.9, "{}", played.lost_share());
}

#[test]
fn who_waits_for_one_that_computes_waits_for_long() {
    // It slept only briefly, because it had no CPU before: in the replay it gets one at once.
    let begins_late = What::Off { blocked_ns: 0, queued_ns: 59_000_000 };
    let sleeper = [
        (0, What::Begins),
        (59_000_000, begins_late),
        (59_000_000, What::Sleeps { condition: 3, site: 0 }),
        (60_000_000, What::Wakes { condition: 3, notified: true }),
        (60_001_000, What::Ends),
    ];
    let waker = [
        (0, What::Begins),
        (59_990_000, What::Notifies { condition: 3, all: false }),
        (60_000_000, What::Ends),
    ];
    let plan = plan(&trace(vec![thread(0, &sleeper), thread(0, &waker)]));
    let played = play(&Arc::new(Script::recorded(&plan)), GLIBC, 1);
    assert_eq!((played.awaits, played.fallbacks), (1, 0));
    assert!((59_990_000..61_000_000).contains(&played.end_ns), "{} ns", played.end_ns);
}

#[test]
fn who_keeps_others_out_goes_on_first() {
    // In the replay the first thread already holds the lock. The third began its wait earlier, and
    // what it waits for comes after what the first does.
    let notified = |condition| What::Wakes { condition, notified: true };
    let sleeper = [
        (0, takes(0)),
        (100_000, What::Sleeps { condition: 3, site: 0 }),
        (500_000, notified(3)),
        (500_010, releases(0)),
        (500_020, What::Notifies { condition: 4, all: false }),
    ];
    let waker = [
        (200_000, takes(0)),
        (200_010, What::Notifies { condition: 3, all: false }),
        (200_020, releases(0)),
    ];
    let third = [(10, What::Sleeps { condition: 4, site: 0 }), (600_000, notified(4))];
    let mut trace = trace(vec![thread(0, &sleeper), thread(0, &waker), thread(0, &third)]);
    trace.locks.push(trace.locks[3].clone());
    let played = play(&Arc::new(Script::recorded(&plan(&trace))), GLIBC, 1);
    assert_eq!((played.takes, played.fallbacks), (2, 1));
}

#[test]
fn what_a_worker_does_with_a_lock_of_its_own_is_one_worker_s() {
    let worker = |own| {
        let mut events = vec![(0, What::Begins), (10, takes(2)), (20, releases(2))];
        for round in 1..=50 {
            events.extend([(round * 10_000, takes(own)), (round * 10_000 + 10, releases(own))]);
        }
        thread(1, &events)
    };
    let plan = plan(&trace(vec![worker(0), worker(1)]));
    let played = |threads| {
        let script = Arc::new(Script::scaled(&plan, threads, Work::Fixed, 1));
        play(&script, IDEAL, 1)
    };
    let (one, nine) = (played(1), played(9));
    assert_eq!((one.takes, nine.takes), (102, 102));
    assert!(one.end_ns > 1_000_000, "{} ns", one.end_ns);
    assert!((500_000..600_000).contains(&nine.end_ns), "{} ns", nine.end_ns);
}

#[test]
fn locks_taken_in_both_orders_are_no_deadlock() {
    let one = [(0, takes(0)), (1000, takes(1)), (2000, releases(1)), (2010, releases(0))];
    let other = [(0, takes(1)), (1000, takes(0)), (2000, releases(0)), (2010, releases(1))];
    let plan = plan(&trace(vec![thread(0, &one), thread(0, &other)]));
    for lock in [GLIBC, "shfl-mutex", "mcs", IDEAL] {
        let played = play(&Arc::new(Script::recorded(&plan)), lock, 1);
        assert_eq!((played.takes, played.fallbacks), (3, 1), "{lock}");
    }
}

/// Pseudo-random numbers from a seed.
struct Lots(u64);

impl Lots {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % bound
    }
}

/// Random events that name existing objects, in the order of time.
fn any(lots: &mut Lots) -> Trace {
    let threads = 1 + lots.below(6) as u32;
    let any_thread = |lots: &mut Lots| lots.below(threads.into()) as u32;
    let mut all: Vec<Thread> = Vec::new();
    for _ in 0..threads {
        let mut at_ns = 0;
        let mut events = Vec::new();
        for _ in 0..lots.below(80) {
            at_ns += lots.below(3000);
            let lock = lots.below(4) as u32;
            let [first, second] = [lots.below(2) == 0, lots.below(2) == 0];
            events.push((
                at_ns,
                match lots.below(18) {
                    0 => What::Begins,
                    1 => What::Ends,
                    2 => What::Waits { lock, site: 1 },
                    3..6 => What::Takes { lock, site: lock, shared: first, tried: second },
                    6 => What::GivesUp { lock },
                    7..10 => What::Releases { lock },
                    10 => What::Sleeps { condition: 3, site: 2 },
                    11 => What::Wakes { condition: 3, notified: first },
                    12 => What::Notifies { condition: 3, all: second },
                    13 => What::Creates { thread: any_thread(lots) },
                    14 => What::Joins { thread: any_thread(lots) },
                    15 => What::Joined { thread: any_thread(lots) },
                    16 => What::Asked { ns: lots.below(5000) },
                    _ => What::Off { blocked_ns: lots.below(5000), queued_ns: lots.below(5000) },
                },
            ));
        }
        all.push(thread(lots.below(3) as u32, &events));
    }
    trace(all)
}

#[test]
fn whatever_a_trace_says_its_replay_ends() {
    let mut lots = Lots(0x5eed);
    let mut played_any = 0;
    // Only some locks: others poll while a thread waits without success, which costs only the
    // host's time.
    let subjects = [
        GLIBC,
        "shfl-mutex",
        "shfl-mutex+light",
        "mcs",
        "malthusian",
        "cst-mutex",
        "linux-mutex",
        IDEAL,
    ];
    for round in 0..60 {
        let trace = any(&mut lots);
        let plan = plan(&trace);
        let subject = subjects[round % subjects.len()];
        for script in [
            Script::recorded(&plan),
            Script::scaled(&plan, 5, Work::Fixed, 1),
            Script::scaled(&plan, 9, Work::PerThread, 1),
        ] {
            let takes = script.takes();
            let played = play(&Arc::new(script), subject, round as u64);
            assert!(played.takes <= takes, "round {round}");
            assert!(played.takes + played.fallbacks >= takes, "round {round}");
            played_any += played.takes;
        }
        let part = middle(&trace, 10);
        let parts = part.map_or(0, |part| Plan::new(&part).takes());
        assert!(parts <= 10);
    }
    assert!(played_any > 300, "{played_any}");
}

fn rows(plan: &Arc<Plan>, threads: usize) -> Vec<Row> {
    let row = |lock| {
        let played = |seed| {
            let script = Arc::new(Script::scaled(plan, threads, Work::Fixed, seed));
            play(&script, lock, seed)
        };
        Row { lock, threads, played: (1..=3).map(played).collect() }
    };
    [GLIBC, "shfl-mutex", IDEAL].map(row).to_vec()
}

#[test]
fn without_contention_there_is_no_difference_and_of_little_nothing_is_known() {
    let evidence = Evidence { events: 10_000, ..Evidence::default() };
    let calm = plan(&pool(4, 400, 100, 90_000));
    let said = recommend(&rows(&calm, 5), evidence);
    assert_eq!(said.verdict, Verdict::NoDifference, "{}", said.why);
    assert!(said.why.contains("would change nothing either"), "{}", said.why);

    let dropped = recommend(&rows(&calm, 5), Evidence { dropped: 500, ..evidence });
    assert_eq!(dropped.verdict, Verdict::CannotKnow);
    assert!(dropped.why.contains("4.8 %"), "{}", dropped.why);
    let cut_off = recommend(&rows(&calm, 5), Evidence { cut_off: true, ..evidence });
    assert_eq!(cut_off.verdict, Verdict::CannotKnow);
    let few = recommend(&rows(&plan(&pool(4, 40, 100, 100)), 5), evidence);
    assert_eq!(few.verdict, Verdict::CannotKnow);
    assert!(few.why.ends_with("acquisitions to tell locks apart: 160"), "{}", few.why);

    let mut lost = rows(&calm, 5);
    for played in lost.iter_mut().flat_map(|row| &mut row.played) {
        played.lost_ns = played.end_ns / 20;
    }
    let said = recommend(&lost, evidence);
    assert_eq!(said.verdict, Verdict::CannotKnow);
    assert!(said.why.contains("5.0 % of the time"), "{}", said.why);
}

#[test]
fn a_hot_lock_has_a_recommendation_with_its_reason() {
    let hot = plan(&pool(12, 200, 100, 200));
    let said = recommend(&rows(&hot, 13), Evidence { events: 10_000, ..Evidence::default() });
    assert_eq!(said.verdict, Verdict::Use("shfl-mutex"), "{}", said.why);
    assert!(said.confidence.is_some_and(|it| it != Confidence::Low), "{}", said.why);
}

#[test]
fn the_middle_of_a_trace_is_a_trace() {
    let whole = pool(4, 100, 100, 900);
    let part = middle(&whole, 100).expect("a part");
    let plan = plan(&part);
    // Its workers are known, although they were created before.
    assert!(plan.scales());
    assert!((90..=100).contains(&plan.takes()), "{}", plan.takes());
    let in_order = |events: &[Event]| events.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns);
    assert!(part.threads.iter().all(|thread| in_order(&thread.events)));
    let played = play(&Arc::new(Script::recorded(&plan)), GLIBC, 1);
    assert_eq!(played.fallbacks, 0);
    assert_eq!(middle(&whole, 400), None);
}

#[test]
fn a_timeline_has_a_slice_for_each_hold_and_each_wait() {
    let events = [
        (1000, What::Waits { lock: 0, site: 0 }),
        (3500, takes(0)),
        (4000, takes(1)),
        (4500, releases(0)),
        (5000, releases(1)),
    ];
    let mut out = Vec::new();
    let trace = trace(vec![thread(0, &events)]);
    antiphon_replay::timeline(&[("recorded", &trace)], &mut out).expect("memory");
    let read: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let kinds: Vec<_> = read["traceEvents"].as_array().expect("a list").iter().collect();
    let of = |ph: &str| kinds.iter().filter(|event| event["ph"] == ph).count();
    // The first hold ends inside the second, so it can't be a slice of the track.
    assert_eq!((of("M"), of("X"), of("b"), of("e")), (3, 2, 1, 1));
    assert_eq!((kinds[3]["ts"].as_f64(), kinds[3]["dur"].as_f64()), (Some(0.0), Some(2.5)));
}

#[test]
fn a_replay_has_a_timeline_beside_the_recorded_one() {
    let recorded = pool(3, 20, 500, 100);
    let plan = plan(&recorded);
    let subject = Subject::named(GLIBC).expect("a lock");
    let play = Play { machine: machine(), arbitration: Arbitration::Fifo, seed: 1, data_lines: 0 };
    let simulated = play.trace(&recorded, &plan, subject).expect("an end");
    let played = self::play(&Arc::new(Script::recorded(&plan)), GLIBC, 1);
    assert_eq!(simulated.threads.len(), recorded.threads.len());
    let count = |trace: &Trace, is: fn(What) -> bool| {
        let events = trace.threads.iter().flat_map(|thread| &thread.events);
        events.filter(|event| is(event.what)).count() as u64
    };
    let takes = |what| matches!(what, What::Takes { .. });
    let waits = |what| matches!(what, What::Waits { .. });
    assert_eq!(count(&simulated, takes), count(&recorded, takes));
    assert_eq!(count(&simulated, takes), played.takes);
    // All threads arrive at one lock at the same time, so they contend in the simulation.
    assert!(count(&simulated, waits) > 0);
    let mut out = Vec::new();
    let traces = [("recorded", &recorded), ("simulated", &simulated)];
    antiphon_replay::timeline(&traces, &mut out).expect("memory");
    let read: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let events = read["traceEvents"].as_array().expect("a list");
    let groups = events.iter().filter(|event| event["name"] == "process_name");
    let names: Vec<_> = groups.map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(names, [Some("recorded"), Some("simulated")]);
    let holds = |pid| {
        events.iter().filter(|event| event["pid"] == pid && event["cat"] == "hold").count() as u64
    };
    assert_eq!((holds(1), holds(2)), (played.takes, played.takes));
}
