//! `sim locks`, `sim rwlocks` and `sim memory`.

use crate::common::{FRAME, Folder, has_keys, json, output, rows, stderr};
use serde_json::Value;

fn refused(arguments: &[&str]) -> String {
    crate::common::refused(&[&["sim", "locks"], arguments].concat())
}

const FIGURES: [&str; 17] = [
    "model",
    "machine",
    "arbitration",
    "seed",
    "subject",
    "case",
    "threads",
    "ops_per_s",
    "jain",
    "busier_half",
    "remote_transfers_per_op",
    "parks",
    "wakes",
    "handover_ns",
    "handovers_with_wake",
    "longest_wait_ns",
    "lock_bytes",
];

#[test]
fn every_row_says_that_it_is_a_model_and_where_it_is_from() {
    let command = ["sim", "locks", "--machine", "xeon-2s", "--case", "lock2,hash", "--ms", "0.05"];
    let report = json(&[&command[..], &["--threads", "1,4", "--json"]].concat());
    has_keys(&report, &FRAME);
    has_keys(&report["simulated"], &["machine", "hash", "seed", "ms", "arbitration", "pages"]);
    assert!(report["sim"]["ops"].as_u64().is_some_and(|ops| ops > 1_000));
    // 13 locks, two cases, two numbers of threads.
    assert_eq!(rows(&report).len(), 52);
    for row in rows(&report) {
        has_keys(row, &FIGURES);
        assert_eq!((&row["model"], &row["machine"]), (&true.into(), &"xeon-2s".into()));
        assert!(row["ops_per_s"].as_f64().is_some_and(|figure| figure > 0.0), "{row}");
    }
}

#[test]
fn one_thread_is_not_several() {
    let command = ["sim", "locks", "--machine", "xeon-2s", "--subject", "tas", "--case", "lock2"];
    let said = output(&[&command[..], &["--threads", "1", "--ms", "0.05"]].concat());
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success() && text.contains("\nWith 1 thread\n"), "{text}");
}

/// Locks whose waiters sleep wake them on the critical path; locks whose waiters spin don't.
#[test]
fn wakes_on_the_critical_path_are_told() {
    let command = ["sim", "locks", "--threads", "24", "--ms", "0.5", "--json"];
    let report = json(&[&command[..], &["--subject", "mcs,mcs-stp"]].concat());
    let share = |place: usize| rows(&report)[place]["handovers_with_wake"].as_f64();
    assert_eq!((&rows(&report)[0]["subject"], share(0)), (&"mcs".into(), Some(0.0)));
    assert!(share(1).is_some_and(|share| share > 0.5), "{:?}", rows(&report)[1]);
}

#[test]
fn several_seeds_have_a_median_and_a_range() {
    let command =
        ["sim", "locks", "--machine", "xeon-2s", "--subject", "shfl-mutex", "--threads", "30"];
    let with = |more: &[&str]| json(&[&command[..], &["--ms", "0.1", "--json"], more].concat());
    let work = |seed: &str| rows(&with(&["--seed", seed]))[0]["ops_per_s"].as_f64().expect("work");
    let mut alone = ["4", "5", "6"].map(work);
    alone.sort_by(f64::total_cmp);
    let report = with(&["--seed", "4", "--seeds", "3"]);
    let [row] = rows(&report) else { panic!("one row: {report}") };
    assert_eq!(row["ops_per_s"].as_f64(), Some(alone[1]));
    let range = &row["ops_per_s_of_seeds"];
    assert_eq!(range["least"].as_f64(), Some(alone[0]));
    assert_eq!((range["most"].as_f64(), &range["seeds"]), (Some(alone[2]), &3.into()));
    assert!(refused(&["--seeds", "0"]).contains("from 1"));
}

