//! `sim locks --shard` and `--merge`: parts give the whole, or nothing is printed.

use crate::common::{Folder, json, output, stderr};
use serde_json::{Value, json};

const COMMAND: [&str; 9] =
    ["sim", "locks", "--machine", "e7-8895v3-4s", "--ms", "0.02", "--threads", "4,1", "--json"];

/// Returns the file `name` with the output of a command for one part of these rows.
fn part(folder: &Folder, command: &[&str], name: &str, shard: &str, more: &[&str]) -> String {
    let file = folder.path(name);
    let output = output(&[command, &["--shard", shard], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::write(&file, output.stdout).expect("a file");
    file
}

fn merge(verb: &str, files: &[&str]) -> Result<Value, String> {
    let output = output(&[&["sim", verb, "--json", "--merge"], files].concat());
    match output.status.code() {
        Some(0) => Ok(serde_json::from_slice(&output.stdout).expect("stdout is one JSON object")),
        code => {
            let said = stderr(&output);
            assert_eq!(
                (code, said.lines().count(), output.stdout.len()),
                (Some(2), 1, 0),
                "{said}"
            );
            Err(said)
        }
    }
}

/// Returns why the files are not merged.
fn refused(files: &[&str]) -> String {
    merge("locks", files).expect_err("they should not be")
}

#[test]
fn parts_are_put_together_to_the_whole() {
    let folder = Folder::new("sim-merge");
    let command = &[&COMMAND[..], &["--case", "lock2,nested", "--subject", "mcs,rcl,tas"]].concat();
    let part = |name, shard| part(&folder, command, name, shard, &[]);
    let (one, two, three) = (part("1", "1/3"), part("2", "2/3"), part("3", "3/3"));
    let page = folder.path("curves.html");
    let files = ["sim", "locks", "--html", &page, "--json", "--merge", &three, &one, &two];
    let (merged, whole) = (json(&files), json(command));
    for key in ["simulated", "rows", "sim", "published"] {
        assert_eq!(merged[key], whole[key], "{key}");
    }
    // Published measurements for this case are not rows of a model.
    let published = whole["published"].as_array().expect("a list");
    assert_eq!(published.len(), 20);
    assert!(published.iter().all(|row| row.get("model").is_none()));
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("a model, not a measurement") && page.contains("cna, measured"));
    // A whole report is its own only part.
    let file = folder.path("whole");
    std::fs::write(&file, merged.to_string()).expect("a file");
    assert_eq!(merge("locks", &[&file]).expect("a whole")["rows"], whole["rows"]);
}

#[test]
fn a_search_is_marked_when_all_of_it_is_there() {
    let folder = Folder::new("sim-merge-search");
    let command = &[&COMMAND[..], &["--search", "--case", "lock2"]].concat();
    let part = |name, shard| part(&folder, command, name, shard, &[]);
    let (one, two) = (part("1", "1/2"), part("2", "2/2"));
    let text = std::fs::read_to_string(&one).expect("a part");
    assert!(!text.contains("\"front\""), "of a part nobody knows it");
    assert_eq!(merge("locks", &[&one, &two]).expect("a whole")["rows"], json(command)["rows"]);
}

#[test]
fn parts_that_are_not_each_there_once_are_refused_by_name() {
    let folder = Folder::new("sim-merge-parts");
    let command = &[&COMMAND[..], &["--subject", "mcs"]].concat();
    let part = |name, shard, more: &[&str]| part(&folder, command, name, shard, more);
    let (one, two) = (part("one", "1/3", &[]), part("two", "2/3", &[]));
    let said = refused(&[&two]);
    for word in ["missing: 1/3, 3/3", "--shard", "arguments of ", "--machine e7-8895v3-4s"] {
        assert!(said.contains(word), "no {word:?}: {said}");
    }
    let said = refused(&[&one, &two, &one]);
    assert!(said.contains("part 1/3, and so is ") && said.contains("each part once"), "{said}");
    let said = refused(&[&one, &part("half", "1/2", &[])]);
    assert!(said.contains("half: part 1/2, and "), "{said}");
    let three = part("three", "3/3", &["--seed", "2"]);
    let said = refused(&[&one, &two, &three]);
    assert!(said.contains("three: seed is 2, not 1 as in "), "{said}");
    let three = part("three", "3/3", &["--case", "lock1"]);
    let said = refused(&[&one, &two, &three]);
    assert!(said.contains(r#"three: cases is ["lock1"], not ["create"] as in "#), "{said}");
    let said = merge("rwlocks", &[&one, &two]).expect_err("they are of locks");
    assert!(said.contains("it is of sim locks: merge it by antiphon sim locks --merge"), "{said}");
    assert!(stderr(&output(&[&COMMAND[..], &["--shard", "3/2"]].concat())).contains("1/4 to 4/4"));
    assert!(stderr(&output(&["sim", "locks", "--search", "--merge", &one, &two])).contains("3/3"));
    assert!(refused(&["/dev/zero"]).contains("more than 65536 KiB"));
}

/// Each entry is a value in a file, and the message that refuses it.
#[test]
fn what_no_simulation_prints_is_refused_by_file_and_row() {
    let folder = Folder::new("sim-merge-rows");
    let command = [&COMMAND[..], &["--subject", "mcs"]].concat();
    let whole = json(&command);
    let file = folder.path("edited");
    let edited = |pointer: &str, value: Value| {
        let mut report = whole.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        report.pointer_mut(parent).expect("it is there")[key] = value;
        std::fs::write(&file, report.to_string()).expect("a file");
        merge("locks", &[&file])
    };
    assert!(edited("/sim/ops", json!(1)).is_ok());
    for (pointer, value, why) in [
        ("/schema", json!(7), "schema 7"),
        ("/antiphon", json!("0.0.0"), "make all parts by one version"),
        ("/simulated", json!({}), "missing field"),
        ("/simulated/verb", json!("tasks"), "it is of sim tasks"),
        ("/simulated/threads", json!([1]), "2 rows, but part 1/1 has 1"),
        ("/simulated/cases", json!(["none"]), "no case \"none\""),
        ("/simulated/more", json!(1), "unknown field `more`"),
        ("/shard", json!("2/1"), "is not a part of a whole"),
        ("/sim/ops", json!(-1), "expected u64"),
        ("/rows/1/ops_per_s", json!(-1e308), "row 2: ops_per_s: -1e308 is not from 0"),
        ("/rows/1/ops_per_s", json!("many"), "row 2: invalid type: string"),
        ("/rows/1/ops_per_s_of_seeds/most", json!(0.0), "row 2: ops_per_s_of_seeds: most"),
        ("/rows/1/ops_per_s_of_seeds/seeds", json!(2), "row 2: ops_per_s_of_seeds: seeds"),
        ("/rows/0/jain", json!(1.5), "row 1: jain: 1.5 is not from 0 to 1"),
        ("/rows/0/wakes", json!(-1), "row 1: invalid value: integer `-1`"),
        ("/rows/0/trace", json!("\u{1b}[2J"), "row 1: trace"),
        ("/rows/0/seed", json!(2), "row 1: seed 2"),
        ("/rows/0/threads", json!(2), "row 1: not of mcs, create, threads: 4"),
        ("/rows/0/model", json!(false), "row 1: not of mcs"),
        ("/rows/0/subject", json!("shfl-rwlock"), "row 1: not of mcs"),
        ("/rows/0/year", json!(1964), "row 1: \"year\""),
        ("/rows/0/failed", json!("stuck"), "row 1: "),
    ] {
        let said = edited(pointer, value).expect_err(pointer);
        assert!(said.contains("edited: ") && said.contains(why), "{pointer}, {why}: {said}");
    }
    // A sum that overflows.
    let halves = [("1/2", 0), ("2/2", 1)].map(|(shard, row)| {
        let mut report = whole.clone();
        report["shard"] = json!(shard);
        report["sim"]["ops"] = json!(u64::MAX);
        report["rows"] = json!([whole["rows"][row]]);
        let file = folder.path(&shard.replace('/', "-"));
        std::fs::write(&file, report.to_string()).expect("a file");
        file
    });
    assert!(refused(&[&halves[0], &halves[1]]).contains("sim.ops: more than can be counted"));
    for text in ["", "{}", "[", "<html>"] {
        std::fs::write(&file, text).expect("a file");
        assert!(refused(&[&file]).contains("not what antiphon sim locks --json prints"));
    }
    assert!(refused(&["/no/such/file"]).contains("/no/such/file: No such file"));
}
