//! The rules by which a trace becomes a plan.

mod common;

use antiphon_replay::{Plan, Step};
use antiphon_trace::{Cost, Trace, What};
use common::{releases, takes, thread, trace};

const SLEEPS: What = What::Sleeps { condition: 3, site: 5 };
const WAKES: What = What::Wakes { condition: 3, notified: true };
const NOTIFIES: What = What::Notifies { condition: 3, all: false };

fn steps(plan: &Plan, thread: usize) -> Vec<Step> {
    plan.threads[thread].steps.iter().map(|timed| timed.step).collect()
}

fn lock(lock: u32) -> Step {
    Step::Lock { lock, site: lock, shared: false }
}

#[test]
fn time_off_the_cpu_is_no_work_and_the_run_queue_is_nothing() {
    let off = What::Off { blocked_ns: 300, queued_ns: 100 };
    let events = [(0, takes(0)), (1000, off), (1000, releases(0)), (1500, What::Ends)];
    let plan = Plan::new(&trace(vec![thread(0, &events)]));
    let expected = [
        lock(0),
        Step::Compute { ns: 600 },
        Step::Block { ns: 300 },
        Step::Unlock { lock: 0 },
        Step::Compute { ns: 500 },
        Step::Signal { token: 0 },
    ];
    assert_eq!(steps(&plan, 0), expected);
}

/// Recording the taking of a lock costs 20 ns before its time and 30 after it, that of a release 10
/// and 5.
#[test]
fn what_recording_took_is_left_out() {
    let cost =
        |what: What, before_ps, after_ps| Cost { code: what.code(), before_ps, after_ps, timed: 1 };
    let costs = vec![cost(takes(0), 20_000, 30_400), cost(releases(0), 10_600, 5_000)];
    let (off, asked) = (What::Off { blocked_ns: 300, queued_ns: 100 }, What::Asked { ns: 2_000 });
    let events = [
        (0, What::Begins),
        (100, takes(0)),
        (200, releases(0)),
        // Too short for the time to subtract: the rest is subtracted from the next.
        (210, takes(0)),
        (310, releases(0)),
        (310, asked),
        (5000, off),
        (5000, takes(0)),
        (5041, releases(0)),
        // A wait is not work, whatever is in it.
        (6041, SLEEPS),
        (6041, asked),
        (9000, WAKES),
        (9100, What::Ends),
    ];
    let plan = Plan::new(&Trace { costs, ..trace(vec![thread(0, &events)]) });
    let expected = [
        Step::Compute { ns: 80 },
        lock(0),
        Step::Compute { ns: 59 },
        Step::Unlock { lock: 0 },
        lock(0),
        Step::Compute { ns: 44 },
        Step::Unlock { lock: 0 },
        Step::Compute { ns: 4690 - 400 - 2_025 },
        Step::Block { ns: 300 },
        lock(0),
        Step::Unlock { lock: 0 },
        Step::Compute { ns: 995 },
        Step::Block { ns: 2959 },
        Step::Compute { ns: 100 },
        Step::Signal { token: 0 },
    ];
    assert_eq!(steps(&plan, 0), expected);
    let left_out = 20 + 41 + 10 + 56 + 2_025 + 41 + 5;
    assert_eq!((plan.recorder_ns(), plan.threads[0].left_out_ns), (left_out, left_out));
}

#[test]
fn waiting_for_a_lock_is_no_work_and_giving_up_takes_its_time() {
    let waits = What::Waits { lock: 0, site: 0 };
    let events = [
        (0, What::Begins),
        (10, waits),
        (500, takes(0)),
        (520, releases(0)),
        (600, waits),
        (900, What::GivesUp { lock: 0 }),
        // An attempt without success.
        (950, What::GivesUp { lock: 0 }),
    ];
    let plan = Plan::new(&trace(vec![thread(0, &events)]));
    let expected = [
        Step::Compute { ns: 10 },
        lock(0),
        Step::Compute { ns: 20 },
        Step::Unlock { lock: 0 },
        Step::Compute { ns: 80 },
        Step::Block { ns: 300 },
        Step::Compute { ns: 50 },
    ];
    assert_eq!(steps(&plan, 0), expected);
}

