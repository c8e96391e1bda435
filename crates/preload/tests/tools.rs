//! Programs that are built for a sanitizer, or run under valgrind: the tools report the same faults
//! with the library as without it.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use antiphon_record::aside::{self, Tool};
use antiphon_record::{Recording, Scope, Snapshot};
use support::{installed, plain, preloaded, run, scratch, skipped};

/// Builds the program with these flags; `None` if the compiler has no library for them.
fn build(directory: &Path, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/tools.c");
    let program = directory.join("program");
    let mut command = Command::new(compiler);
    command.args(["-O0", "-g", "-pthread"]).arg(source).arg("-o").arg(&program).args(flags);
    let built = command.output().is_ok_and(|output| output.status.success());
    if !built {
        skipped(&format!("{compiler} {flags:?} is missing"));
    }
    built.then_some(program)
}

/// Runs the program under the tool and the library, with a recording. Returns the output and the
/// recording.
fn recorded(directory: &Path, arguments: &[&str], program: &Path) -> (Output, Snapshot) {
    let recording = directory.join("recording");
    assert!(Recording::create(&recording, Scope::Full).is_ok());
    let mut command =
        preloaded(arguments.first().map_or(program.as_os_str(), |tool| tool.as_ref()));
    command.args(arguments.iter().skip(1));
    if !arguments.is_empty() {
        command.arg(program);
    }
    let output = run(command.env("ANTIPHON_RECORD", &recording));
    let seen = Recording::open(&recording).and_then(|recording| recording.read());
    assert!(std::fs::remove_file(&recording).is_ok());
    (output, seen.expect("a recording"))
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// Checks that a program compiled this way reports these faults, by these words, and no others.
/// Returns whether the library recorded its locks, and the programs that the recording names.
fn finds(compiler: &str, flags: &[&str], faults: &[(&str, &str)]) -> Option<(bool, Vec<String>)> {
    let name = format!("tools-{compiler}-{}", flags.concat().replace(['-', '='], ""));
    let directory = scratch(&name);
    let program = build(&directory, compiler, flags)?;
    // A sanitizer that does not run at all, or finds nothing, is not this library's fault.
    let works =
        faults.iter().all(|(fault, words)| said(&run(plain(&program).arg(fault))).contains(words));
    if !works || !run(&mut plain(&program)).status.success() {
        skipped(&format!("{compiler} {flags:?} does not work here without the library either"));
        return None;
    }
    for lock in ["shfl-mutex", "shfl-mutex+light", "glibc"] {
        let output = run(preloaded(&program).env("ANTIPHON_LOCK", lock));
        assert!(output.status.success() && said(&output).is_empty(), "{lock}: {}", said(&output));
        for (fault, words) in faults {
            let output = run(preloaded(&program).arg(fault).env("ANTIPHON_LOCK", lock));
            assert!(said(&output).contains(words), "{lock}, {fault}: {}", said(&output));
            assert!(!output.status.success(), "{lock}, {fault}");
        }
    }
    let (output, seen) = recorded(&directory, &[], &program);
    assert!(output.status.success() && said(&output).is_empty(), "{}", said(&output));
    assert_eq!(seen.started, 1);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
    Some((!seen.rows.is_empty(), seen.programs.into_iter().map(|program| program.path).collect()))
}

const OVERFLOW: (&str, &str) = ("overflow", "heap-buffer-overflow");
const LEAK: (&str, &str) = ("leak", "detected memory leaks");
const RACE: (&str, &str) = ("race", "data race");

#[test]
fn with_address_sanitizer_locks_are_replaced() {
    let faults = [OVERFLOW, LEAK];
    if let Some(found) = finds("gcc", &["-fsanitize=address"], &faults) {
        assert_eq!(found, (true, vec![]));
    }
    if let Some(found) = finds("gcc", &["-fsanitize=address", "-static-libasan"], &faults) {
        assert_eq!(found, (true, vec![]));
    }
}

#[test]
fn with_other_sanitizers_locks_are_replaced() {
    if let Some(found) = finds("gcc", &["-fsanitize=leak"], &[LEAK]) {
        assert_eq!(found, (true, vec![]));
    }
    if let Some(found) = finds("gcc", &["-fsanitize=undefined"], &[]) {
        assert_eq!(found, (true, vec![]));
    }
}

/// The file of such a program shows the tool, so a recording need not name the program.
#[test]
fn with_thread_sanitizer_the_library_steps_aside() {
    if let Some(found) = finds("gcc", &["-fsanitize=thread"], &[RACE]) {
        assert_eq!(found, (false, vec![]));
    }
    if let Some(found) = finds("clang", &["-fsanitize=thread"], &[RACE]) {
        assert_eq!(found, (false, vec![]));
    }
    // The static runtime wraps our functions, and can't be detected.
    if let Some(found) = finds("gcc", &["-fsanitize=thread", "-static-libtsan"], &[RACE]) {
        assert_eq!(found, (true, vec![]));
    }
}

#[test]
fn under_valgrinds_thread_checkers_the_library_steps_aside_and_says_so() {
    if !installed("valgrind") {
        return;
    }
    let directory = scratch("valgrind-threads");
    let Some(program) = build(&directory, "gcc", &[]) else { return };
    for (tool, name) in [(Tool::Helgrind, "helgrind"), (Tool::Drd, "drd")] {
        let tool_is = format!("--tool={name}");
        let valgrind = ["valgrind", &tool_is, "-q", "--error-exitcode=9"];
        let (output, seen) = recorded(&directory, &valgrind, &program);
        assert!(output.status.success() && said(&output).is_empty(), "{name}: {}", said(&output));
        let named = |program: &antiphon_record::Program| {
            let (path, tool) = aside::split(&program.path)?;
            Some((path.to_owned(), tool))
        };
        let named: Vec<_> = seen.programs.iter().filter_map(named).collect();
        assert_eq!(named, [(program.display().to_string(), tool)]);
        assert!(seen.rows.is_empty());
        let output = run(preloaded(valgrind[0]).args(&valgrind[1..]).arg(&program).arg("race"));
        assert_eq!(output.status.code(), Some(9), "{name}: {}", said(&output));
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn under_valgrinds_other_tools_locks_are_replaced() {
    if !installed("valgrind") {
        return;
    }
    let directory = scratch("valgrind");
    let Some(program) = build(&directory, "gcc", &[]) else { return };
    for (tool, flags) in [("memcheck", &["--leak-check=full"][..]), ("none", &[])] {
        let tool = format!("--tool={tool}");
        let valgrind = [&["valgrind", &tool, "-q", "--error-exitcode=9"], flags].concat();
        let (output, seen) = recorded(&directory, &valgrind, &program);
        assert!(output.status.success() && said(&output).is_empty(), "{tool}: {}", said(&output));
        assert!(!seen.rows.is_empty());
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}