/// A simulation on a timeline: a lock has one owner at a time, and all threads are present.
#[test]
fn a_simulation_is_put_on_a_timeline() {
    let folder = Folder::new("sim-trace");
    let file = &folder.path("trace.json");
    let command = ["--machine", "xeon-2s", "--threads", "6", "--ms", "0.1", "--trace", file];
    assert!(refused(&command).contains("one row"));
    // A section belongs to the thread that requested it, whichever thread runs it; a server
    // requests none.
    for (subject, asking) in [("mcs", 6), ("dsm-synch", 6), ("rcl", 5)] {
        json(&[&["sim", "locks", "--subject", subject, "--json"], &command[..]].concat());
        let trace: Value =
            serde_json::from_slice(&std::fs::read(file).expect("a timeline")).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("events");
        let of = |what: &str| -> Vec<_> {
            let mut spans: Vec<_> = events
                .iter()
                .filter(|event| event["cat"] == what)
                .map(|event| {
                    (event["ts"].as_f64().expect("when"), event["dur"].as_f64().expect("for"))
                })
                .collect();
            spans.sort_by(|one, other| one.0.total_cmp(&other.0));
            spans
        };
        let holds = of("hold");
        assert!(holds.len() > 20 && !of("wait").is_empty(), "{subject}");
        assert!(
            holds.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 1e-6),
            "{subject}"
        );
        let tracks = events.iter().filter(|event| event["name"] == "thread_name").count();
        assert_eq!(tracks, asking, "{subject}");
    }
    let nowhere = ["sim", "locks", "--subject", "mcs", "--threads", "2", "--trace", "/no/where"];
    assert!(stderr(&output(&nowhere)).contains("/no/where"));
    let absent = [&command[..], &["--subject", "rcl", "--case", "nested"]].concat();
    assert!(refused(&absent).contains("rcl is not in nested: "));
}

/// Two processes, whose memory is at different addresses, with a host thread for each CPU.
#[test]
fn the_same_command_prints_the_same() {
    let command = ["sim", "rwlocks", "--machine", "xeon-2s", "--case", "all", "--ms", "0.05"];
    let command = [&command[..], &["--threads", "1,30", "--seed", "3"]].concat();
    let (one, other) = (output(&command), output(&command));
    assert!(one.status.success(), "{}", stderr(&one));
    assert_eq!(one.stdout, other.stdout);
    assert!(!String::from_utf8_lossy(&one.stdout).contains("stuck"));
    assert!(stderr(&one).contains("simulated memory operations in"), "{}", stderr(&one));
    let command = [&command[..], &["--json"]].concat();
    let (one, other) = (json(&command), json(&command));
    assert_eq!((&one["rows"], &one["sim"]), (&other["rows"], &other["sim"]));
    assert!(rows(&one).iter().all(|row| row["trace"].is_string()));
}

