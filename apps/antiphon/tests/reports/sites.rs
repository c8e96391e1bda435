//! `--sites`: chooses policies by call site.

use crate::common::{Folder, output, stderr, unbroken};
use serde_json::Value;

/// The program's output without a file of sites.
const PLAIN: &str = "made 0 waited 0 other 0\n";

fn sites(folder: &Folder, text: &str) -> String {
    let path = folder.path("sites.toml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// The outputs of the program and of the command.
fn run(folder: &Folder, text: &str, program: &str) -> (String, String) {
    let path = sites(folder, text);
    let output = output(&["run", "--sites", &path, "--", program]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), said)
}

/// The names in a report of the calls that waited.
fn reported(folder: &Folder, program: &str) -> Vec<String> {
    let file = folder.path("report.json");
    let output = output(&["run", "--report", &file, "--", program]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), PLAIN);
    let text = std::fs::read(&file).expect("a report");
    let report: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(report["sites_unmatched"], Value::Null);
    let locks = report["locks"].as_array().expect("a list").iter();
    let mut sites: Vec<_> =
        locks.map(|lock| lock["site"].as_str().expect("a name").to_owned()).collect();
    sites.sort();
    sites
}

#[test]
fn a_lock_has_the_policy_of_the_function_where_it_is_waited_for_or_made() {
    let folder = Folder::new("sites-function");
    let program = folder.compile("sites.c", &[]);
    let site = |function: &str, policy: &str| {
        format!("[[site]]\nfunction = \"{function}\"\npolicy = \"{policy}\"\n")
    };
    let (printed, said) = run(&folder, &site("wait_here", "none"), &program);
    assert_eq!(printed, "made 0 waited 1 other 0\n");
    assert!(!said.contains("No thread waited"), "{said}");
    let both = site("wait_here", "numa") + &site("make", "none");
    assert_eq!(run(&folder, &both, &program).0, "made 1 waited 0 other 0\n");
    // The first entry that matches applies.
    let twice = site("wait_here", "none") + &site("wait_here", "numa");
    let (printed, said) = run(&folder, &twice, &program);
    assert_eq!(printed, "made 0 waited 1 other 0\n");
    assert!(
        said.contains("No thread waited") && said.contains("sites.toml:4: wait_here."),
        "{said}"
    );
}

#[test]
fn a_readers_writer_lock_has_the_policy_of_the_place_where_it_is_read_written_or_made() {
    let folder = Folder::new("sites-rw");
    let program = folder.compile("sites_rw.c", &["-D_GNU_SOURCE"]);
    let cases = [
        ("make", "made 1 read 0 written 0\n"),
        ("read_here", "made 0 read 1 written 0\n"),
        ("write_here", "made 0 read 0 written 1\n"),
    ];
    for (function, expected) in cases {
        let text = format!("[[site]]\nfunction = \"{function}\"\npolicy = \"none\"\n");
        let (printed, said) = run(&folder, &text, &program);
        assert_eq!(printed, expected);
        assert!(!said.contains("No thread waited"), "{said}");
    }
}

#[test]
fn a_site_is_named_as_the_report_names_it() {
    let folder = Folder::new("sites-named");
    let program = folder.compile("sites.c", &[]);
    let names = reported(&folder, &program);
    assert!(names.len() == 2 && names[0].starts_with("wait_elsewhere+0x"), "{names:?}");
    let site = |name: &str| format!("[[site]]\nat = \"{name}\"\npolicy = \"none\"\n");
    assert_eq!(run(&folder, &site(&names[0]), &program).0, "made 0 waited 0 other 1\n");
    assert_eq!(run(&folder, &site(&names[1]), &program).0, "made 0 waited 1 other 0\n");

    // Without names: `program+0x1234`, whose parts may also be given separately.
    let bare = folder.compile_as("bare", "cc", "sites.c", &["-O1", "-s", "-pthread"]);
    let names = reported(&folder, &bare);
    let found = names.iter().any(|name| {
        let (module, offset) = name.split_once('+').expect("an offset");
        assert_eq!(module, "bare");
        let apart =
            format!("[[site]]\nmodule = \"{bare}\"\noffset = {offset}\npolicy = \"none\"\n");
        let (whole, _) = run(&folder, &site(name), &bare);
        assert_eq!(whole, run(&folder, &apart, &bare).0);
        whole == "made 0 waited 1 other 0\n"
    });
    assert!(found, "{names:?}");
}

