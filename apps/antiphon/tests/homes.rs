//! Locks in a report are named by where they live: a variable, the call that initialised them, or
//! where they were taken first.

mod common;

use common::{Folder, output, stderr};
use serde_json::Value;

/// The report of a profile with locks of ours, or of the C library, and its text.
fn report(name: &str, compiler: &str, lock: &str) -> (Value, String) {
    let folder = Folder::new(&format!("homes-{name}-{lock}"));
    let program = folder.compile_as("program", compiler, name, &["-O1", "-g", "-pthread"]);
    let file = folder.path("report.json");
    let output = output(&["run", "--profile", "--lock", lock, "--report", &file, "--", &program]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read(&file).expect("a report");
    (serde_json::from_slice(&text).expect("JSON"), stderr(&output))
}

/// Name, kind, number of locks and acquisitions of each class.
fn classes(report: &Value) -> Vec<(String, String, u64, u64)> {
    let classes = report["classes"].as_array().expect("classes");
    let text = |class: &Value, key: &str| class[key].as_str().expect("a text").to_owned();
    let count = |class: &Value, key: &str| class[key].as_u64().expect("a count");
    let class = |class: &Value| {
        let counts = ["locks", "acquisitions"].map(|key| count(class, key));
        (text(class, "name"), text(class, "kind"), counts[0], counts[1])
    };
    let mut all: Vec<_> = classes.iter().map(class).collect();
    all.sort();
    all
}

/// The line of a source that ends with this remark.
fn line_of(source: &str, remark: &str) -> usize {
    let remark = format!("// {remark}");
    source.lines().position(|line| line.ends_with(&remark)).expect("a line") + 1
}

#[test]
fn locks_of_one_initialisation_are_one_class() {
    let source = include_str!("programs/homes.c");
    let at = |how: &str, function: &str| {
        format!("{how} at {function} homes.c:{}", line_of(source, function))
    };
    for lock in ["shfl-mutex", "glibc"] {
        let (report, text) = report("homes.c", "cc", lock);
        let class = |name: String, kind: &str, locks, acquisitions| {
            (name, kind.to_owned(), locks, acquisitions)
        };
        let mut want = vec![
            // The first table's lock has been replaced by one that no call has initialised.
            class(at("initialised", "new_table"), "mutex", 2, 3),
            class(at("initialised", "init_queue"), "recursive", 1, 1),
            class(at("initialised", "main"), "rwlock", 1, 2),
            class("locks".to_owned(), "mutex", 2, 2),
            class(at("first taken", "use"), "mutex", 1, 2),
        ];
        want.sort();
        assert_eq!(classes(&report), want, "{lock}: {:#}", report["classes"]);
        assert!(text.contains(&at("initialised", "new_table")), "{text}");
        let rows = report["locks"].as_array().expect("rows");
        let homes: Vec<_> = rows.iter().filter_map(|row| row["home"]["is"].as_str()).collect();
        assert_eq!(homes.len(), rows.len());
        let queue = rows.iter().find(|row| row["kind"] == "recursive").expect("the queue");
        assert_eq!(queue["home"]["at"]["function"], "init_queue", "{queue:#}");
        let element = rows.iter().find(|row| row["variable"] == "locks+0x28");
        assert_eq!(element.map(|row| &row["home"]["is"]), Some(&Value::from("variable")));
    }
}

#[test]
fn a_lock_without_an_initialisation_is_named_by_its_first_acquisition() {
    let source = include_str!("programs/homes.cpp");
    let (report, _) = report("homes.cpp", "c++", "shfl-mutex");
    let name = format!("first taken at Log::add homes.cpp:{}", line_of(source, "Log::add"));
    let want = vec![(name, "mutex".to_owned(), 3, 6)];
    assert_eq!(classes(&report), want, "{:#}", report["classes"]);
}
