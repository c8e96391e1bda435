//! `cargo xtask mutants` on a tree made for it: every fate that a mutant can have.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A workspace below the system's temporary directory, removed at the end.
struct Tree(PathBuf);

/// The package that says which mutant is chosen.
const PLATFORM: &str = "[package]\nname = \"antiphon-platform\"\nedition = \"2024\"\n";

/// The package with the algorithms: nothing in it but orderings to weaken.
const MANIFEST: &str = "[package]\nname = \"antiphon-sync\"\nedition = \"2024\"\n\
                        [dependencies]\nantiphon-platform = { path = \"../platform\" }\n";

/// The package that holds the models.
const MODELS: &str = "[package]\nname = \"antiphon-models\"\nedition = \"2024\"\n\
                      [dependencies]\nantiphon-sync = { path = \"../sync\" }\n";

const LIBRARY: &str = "\
use core::sync::atomic::{AtomicU32, Ordering};
pub fn seen() -> Ordering {
    Ordering::Acquire
}
pub fn unseen(word: &AtomicU32) {
    word.store(1, Ordering::Release);
}
pub const fn one() -> u32 {
    1
}
";

const MODEL: &str = "\
mod model_a {
    #[test]
    fn sees() {
        assert_eq!(antiphon_sync::seen(), core::sync::atomic::Ordering::Acquire);
    }
    #[test]
    fn counts() {
        while antiphon_sync::one() == 2 {
            std::thread::yield_now();
        }
        assert_eq!(antiphon_sync::one(), 1);
    }
}
";

impl Tree {
    fn new(name: &str) -> Self {
        let tree = Self(std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id())));
        tree.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
        tree.write("crates/platform/Cargo.toml", PLATFORM);
        tree.write("crates/platform/src/lib.rs", "");
        tree.write("crates/sync/Cargo.toml", MANIFEST);
        tree.write("crates/sync/src/lib.rs", LIBRARY);
        tree.write("crates/models/Cargo.toml", MODELS);
        tree.write("crates/models/src/lib.rs", "");
        tree.write("crates/models/tests/models.rs", MODEL);
        tree.write(".gitignore", "/target\n");
        tree.git(&["init", "--quiet"]);
        tree
    }

    fn git(&self, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(arguments)
            .current_dir(&self.0)
            .status();
        assert!(status.unwrap().success(), "git {arguments:?}");
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn entry(&self, replace: &str, killed_by: &str) {
        let file = "crates/sync/src/lib.rs";
        let find = "{\\n    1\\n}";
        let table = format!(
            "[[mutant]]\nname = \"m\"\ninvariant = \"INV-1\"\nfile = \"{file}\"\n\
             find = \"{find}\"\nreplace = \"{{ {replace} }}\"\nkilled_by = [{killed_by}]\n"
        );
        self.write("crates/models/mutants.toml", &table);
    }

    /// The exit code and what was printed.
    fn mutants(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("mutants")
            .args(arguments)
            .current_dir(&self.0)
            .env("CARGO_MANIFEST_DIR", self.0.join("xtask"))
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        let text = [stdout, stderr].concat();
        (status.code().unwrap(), String::from_utf8(text).unwrap())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", Path::new(&self.0).display());
        }
    }
}

