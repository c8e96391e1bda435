//! `replay`: simulates a recorded program.

use crate::common::{FRAME, Folder, has_keys, json, output, stderr};
use antiphon_trace::{About, Event, Lock, LockKind, Site, Tables, Thread, What, Writer};
use serde_json::Value;

/// Records `pipeline.c`, and returns the path of the trace.
fn recorded(folder: &Folder) -> String {
    let program = folder.compile("pipeline.c", &[]);
    let trace = folder.path("out.trace");
    let ran = output(&["record", "--lock", "glibc", "--out", &trace, "--", &program]);
    assert_eq!(ran.status.code(), Some(3), "{}", stderr(&ran));
    trace
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).expect("a file")
}

#[test]
fn a_recorded_program_has_rows_a_recommendation_a_page_and_a_timeline() {
    let folder = Folder::new("replay");
    let trace = recorded(&folder);
    let (page, timeline) = (folder.path("page.html"), folder.path("timeline.json"));
    let arguments = ["replay", &trace, "--machine", "xeon-2s", "--takes", "3000"];
    let files = ["--threads", "3,6", "--html", &page, "--export", &timeline, "--json"];
    let report = json(&[&arguments[..], &files].concat());
    has_keys(&report, &FRAME);
    let rows = report["rows"].as_array().expect("rows");
    let of: Vec<_> = rows.iter().map(|row| (row["lock"].as_str(), &row["threads"])).collect();
    assert_eq!(of.len(), 8);
    for lock in ["futex", "shfl-mutex", "shfl-mutex+light", "ideal"] {
        for threads in [3, 6] {
            assert!(of.contains(&(Some(lock), &threads.into())), "{lock}, {threads}: {of:?}");
        }
    }
    for row in rows {
        assert_eq!(row["model"], true);
        assert!(row["ops_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
        let share = row["wait_share"].as_f64().expect("a share");
        assert!((0.0..=1.0).contains(&share), "{row}");
        if row["lock"] == "futex" {
            assert_eq!(row["speedup"], 1.0);
        }
    }
    let verdict = report["verdict"].as_array().expect("findings");
    let rules: Vec<_> = verdict.iter().filter_map(|finding| finding["rule"].as_str()).collect();
    assert_eq!(rules, ["limit", "lock"]);
    assert!(verdict[0]["says"].as_str().is_some_and(|said| {
        said.starts_with("On xeon-2s (simulated: 2 nodes, ") && said.contains("6 threads")
    }));
    has_keys(&report["recommend"], &["lock", "verdict", "confidence", "why"]);
    assert_eq!(report["recorded"]["acquisitions"].as_u64().map(|takes| takes > 1000), Some(true));

    let page = read(&page);
    for part in ["<svg", "class=\"curve dashed\"", "Recommended: ", "shfl-mutex+light"] {
        assert!(page.contains(part), "{part}");
    }
    let slices: Value = serde_json::from_str(&read(&timeline)).expect("JSON");
    let slices = slices["traceEvents"].as_array().expect("events");
    let holds = |called: &str| {
        let is_group = |event: &&Value| {
            let name = event["args"]["name"].as_str();
            event["name"] == "process_name" && name.is_some_and(|name| name.starts_with(called))
        };
        let groups: Vec<_> = slices.iter().filter(is_group).map(|event| &event["pid"]).collect();
        let is_hold = |event: &&Value| event["cat"] == "hold" && groups.contains(&&event["pid"]);
        slices.iter().filter(is_hold).count()
    };
    // The replayed events, as recorded and as simulated.
    for called in ["recorded", "simulated: "] {
        assert!(holds(called) >= 2_900, "{called}: {}", holds(called));
    }

    let again = json(&[&arguments[..], &["--threads", "3,6", "--json"]].concat());
    assert_eq!((&again["rows"], &again["sites"]), (&report["rows"], &report["sites"]));
    let text = output(&[&arguments[..], &["--threads", "3"]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("Recommended: ") && text.contains("Note: "), "{text}");
}

#[test]
fn what_is_no_trace_and_what_is_not_there_is_one_line() {
    let folder = Folder::new("replay-wrong");
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.path(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let newer = [&b"ANTIPHON"[..], &9u32.to_le_bytes()].concat();
    let older = [&b"ANTIPHON"[..], &1u32.to_le_bytes()].concat();
    let damaged = [&b"ANTIPHON"[..], &2u32.to_le_bytes(), b"A\x01\0\0\0\0\0\0\0{"].concat();
    let wrong = [
        (put("text", b"not one"), "xeon-2s", "not a trace: `antiphon record -- CMD` writes one"),
        (put("newer", &newer), "xeon-2s", "a trace of version 9"),
        (put("older", &older), "xeon-2s", "a trace of version 1, but this program reads version 2"),
        (put("damaged", &damaged), "xeon-2s", "damaged: its checksum is wrong"),
        (folder.path("nothing"), "xeon-2s", "No such file"),
        ("/dev/zero".to_owned(), "xeon-2s", "not a trace"),
        (put("text", b"not one"), "xeon-3s", "no machine \"xeon-3s\": there are 8s-192c"),
    ];
    for (path, machine, says) in wrong {
        let ran = output(&["replay", &path, "--machine", machine]);
        let said = stderr(&ran);
        assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(says), "{said}");
    }
    let path = put("text", b"not one");
    for (arguments, says) in [
        (["--lock", "fast"], "no lock \"fast\": there are shfl-mutex"),
        (["--lock", "dsm-synch"], "dsm-synch can't be replayed"),
        (["--threads", "0"], "number from 1"),
        (["--takes", "0"], "number from 1"),
        (["--data-lines", "65"], "up to 64"),
    ] {
        let ran = output(&[&["replay", &path, "--machine", "xeon-2s"], &arguments[..]].concat());
        let said = stderr(&ran);
        assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(says), "{said}");
    }
}

/// Names in a trace may come from anywhere, and a terminal interprets control characters.
#[test]
fn what_a_trace_calls_its_sites_is_text() {
    const NAME: &str = "f\x1b]0;title\x07\u{9b}2J<b>\n\u{202e}";
    let folder = Folder::new("replay-names");
    let path = folder.path("names.trace");
    let file = std::fs::File::create(&path).expect("a file");
    let about = About { command: vec![NAME.into()], ..About::default() };
    let mut writer = Writer::new(file, &about).expect("a trace");
    for thread in 0..2 {
        // Each thread waits for the lock that the other holds.
        let rounds = (0..1_000).flat_map(|round| {
            let take = What::Takes { lock: 0, site: 0, shared: false, tried: false };
            let at_ns = round * 2_000;
            [(at_ns, take), (at_ns + 1_500, What::Releases { lock: 0 })]
        });
        let events: Vec<_> = rounds.map(|(at_ns, what)| Event { at_ns, what }).collect();
        writer.events(thread, &events).expect("events");
    }
    let tables = Tables {
        locks: vec![Lock { kind: LockKind::Mutex, address: 0, process: 0 }],
        sites: vec![Site { name: NAME.into(), ..Site::default() }],
        threads: vec![Thread::default(); 2],
        ..Tables::default()
    };
    writer.finish(&tables).expect("a trace");
    let page = folder.path("page.html");
    let arguments = ["replay", &path, "--machine", "xeon-2s", "--threads", "2", "--html", &page];
    let said = output(&arguments);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{}", stderr(&said));
    assert!(!text.replace('\n', "").contains(|letter: char| letter.is_control()), "{text:?}");
    assert!(!text.contains('\u{202e}'), "{text:?}");
    // The name appears three times: as the command, in the verdict, and as the site.
    let seen = r"f\u{1b}]0;title\u{7}\u{9b}2J<b>\n\u{202e}";
    assert_eq!(text.matches(seen).count(), 3, "{text}");
    assert!(text.contains("the cost of recording is not in the trace"), "{text}");
    assert!(text.contains("with 2 threads, 2.00 k acquisitions"), "{text}");
    assert!(!read(&page).contains("<b>"));
    for option in ["--html", "--export"] {
        let refused = output(&[&arguments[..6], &[option, "/no/such/folder/F"]].concat());
        let (said, code) = (stderr(&refused), refused.status.code());
        assert!(code == Some(2) && said.contains(option) && refused.stdout.is_empty(), "{said}");
    }

    // The trace has acquisitions, but the release of the one in its middle is outside of the
    // middle.
    let few = output(&["replay", &path, "--machine", "xeon-2s", "--takes", "1"]);
    let said = stderr(&few);
    assert_eq!((few.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(
        said.starts_with("antiphon: --takes 1: ") && said.contains("a larger number"),
        "{said}"
    );
    assert!(!said.contains(&path), "{said}");
}

#[test]
fn one_is_not_several() {
    let folder = Folder::new("replay-one");
    let path = folder.path("one.trace");
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer = Writer::new(file, &About::default()).expect("a trace");
    let take = What::Takes { lock: 0, site: 0, shared: false, tried: false };
    let events = [(0, take), (100, What::Releases { lock: 0 }), (200, take)];
    writer.events(0, &events.map(|(at_ns, what)| Event { at_ns, what })).expect("events");
    let tables = Tables {
        locks: vec![Lock { kind: LockKind::Mutex, address: 0, process: 0 }],
        sites: vec![Site::default()],
        threads: vec![Thread::default()],
        dropped: 1,
        ..Tables::default()
    };
    writer.finish(&tables).expect("a trace");
    let said = output(&["replay", &path, "--machine", "xeon-2s"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    for words in [
        "with 1 thread, 1 acquisition;",
        "1 event found no room",
        "left out: 1 acquisition never given back, 0 releases of what was not taken",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// Two workers, one after the other: a short part of the middle contains only one of them.
#[test]
fn a_part_that_is_too_short_for_more_threads_is_the_arguments_fault() {
    let folder = Folder::new("replay-short");
    let path = folder.path("short.trace");
    let file = std::fs::File::create(&path).expect("a file");
    let mut writer = Writer::new(file, &About::default()).expect("a trace");
    for (thread, rounds) in [(0, 0..100), (1, 100..110)] {
        let take = What::Takes { lock: 0, site: 0, shared: false, tried: false };
        let both =
            |round: u64| [(round * 100, take), (round * 100 + 50, What::Releases { lock: 0 })];
        let events: Vec<_> =
            rounds.flat_map(both).map(|(at_ns, what)| Event { at_ns, what }).collect();
        writer.events(thread, &events).expect("events");
    }
    let tables = Tables {
        locks: vec![Lock { kind: LockKind::Mutex, address: 0, process: 0 }],
        sites: vec![Site::default()],
        threads: vec![Thread { role: 1, ..Thread::default() }; 2],
        ..Tables::default()
    };
    writer.finish(&tables).expect("a trace");
    let replay = ["replay", &path, "--machine", "xeon-2s", "--threads", "2"];
    let short = output(&[&replay[..], &["--takes", "10"]].concat());
    let said = stderr(&short);
    assert_eq!(short.status.code(), Some(2), "{said}");
    assert!(said.starts_with("antiphon: --takes 10: no two threads in that part"), "{said}");
    assert!(output(&replay).status.success());
}

/// `indexer.c` finds all words, is recorded, and replayed with locks of each kind.
#[test]
fn a_text_indexer_is_replayed_with_locks_that_know_sockets() {
    let folder = Folder::new("indexer");
    let program = folder.compile("indexer.c", &["-Wall", "-Werror"]);
    let files: Vec<_> = (0..60).map(|number| folder.path(&format!("{number}.txt"))).collect();
    for (number, file) in files.iter().enumerate() {
        let own: String =
            (0..40).map(|word| format!("word{} Shared, ", number * 7 + word)).collect();
        std::fs::write(file, own).expect("a file");
    }
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let found = std::process::Command::new(&program)
        .args(["3", "-w", "word70"])
        .args(&names)
        .output()
        .expect("the program");
    // File n has the words from 7 n to 7 n + 39.
    let said = String::from_utf8_lossy(&found.stdout).into_owned();
    let mut said: Vec<_> = said.lines().collect();
    said.sort_unstable();
    let mut wanted: Vec<_> = (5..=10).map(|number| format!("1 {}", files[number])).collect();
    wanted.sort_unstable();
    assert_eq!(said, wanted);

    let trace = folder.path("indexer.trace");
    let ran = ["record", "--lock", "glibc", "--out", &trace, "--", &program, "3"];
    let ran = output(&[&ran[..], &names].concat());
    assert!(ran.status.success(), "{}", stderr(&ran));
    // 41 words of each file, and a turn at the list for each file and one more for each thread.
    let replay = ["replay", &trace, "--machine", "xeon-2s", "--threads", "4,29", "--json"];
    let report = json(&[&replay[..], &["--lock", "cst-mutex,linux-mutex,qspinlock"]].concat());
    let takes = report["recorded"]["acquisitions"].as_u64().expect("a count");
    assert!(takes >= 60 * 41 + 63, "{takes}");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 10);
    for row in rows {
        assert!(row["speedup"].as_f64().is_some_and(|speedup| speedup > 0.0), "{row}");
    }
    let locks = report["locks"].as_array().expect("locks");
    let linux = locks.iter().find(|lock| lock["mutex"] == "linux-mutex").expect("a row");
    assert_eq!((&linux["spin"], &linux["rwlock"]), (&"qspinlock".into(), &"linux-rwsem".into()));
}