#[test]
fn a_wait_on_a_condition_waits_for_who_notified_it_and_a_broadcast_wakes_all() {
    let all = What::Notifies { condition: 3, all: true };
    // The first notification wakes no thread: none is asleep. The second wakes the first sleeper,
    // before the broadcast; the broadcast wakes the two threads that sleep then.
    let notifier = [(5, NOTIFIES), (100, NOTIFIES), (300, all)];
    let first = [(10, SLEEPS), (150, WAKES), (200, SLEEPS), (350, WAKES)];
    let second = [(220, SLEEPS), (360, WAKES)];
    let own = What::Wakes { condition: 3, notified: false };
    let late = [(400, SLEEPS), (700, own), (800, SLEEPS), (900, WAKES)];
    let threads = [&notifier[..], &first, &second, &late].map(|events| thread(0, events));
    let plan = Plan::new(&trace(threads.to_vec()));
    let signals = |thread| {
        let signal = |step| if let Step::Signal { token } = step { Some(token) } else { None };
        steps(&plan, thread).into_iter().filter_map(signal).collect::<Vec<_>>()
    };
    let awaits = |thread| {
        let wait = |step| match step {
            Step::Await { token, took_ns } => Some((token, took_ns)),
            _ => None,
        };
        steps(&plan, thread).into_iter().filter_map(wait).collect::<Vec<_>>()
    };
    assert_eq!(awaits(1), [(0, 140), (1, 150)]);
    assert_eq!(awaits(2), [(2, 140)]);
    assert_eq!(signals(0), [0, 1, 2]);
    // First its time ran out; then a thread that is not in the trace woke it.
    assert_eq!(
        steps(&plan, 3)[1..],
        [Step::Block { ns: 300 }, Step::Compute { ns: 100 }, Step::Block { ns: 100 }]
    );
    assert_eq!((awaits(3), plan.cleaned.woken_by_nobody), (vec![], 1));
}

#[test]
fn a_thread_begins_when_it_is_made_and_is_joined_when_it_has_ended() {
    let main = [
        (0, What::Begins),
        (100, What::Creates { thread: 1 }),
        (150, What::Joins { thread: 1 }),
        (900, What::Joined { thread: 1 }),
        (950, What::Ends),
    ];
    let other = [(120, What::Begins), (800, What::Ends)];
    let plan = Plan::new(&trace(vec![thread(0, &main), thread(1, &other)]));
    let (begin, end) = (1, 2);
    assert_eq!(steps(&plan, 0)[1], Step::Signal { token: begin });
    assert_eq!(steps(&plan, 0)[3], Step::Await { token: end, took_ns: 750 });
    let expected = [
        Step::Await { token: begin, took_ns: 0 },
        Step::Compute { ns: 680 },
        Step::Signal { token: end },
    ];
    assert_eq!(steps(&plan, 1), expected);
    assert!(plan.threads[1].made && !plan.threads[0].made);
    assert_eq!(plan.peak(), 2);
}

#[test]
fn what_does_not_belong_together_is_left_out_and_counted() {
    let events = [
        // A release of a lock that another thread has.
        (0, releases(1)),
        // Never released; the same lock is taken again and released, which counts.
        (10, takes(0)),
        (20, takes(0)),
        (30, releases(0)),
        // A lock that the thread holds: a recursive mutex. The inner pair doesn't count.
        (40, takes(1)),
        (50, takes(1)),
        (60, releases(1)),
        (70, releases(1)),
        // No lock at all.
        (80, takes(3)),
    ];
    let plan = Plan::new(&trace(vec![thread(0, &events)]));
    let is_lock = |step: &Step| matches!(step, Step::Lock { .. } | Step::Unlock { .. });
    let kept: Vec<Step> = steps(&plan, 0).into_iter().filter(is_lock).collect();
    assert_eq!(kept.len(), 4);
    assert_eq!(kept[1], Step::Unlock { lock: 0 });
    assert_eq!(kept[3], Step::Unlock { lock: 1 });
    let cleaned = plan.cleaned;
    assert_eq!((cleaned.released_untaken, cleaned.taken_for_ever, cleaned.unnamed), (1, 1, 1));
    assert_eq!(cleaned.total(), 3);
}

#[test]
fn half_the_hold_is_of_what_is_done_under_locks_of_that_site() {
    let events = [(0, takes(0)), (100, releases(0)), (200, takes(1)), (300, releases(1))];
    let plan = Plan::new(&trace(vec![thread(0, &events)]));
    assert_eq!(plan.compute_ns(), 300);
    assert_eq!(plan.with_half_the_hold(1).compute_ns(), 250);
    assert_eq!(plan.with_half_the_hold(7), plan);
}