#[test]
fn orderings_are_killed_or_survive_and_survivors_can_be_explained() {
    let tree = Tree::new("orderings");
    let (code, text) = tree.mutants(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("lib.rs:3 Acquire → Relaxed: killed by model_a::sees"), "{text}");
    assert!(text.contains("lib.rs:6 Release → Relaxed: survived"), "{text}");
    assert!(text.contains("2 of 2 mutants are in one program"), "{text}");

    let (code, text) = tree.mutants(&["--test", "model_a::counts"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("lib.rs:3 Acquire → Relaxed: survived"), "{text}");

    let explain = |call: &str| LIBRARY.replace(call, &format!("// mutant: why\n    {call}"));
    tree.write("crates/sync/src/lib.rs", &explain("word.store"));
    let (code, text) = tree.mutants(&["--all"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("Mutants: 2 selected, 1 explained, 1 killed."), "{text}");

    tree.write("crates/sync/src/lib.rs", &explain("Ordering::Acquire"));
    let (code, text) = tree.mutants(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("lib.rs:4: a survivor is explained here"), "{text}");
}

#[test]
fn entries_of_the_table_meet_the_tests_that_they_name() {
    let tree = Tree::new("table");
    tree.write("crates/sync/src/lib.rs", &LIBRARY.replace("Release", "Relaxed"));
    for (replace, killed_by, expected_code, expected) in [
        ("3", "", 0, "m [INV-1]: killed by model_a::counts"),
        ("3", "\"model_a::counts\"", 0, "m [INV-1]: killed by model_a::counts"),
        ("3", "\"model_a::counts\", \"model_a::sees\"", 1, "m [INV-1]: survived"),
        ("3", "\"model_b\"", 2, "no test model_b"),
        ("3", "\"model_a::none\"", 2, "no test model_a::none"),
        ("2", "", 1, "m [INV-1]: undecided by model_a"),
        ("()", "", 1, "m [INV-1]: unbuildable: mismatched types"),
    ] {
        tree.entry(replace, killed_by);
        let (code, text) = tree.mutants(&["--limit", "10"]);
        assert_eq!(code, expected_code, "{text}");
        assert!(text.contains(expected), "{text}");
        // The body of a constant function can't ask which mutant is chosen.
        assert!(text.contains("1 of 2 mutants are in one program"), "{text}");
    }
    tree.entry("3", "\"model_a::counts\"");
    for (named, count) in [("model_a", 1), ("model_a::counts", 1), ("model_b", 0)] {
        let (_, text) = tree.mutants(&["--killed-by", named, "--list"]);
        assert!(text.ends_with(&format!("{count} mutants\n")), "{text}");
    }
}

#[test]
fn models_that_fail_without_a_mutant_prove_nothing() {
    let tree = Tree::new("failing");
    tree.write("crates/models/tests/models.rs", &MODEL.replace("one(), 1", "one(), 4"));
    let (code, text) = tree.mutants(&[]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("model_a::counts fails without a mutant"), "{text}");
}

#[test]
fn only_changed_files_are_mutated_on_demand() {
    let tree = Tree::new("changed");
    tree.write("crates/sync/src/other.rs", "// a.load(Acquire)\nb.load(Acquire)\n");
    tree.git(&["add", "."]);
    tree.git(&["commit", "--quiet", "--message", "first"]);
    let (code, text) = tree.mutants(&["--changed", "HEAD", "--list"]);
    assert_eq!((code, text.trim()), (0, "0 mutants"));
    tree.write("crates/sync/src/other.rs", "b.load(Acquire)\n");
    tree.write("crates/sync/src/new.rs", "c.load(Acquire)\n");
    let (_, text) = tree.mutants(&["--changed", "HEAD", "--list"]);
    assert!(text.ends_with("2 mutants\n"), "{text}");
    let (_, text) = tree.mutants(&["--file", "crates/sync/src/lib.rs", "--list"]);
    assert!(text.ends_with("2 mutants\n"), "{text}");
    let (_, text) = tree.mutants(&["--file", "crates/sync", "--file", "crates/none", "--list"]);
    assert!(text.contains("no file crates/none in the tree"), "{text}");
    let (_, text) = tree.mutants(&["--file", "crates/sync/", "--list"]);
    assert!(text.ends_with("4 mutants\n"), "{text}");
    assert_eq!(tree.mutants(&["--file", "crates/sync/src/none.rs"]).0, 2);
    assert_eq!(tree.mutants(&["--changed", "no-such-commit"]).0, 2);
}

#[test]
fn what_there_is_no_time_for_is_skipped_and_said() {
    let tree = Tree::new("minutes");
    tree.entry("3", "\"model_a::counts\"");
    let (code, text) = tree.mutants(&["--all", "--minutes", "0"]);
    assert_eq!(code, 0, "{text}");
    let said = "skipped: 3 mutants, the time is over (all: cargo xtask mutants --all)";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("Mutants: 3 selected, 3 skipped."), "{text}");

    let (code, text) = tree.mutants(&["--all", "--minutes", "60"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("[1/3] crates/sync/src/lib.rs:8 m [INV-1]: killed by"), "{text}");
    assert!(text.contains("Mutants: 3 selected, 2 killed, 1 survived."), "{text}");
}

#[test]
fn a_record_is_gone_on_with() {
    let tree = Tree::new("record");
    tree.entry("3", "\"model_a::counts\"");
    let record = ["--record", "record.json", "--resume"];
    let (code, text) = tree.mutants(&record);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("[1/1] crates/sync/src/lib.rs:8 m [INV-1]: killed by"), "{text}");
    let written = std::fs::read_to_string(tree.0.join("record.json")).unwrap();
    assert!(written.contains("\"fate\": \"killed\""), "{written}");
    let (code, text) = tree.mutants(&record);
    assert_eq!((code, text.trim()), (0, "0 mutants"));
    tree.write("crates/sync/src/lib.rs", &format!("// Changed.\n{LIBRARY}"));
    let (_, text) = tree.mutants(&[&record[..], &["--list"]].concat());
    assert!(text.ends_with("1 mutants\n"), "{text}");
    assert_eq!(tree.mutants(&["--resume"]).0, 2);
}
