//! The verdict of `run`: each rule on a program with its defect, and on one that is nearly the same
//! without it.

mod common;

use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use common::{Folder, output, stderr, unbroken};
use serde_json::Value;

/// Runs one program at a time: how threads wait for each other depends on other load of the CPUs.
static ALONE: Mutex<()> = Mutex::new(());

/// The most runs of a program until a rule reports as it should: other programs of the machine may
/// use its CPUs.
const RUNS: usize = 5;

/// The report and its text for the rule's program, with or without the defect.
fn report(rule: &str, shows: bool) -> (Value, String) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new(&format!("verdict-{rule}-{shows}"));
    let program = folder.compile(&format!("verdict/{rule}.c"), &["-g"]);
    let file = folder.path("report.json");
    let way = if shows { "yes" } else { "no" };
    let run = ["run", "--profile", "--report", &file, "--"];
    let output = output(&[&run[..], in_front(rule), &[&program, way]].concat());
    let text = std::fs::read(&file).expect("a report");
    (serde_json::from_slice(&text).expect("JSON"), stderr(&output))
}

/// The command that gives a program real-time priority, for threads that must run at once whatever
/// else uses the CPUs, where that is allowed. Other programs run without it: the sampler needs a
/// CPU, too.
fn in_front(rule: &str) -> &'static [&'static str] {
    if rule != "convoy" {
        return &[];
    }
    static MAY: OnceLock<bool> = OnceLock::new();
    let try_it = || Command::new("chrt").args(["-f", "1", "true"]).output();
    let may = *MAY.get_or_init(|| try_it().is_ok_and(|tried| tried.status.success()));
    if may { &["chrt", "-f", "1"] } else { &[] }
}

/// The rules that have found something, in order.
fn rules(report: &Value) -> Vec<&str> {
    let verdict = report["verdict"].as_array().expect("a list");
    verdict.iter().map(|finding| finding["rule"].as_str().expect("a name")).collect()
}