#[test]
fn a_table_says_that_it_is_no_measurement() {
    let command = ["sim", "locks", "--machine", "pe-laptop", "--ms", "0.05", "--subject", "mcs"];
    let output = output(&command);
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["a model, not a measurement", "pe-laptop", "0.05 ms", "create:", "mcs", "Jain"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn bad_arguments_are_one_line_that_says_what_would_be_right() {
    assert!(refused(&["--machine", "8s"]).contains("there are 8s-192c"));
    assert!(refused(&["--subject", "fast"]).contains("shfl-mutex"));
    assert!(refused(&["--subject", "shfl-rwlock"]).contains("no lock 'shfl-rwlock'"));
    assert!(refused(&["--case", "enumerate"]).contains("create, lock1"));
    assert!(refused(&["--case", ","]).contains("create, lock1"));
    assert!(refused(&["--threads", "0"]).contains("from 1 to"));
    assert!(refused(&["--ms", "-1"]).contains("such as 5"));
    assert!(refused(&["--arbitration", "lifo"]).contains("possible values: fifo, near"));
    assert!(refused(&["--pages", "far"]).contains("near, first-touch, interleaved or a node"));
    assert!(refused(&["--pages", "8"]).contains("8s-192c has 8 nodes, from 0"));
}

/// The location of memory makes a difference, and the same one in each process.
#[test]
fn pages_have_homes_that_do_not_depend_on_the_host() {
    let of = |pages: &str| {
        let command = ["sim", "locks", "--ms", "0.05", "--threads", "96", "--case", "lock2"];
        let report =
            json(&[&command[..], &["--subject", "mcs", "--json", "--pages", pages]].concat());
        assert_eq!(
            (&report["simulated"]["pages"], &rows(&report)[0]["pages"]),
            (&pages.into(), &pages.into())
        );
        rows(&report)[0].clone()
    };
    assert_eq!(of("first-touch"), of("first-touch"));
    let traces =
        ["near", "first-touch", "interleaved", "0"].map(|pages| of(pages)["trace"].clone());
    let alone = |trace: &Value| traces.iter().filter(|&other| other == trace).count() == 1;
    assert!(traces.iter().all(alone), "{traces:?}");
}

/// A lock that runs sections takes part in cases that only have sections, and its row says why it
/// does not support the others.
#[test]
fn a_lock_that_sections_are_handed_to_says_where_it_is_not() {
    let command = ["sim", "locks", "--machine", "xeon-2s", "--ms", "0.05", "--threads", "1,4"];
    let command = [&command[..], &["--case", "lock2,mail,nested"]].concat();
    let command = [&command[..], &["--subject", "mcs,dsm-synch,rcl"]].concat();
    let report = json(&[&command[..], &["--json"]].concat());
    let mut not_here = Vec::new();
    for row in rows(&report) {
        let (subject, case, threads) = (&row["subject"], &row["case"], &row["threads"]);
        match row["not_here"].as_str() {
            Some(why) => {
                assert!(row.get("ops_per_s").is_none() && !why.is_empty(), "{row}");
                not_here.push(format!("{subject} {case} {threads}").replace('"', ""));
            }
            None => {
                // One server for each of the locks.
                assert_eq!(row["servers"], 2 * u64::from(subject == "rcl"), "{row}");
                assert!(row["ops_per_s"].as_f64().is_some_and(|figure| figure > 0.0), "{row}");
            }
        }
    }
    let wanted = [
        "rcl lock2 1",
        "dsm-synch nested 1",
        "dsm-synch nested 4",
        "rcl nested 1",
        "rcl nested 4",
        "rcl mail 1",
        "rcl mail 4",
    ];
    assert_eq!((rows(&report).len(), &not_here[..]), (18, &wanted.map(String::from)[..]));

    let said = output(&command);
    assert!(said.status.success(), "{}", stderr(&said));
    let text = String::from_utf8_lossy(&said.stdout);
    for word in ["rcl  ", "not here", "each with a CPU of its own", "it needs a thread for each"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}

#[test]
fn a_search_marks_who_is_not_beaten() {
    let command = ["sim", "locks", "--machine", "xeon-2s", "--case", "lock2", "--ms", "0.1"];
    let command = [&command[..], &["--threads", "28", "--search", "--json"]].concat();
    let report = json(&command);
    let front = rows(&report).iter().filter(|row| row["front"] == true).count();
    assert!((1..rows(&report).len()).contains(&front), "{front}");
    let most = |row: &&Value| row["ops_per_s"].as_f64().map_or(0, |ops| ops as u64);
    let best = rows(&report).iter().max_by_key(most).expect("rows");
    assert_eq!(best["front"], true, "{best}");
    assert!(refused(&["--search", "--subject", "mcs"]).contains("cannot be used with"));
}

#[test]
fn a_timeline_is_of_the_whole_machine_and_by_year() {
    let command = ["sim", "locks", "--machine", "xeon-2s", "--ms", "0.05", "--timeline"];
    let report = json(&[&command[..], &["--json"]].concat());
    for row in rows(&report) {
        assert_eq!(row["threads"], 28, "{row}");
        assert!(row["year"].as_u64().is_some_and(|year| (1962..2020).contains(&year)), "{row}");
        assert!(row["year_source"].is_string(), "{row}");
    }
    let folder = Folder::new("timeline");
    let page = folder.path("years.html");
    let said = output(&[&command[..], &["--html", &page]].concat());
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let at = |lock: &str| said.lines().position(|line| line.contains(lock)).expect("a line");
    assert!(at("Dekker") < at(" tas ") && at(" tas ") < at(" mcs ") && at(" mcs ") < at(" cna "));
    let page = std::fs::read_to_string(&page).expect("a page");
    assert_eq!(page.matches("<rect class=bar").count(), rows(&report).len());
    assert!(refused(&["--timeline", "--threads", "4"]).contains("--timeline"));
}

#[test]
fn memory_is_of_four_locks_and_drawn() {
    let folder = Folder::new("memory");
    let page = folder.path("memory.html");
    let command = ["sim", "memory", "--machine", "xeon-2s", "--inodes", "1000", "--html", &page];
    let report = json(&[&command[..], &["--json"]].concat());
    let locks: Vec<_> = rows(&report).iter().map(|row| row["lock"].clone()).collect();
    assert_eq!(locks, ["cohort-tkt-mcs", "cst-mutex", "linux-mutex", "shfl-mutex"]);
    for row in rows(&report) {
        has_keys(row, &["model", "lock_bytes", "structures_per_lock", "bytes", "share"]);
        // One more lock belongs to the directory.
        let least = row["lock_bytes"].as_f64().map(|bytes| bytes * 1001.0);
        assert!(row["bytes"].as_f64() >= least, "{row}");
    }
    let page = std::fs::read_to_string(&page).expect("a page");
    assert_eq!(page.matches("<rect class=bar").count(), 4);
    for (option, wrong) in [("--inodes", "0"), ("--visits", "65")] {
        let said = stderr(&output(&["sim", "memory", option, wrong]));
        assert!(said.contains(option) && said.lines().count() == 1, "{said}");
    }
}