#[test]
fn a_program_that_was_started_by_a_link_has_both_names() {
    let folder = Folder::new("sites-link");
    let program = folder.compile("sites.c", &[]);
    let link = folder.path("link");
    std::os::unix::fs::symlink(&program, &link).expect("a link");
    for name in ["link", "program"] {
        let which = format!("function = \"wait_here\"\nmodule = \"{name}\"");
        let text = format!("[[site]]\n{which}\npolicy = \"none\"\n");
        assert_eq!(run(&folder, &text, &link).0, "made 0 waited 1 other 0\n", "{name}");
    }
}

#[test]
fn a_function_elsewhere_and_one_that_is_never_called_are_told() {
    let folder = Folder::new("sites-unmatched");
    let program = folder.compile("sites.c", &[]);
    let text = "[[site]]\nfunction = \"wait_here\"\nmodule = \"program\"\npolicy = \"none\"\n\
                [[site]]\nfunction = \"main\"\nmodule = \"program\"\npolicy = \"none\"\n";
    let file = folder.path("report.json");
    let path = sites(&folder, text);
    let output = output(&["run", "--report", &file, "--sites", &path, "--", &program]);
    let said = stderr(&output);
    let text = unbroken(&said);
    let note = text.find("No thread waited").map(|at| &text[at..]);
    assert!(note.is_some_and(|note| note.contains("sites.toml:5: main (program)")), "{said}");
    let text = std::fs::read(&file).expect("a report");
    let report: Value = serde_json::from_slice(&text).expect("JSON");
    let unmatched = report["sites_unmatched"].as_array().expect("a list");
    assert_eq!(unmatched.len(), 1, "{report:#}");
}

#[test]
fn a_bad_file_is_told_in_a_line_with_its_place() {
    let folder = Folder::new("sites-bad");
    let cases = [
        ("[[site]]\nfunction = \"main\"\npolicy = \"fast\"\n", ":3: ", "numa, none"),
        (
            "[[site]]\nfunction = \"no_such\"\npolicy = \"none\"\n",
            ":1: ",
            "no function \"no_such\"",
        ),
        ("[[site]\n", ":1: ", ""),
    ];
    for (text, place, words) in cases {
        let path = sites(&folder, text);
        for (verb, code) in [("run", 125), ("try", 2)] {
            let output = output(&[verb, "--sites", &path, "--", "true"]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains(&format!("sites.toml{place}")) && said.contains(words), "{said}");
        }
    }
    let missing = output(&["run", "--sites", "/no/such/sites.toml", "--", "true"]);
    assert_eq!(missing.status.code(), Some(125));
    let glibc = output(&["run", "--lock", "glibc", "--sites", &folder.path("x"), "--", "true"]);
    assert!(glibc.status.code() == Some(125) && stderr(&glibc).contains("leave --lock glibc out"));
}

#[test]
fn a_trial_has_policies_too_and_says_what_never_matched() {
    let folder = Folder::new("sites-trial");
    let program = folder.compile("sites.c", &[]);
    let text = "[[site]]\nfunction = \"wait_here\"\npolicy = \"none\"\n\
                [[site]]\nfunction = \"main\"\nmodule = \"program\"\npolicy = \"none\"\n";
    let path = sites(&folder, text);
    let verb = ["try", "--pairs", "6", "--keep-output", "--sites", &path, "--", &program];
    let output = output(&verb);
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
    // In glibc's mutex that byte has no meaning, and is zero while the mutex is free.
    let count = |line: &str| printed.lines().filter(|printed| *printed == line).count();
    assert_eq!((count("made 0 waited 1 other 0"), count(PLAIN.trim_end())), (7, 7), "{printed}");
    assert!(said.contains("sites.toml:4: main (program)"), "{said}");
}