/// The rule's sentence on the program with its defect, after checking that it is silent on the
/// other.
fn says(rule: &str, name: &str) -> String {
    let of = |shows: bool| {
        let mut last = report(rule, shows);
        for _ in 1..RUNS {
            if rules(&last.0).contains(&name) == shows {
                break;
            }
            last = report(rule, shows);
        }
        last
    };
    let (silent, _) = of(false);
    assert!(!rules(&silent).contains(&name), "{:#}", silent["verdict"]);
    let (report, text) = of(true);
    let verdict = report["verdict"].as_array().expect("a list");
    let found = verdict.iter().find(|finding| finding["rule"] == name);
    let found = found.unwrap_or_else(|| panic!("{rule}: {:#}", report["verdict"]));
    let said = found["says"].as_str().expect("words").to_owned();
    assert!(found["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{found:#}");
    // The verdict stands above the tables.
    let words = unbroken(&text);
    let first = verdict[0]["says"].as_str().expect("words");
    let (verdict_at, tables_at) = (words.find(first), words.find("Blocked time"));
    assert!(verdict_at.is_some() && (tables_at.is_none() || verdict_at < tables_at), "{text}");
    said
}

#[test]
fn a_lock_that_is_held_long_is_named_with_its_share_and_its_section() {
    let said = says("contention", "contention");
    assert!(said.contains("keep_it_long contention.c:"), "{said}");
    assert!(said.contains("the mutex locks, most of it at"), "{said}");
    assert!(said.contains("2.") && said.contains("ms a time"), "{said}");
}

#[test]
fn a_lock_that_is_waited_for_longer_than_it_is_held_is_a_convoy() {
    let said = says("convoy", "convoy");
    assert!(said.contains("count convoy.c:"), "{said}");
}

#[test]
fn one_lock_in_many_functions_may_guard_unrelated_data() {
    let said = says("unrelated", "unrelated");
    for function in ["write_log", "count_users", "reload_rules"] {
        assert!(said.contains(function), "{said}");
    }
}

#[test]
fn a_readers_writer_lock_without_readers_is_named() {
    let said = says("writers_only", "writers-only");
    assert!(said.contains("readers-writer lock") && said.contains("4.00 k times"), "{said}");
}

#[test]
fn notifications_that_find_no_waiter_are_counted() {
    let said = says("vain", "vain-wake-ups");
    assert!(said.contains("100 % of 2.00 k notifications at main vain.c:"), "{said}");
}

#[test]
fn a_lock_that_is_tried_until_it_is_had_is_named() {
    let said = says("trylock", "trylock-loop");
    assert!(
        said.contains("A trylock at take trylock.c:") && said.contains("each success"),
        "{said}"
    );
}

#[test]
fn a_thread_that_sleeps_until_a_flag_is_set_polls() {
    let said = says("polling", "polling");
    assert!(
        said.contains("1 thread (program) slept for") && said.contains("s on average"),
        "{said}"
    );
}

#[test]
fn a_condition_that_is_waited_for_with_short_deadlines_is_polled() {
    let said = says("timed", "timed-waits");
    assert!(said.contains("waits for a condition at await timed.c:"), "{said}");
    assert!(said.contains("No thread notified it"), "{said}");
    let (report, _) = report("timed", true);
    assert!(!rules(&report).contains(&"idle"), "{:#}", report["verdict"]);
}

#[test]
fn a_program_that_hangs_after_a_lost_notification_says_which() {
    let said = says("lost", "lost-wake-up");
    assert!(said.contains("1 thread still waited for a condition, at worker lost.c:"), "{said}");
    assert!(said.contains("Its 1 notification, at tell lost.c:"), "{said}");
    let (report, _) = report("lost", true);
    assert_eq!(rules(&report)[0], "lost-wake-up", "{:#}", report["verdict"]);
    assert!(!rules(&report).contains(&"calm"), "{:#}", report["verdict"]);
}

#[test]
fn other_programs_that_have_the_cpus_are_no_fault_of_this_one() {
    let said = says("busy_machine", "busy-machine");
    assert!(said.contains("Other programs used"), "{said}");
    let (report, _) = report("busy_machine", true);
    assert!(!rules(&report).contains(&"crowding"), "{:#}", report["verdict"]);
}

#[test]
fn a_lock_with_most_of_the_work_under_it_is_the_limit_however_rare_its_waits() {
    let said = says("serial", "contention");
    assert!(said.contains("waiting for the mutex lock"), "{said}");
    assert!(said.contains("of the program's CPU time"), "{said}");
    let (report, _) = report("serial", true);
    assert_eq!(rules(&report)[0], "contention", "{:#}", report["verdict"]);
    assert!(!rules(&report).contains(&"preempted-owner"), "{:#}", report["verdict"]);
}

#[test]
fn the_slowest_thread_at_a_barrier_is_named() {
    let said = says("barrier", "imbalance");
    assert!(said.contains("threads slept for") && said.contains("of CPU time"), "{said}");
}

#[test]
fn locks_of_the_c_library_are_named() {
    let said = says("c_library", "c-library");
    assert!(said.contains("of malloc, or of a stdio stream"), "{said}");
}

#[test]
fn waits_that_cost_as_much_as_the_work_are_counted() {
    let said = says("short_waits", "short-waits");
    assert!(said.contains("at play short_waits.c:") && said.contains("of CPU time"), "{said}");
}

#[test]
fn time_in_the_kernel_is_told_from_work() {
    let said = says("system_time", "system-time");
    assert!(said.contains("of the CPU time was in the kernel"), "{said}");
}

#[test]
fn a_thread_for_each_small_task_is_one_too_many() {
    let said = says("short_lives", "short-lives");
    assert!(said.contains("1.60 k threads were started in"), "{said}");
}

#[test]
fn a_section_that_is_long_each_time_is_named() {
    let said = says("long_sections", "long-sections");
    assert!(said.contains("renew long_sections.c:") && said.contains("30 times"), "{said}");
    let (report, _) = report("long_sections", true);
    assert!(!rules(&report).contains(&"preempted-owner"), "{:#}", report["verdict"]);
}

#[test]
fn many_threads_woken_for_one_item_are_a_herd() {
    let said = says("herd", "herd");
    assert!(said.contains("notifications at main herd.c:") && said.contains("for each"), "{said}");
}

#[test]
fn an_owner_that_sleeps_now_and_then_is_no_matter_of_the_lock() {
    let said = says("preempted", "preempted-owner");
    assert!(said.contains("the mutex lock, most of it at work preempted.c:"), "{said}");
    assert!(said.contains("of 40.0 k acquisitions waited for long"), "{said}");
}

#[test]
fn a_lock_that_is_not_released_is_said_to_be_and_nothing_of_its_cost() {
    let (report, _) = report("unreleased", true);
    let verdict = report["verdict"].as_array().expect("a list");
    let said = verdict[0]["says"].as_str().expect("words");
    assert_eq!(rules(&report), ["deadlock"], "{verdict:#?}");
    assert!(said.contains("still waited for the_lock, longest at waiter unreleased.c:"), "{said}");
    assert!(
        said.contains("taken at leak unreleased.c:") && said.contains("not released"),
        "{said}"
    );
    let (report, _) = self::report("unreleased", false);
    assert!(!rules(&report).contains(&"deadlock"), "{:#}", report["verdict"]);
}

#[test]
fn a_lock_that_is_kept_from_waiters_with_deadlines_is_named() {
    let said = says("kept", "unreleased");
    assert!(said.contains("initialised at main kept.c:"), "{said}");
    assert!(said.contains("taken at withdraw kept.c:") && said.contains("9 waits"), "{said}");
}

#[test]
fn a_writer_that_readers_pass_is_starved() {
    let said = says("starved", "starvation");
    assert!(said.contains("table at writes starved.c:"), "{said}");
    let (report, _) = report("starved", true);
    assert!(!rules(&report).contains(&"deadlock"), "{:#}", report["verdict"]);
}

#[test]
fn a_notification_before_the_wait_is_missed() {
    let said = says("missed", "missed-wake-ups");
    assert!(said.contains("5 of 5 waits at await missed.c:"), "{said}");
    assert!(said.contains("notifications at bring missed.c:"), "{said}");
}

#[test]
fn an_interpreter_whose_threads_take_turns_is_named() {
    let said = says("gil", "interpreter-lock");
    assert!(said.contains("global interpreter lock"), "{said}");
    let (report, _) = report("gil", true);
    assert!(!rules(&report).contains(&"idle"), "{:#}", report["verdict"]);
}

#[test]
fn one_hot_lock_among_many_is_named() {
    let said = says("hot", "contention");
    assert!(said.contains("the mutex shards+0x78"), "{said}");
}

#[test]
fn more_threads_than_cpus_are_said_to_be() {
    let said = says("crowding", "crowding");
    assert!(said.contains("wanted to run at a time"), "{said}");
}

#[test]
fn workers_without_work_are_idle_and_no_contention() {
    let said = says("idle", "idle");
    assert!(said.contains("idle for") && said.contains("worker idle.c:"), "{said}");
    let (report, _) = report("idle", true);
    assert!(!rules(&report).contains(&"contention"), "{:#}", report["verdict"]);
}

#[test]
fn waits_that_no_library_reaches_are_said_to_be() {
    let said = says("unreached", "unreached");
    assert!(said.contains("raw futexes"), "{said}");
}

#[test]
fn locks_in_both_orders_are_a_deadlock_in_waiting() {
    let said = says("order", "lock-order");
    assert!(said.contains("to at move order.c:") && said.contains("in both orders"), "{said}");
    assert!(said.contains("from at move order.c:") && said.contains("while to is held"), "{said}");
}

#[test]
fn a_deadlock_at_the_end_is_named_with_both_places() {
    let said = says("deadlock", "deadlock");
    assert!(said.matches("move deadlock.c:").count() == 4, "{said}");
    assert!(said.contains("waits for from at") && said.contains("waits for to at"), "{said}");
}

#[test]
fn a_program_that_hardly_waits_is_said_to_gain_nothing() {
    let said = says("calm", "calm");
    assert!(said.contains("Waits for pthread locks are"), "{said}");
}
