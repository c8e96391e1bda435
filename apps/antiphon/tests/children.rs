//! `run` of programs that the library can't get into, as CMD or started by it, and `--no-children`.

mod common;

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use common::{Folder, antiphon, output, skipped, stderr, unbroken};
use serde_json::Value;

/// The user and group of an account without rights.
const NOBODY: u32 = 65534;

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The programs of a report that kept their own locks: path, times, why.
fn unreached(file: &str) -> Vec<(String, u64, String)> {
    let text = std::fs::read(file).expect("a report");
    let report: Value = serde_json::from_slice(&text).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let all = report["unreached"].as_array().expect("a list").iter();
    all.map(|one| (text(&one["program"]), one["times"].as_u64().unwrap_or(0), text(&one["why"])))
        .collect()
}

/// Checks a program that prints nothing and exits with 7, and the reason why the library can't get
/// in. If the program is CMD, the reason is printed before and after; below a shell, which is
/// reached, it is in the report.
fn is_told(folder: &Folder, program: &str, words: &str) {
    let itself = output(&["run", "--", program]);
    let said = stderr(&itself);
    assert_eq!((itself.status.code(), stdout(&itself).as_str()), (Some(7), ""), "{said}");
    // Neither the loader nor any other program prints anything.
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("antiphon: nothing will be replaced"), "{said}");
    let text = unbroken(&said);
    let note = text.find("Nothing was replaced").map_or("", |at| &text[at..]);
    for part in [first, note] {
        assert!(part.contains(words) && part.contains(program), "{said}");
    }
    assert!(text.matches(words).count() == 2 && !said.contains("ld.so"), "{said}");

    let (file, script) = (folder.path("report.json"), format!("{program}; {program}; exit 3"));
    let below = output(&["run", "--report", &file, "--", "sh", "-c", &script]);
    let said = stderr(&below);
    assert_eq!((below.status.code(), stdout(&below).as_str()), (Some(3), ""), "{said}");
    assert!(!said.contains("ld.so"), "{said}");
    let expected = "Not replaced in a program that was started 2 times: ";
    let text = unbroken(&said);
    let note = text.find(expected).map(|at| &text[at..]);
    assert!(note.is_some_and(|note| note.contains(words) && note.contains(program)), "{said}");
    let unreached = unreached(&file);
    assert!(matches!(&unreached[..], [(path, 2, why)] if path == program && why.contains(words)));
}

#[test]
fn a_static_program_is_told_and_so_is_a_script_of_it() {
    let folder = Folder::new("children-static");
    let flags = ["-DSTATUS=7", "-static"];
    let program = folder.compile_as("program", "cc", "quiet.c", &flags);
    is_told(&folder, &program, "statically linked");
    let script = folder.path("script");
    std::fs::write(&script, format!("#!{program}\n")).expect("a script");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("rights");
    is_told(&folder, &script, "statically linked");
}

#[test]
fn a_program_of_musl_is_told() {
    let folder = Folder::new("children-musl");
    if !Command::new("musl-gcc").arg("--version").output().is_ok_and(|out| out.status.success()) {
        return skipped("musl-gcc is missing");
    }
    let program = folder.compile_as("program", "musl-gcc", "quiet.c", &["-DSTATUS=7"]);
    is_told(&folder, &program, "is linked to musl");
}

/// The library is in such a program, but steps aside, in it and in its children.
#[test]
fn a_program_with_thread_sanitizer_is_told() {
    let folder = Folder::new("children-tsan");
    let flags = ["-DSTATUS=7", "-fsanitize=thread"];
    let has = |name: &str| Command::new("cc").arg(format!("-print-file-name={name}")).output();
    if !has("libtsan.so").is_ok_and(|out| out.stdout.starts_with(b"/")) {
        return skipped("libtsan is missing");
    }
    let program = folder.compile_as("program", "cc", "quiet.c", &flags);
    if Command::new(&program).status().ok().and_then(|status| status.code()) != Some(7) {
        return skipped("ThreadSanitizer does not work here without the library either");
    }
    is_told(&folder, &program, "ThreadSanitizer");
}

/// A runtime that checks whether it is the first library is configured not to check. If the program
/// has its own options, that is not possible, and the program is left alone.
#[test]
fn a_program_with_address_sanitizer_runs() {
    let folder = Folder::new("children-asan");
    let has = |name: &str| Command::new("cc").arg(format!("-print-file-name={name}")).output();
    if !has("libasan.so").is_ok_and(|out| out.stdout.starts_with(b"/")) {
        return skipped("libasan is missing");
    }
    let program =
        folder.compile_as("program", "cc", "quiet.c", &["-DSTATUS=7", "-fsanitize=address"]);
    let script = format!("{program}; exit $?");
    for command in [&["run", "--", &program][..], &["run", "--", "sh", "-c", &script]] {
        let output = output(command);
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(7), ""), "{said}");
        assert!(!said.contains("ASan") && !said.contains("othing was replaced"), "{said}");
    }
    let flags = ["-DSTATUS=7", "-DOWN_OPTIONS", "-fsanitize=address"];
    let program = folder.compile_as("own", "cc", "quiet.c", &flags);
    let output = output(&["run", "--", &program]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("nothing will be replaced") && said.contains("ASAN_OPTIONS"), "{said}");
}

/// Programs under valgrind's checkers of threads are named with the reason.
#[test]
fn a_program_under_helgrind_is_told() {
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|out| out.status.success()) {
        return skipped("valgrind is missing");
    }
    let folder = Folder::new("children-helgrind");
    let program = folder.compile_as("program", "cc", "quiet.c", &["-DSTATUS=7"]);
    let file = folder.path("report.json");
    let valgrind = ["valgrind", "-q", "--tool=helgrind", &program];
    let output = output(&[&["run", "--report", &file, "--"][..], &valgrind].concat());
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let note = format!("{program} runs under valgrind's helgrind");
    assert!(unbroken(&said).contains(&note), "{said}");
    assert!(unreached(&file).iter().any(|(path, ..)| path == &format!("{program} (helgrind)")));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_program_for_32_bits_is_told_and_its_loader_has_nothing_to_say() {
    let folder = Folder::new("children-32");
    let bare = ["-m32", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie"];
    let flags = [&bare[..], &["-static"]].concat();
    let program = folder.compile_as("static", "cc", "bare.c", &flags);
    is_told(&folder, &program, "is for 32 bits");
    // A program with a 32-bit C library, whose loader reads LD_PRELOAD.
    let (loader, library) = ("/lib/ld-linux.so.2", "/lib32/libc.so.6");
    if !Path::new(loader).exists() || !Path::new(library).exists() {
        return skipped("no C library for 32 bits");
    }
    let flags = [&bare[..], &["-Wl,--no-as-needed", "-Wl,--dynamic-linker=/lib/ld-linux.so.2"]];
    let flags = [&flags.concat()[..], &[library]].concat();
    let program = folder.compile_as("dynamic", "cc", "bare.c", &flags);
    is_told(&folder, &program, "is for 32 bits");
}

/// Runs as an account without rights: a setuid program of another user runs with its owner's
/// rights.
#[test]
fn a_setuid_program_is_told() {
    // SAFETY: takes no arguments.
    let root = unsafe { libc::getuid() } == 0;
    if !root || !Path::new("/usr/bin/setpriv").exists() {
        return skipped("a setuid program needs root and setpriv");
    }
    let folder = Folder::new("children-setuid");
    let program = folder.compile_as("program", "cc", "quiet.c", &["-DSTATUS=7"]);
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).expect("rights");
    // For its owner it is like any other program.
    let (home, file) = (folder.path("home"), folder.path("home/report.json"));
    let script = format!("{program}; {program}; exit 3");
    std::fs::create_dir(&home).expect("a folder");
    let own = output(&["run", "--report", &file, "--", "sh", "-c", &script]);
    assert_eq!((own.status.code(), unreached(&file)), (Some(3), Vec::new()));

    std::fs::remove_file(&file).expect("a report");
    chown(&home, Some(NOBODY), Some(NOBODY)).expect("a folder of nobody's");
    let command = folder.path("antiphon");
    std::fs::copy(env!("CARGO_BIN_EXE_antiphon"), &command).expect("the command");
    let as_nobody = |arguments: &[&str]| {
        let user = NOBODY.to_string();
        Command::new("setpriv")
            .args(["--reuid", &user, "--regid", &user, "--clear-groups", &command])
            .args(arguments)
            .env("HOME", &home)
            .env_remove("XDG_CACHE_HOME")
            .output()
            .expect("the command starts")
    };
    let itself = as_nobody(&["run", "--", &program]);
    let said = stderr(&itself);
    assert_eq!(itself.status.code(), Some(7), "{said}");
    assert_eq!(said.matches("gains privileges").count(), 2, "{said}");
    let below = as_nobody(&["run", "--report", &file, "--", "sh", "-c", &script]);
    let said = stderr(&below);
    assert!(below.status.code() == Some(3) && !said.contains("ld.so"), "{said}");
    let unreached = unreached(&file);
    let is_told = |why: &str| why.contains("gains privileges") && why.contains("as its owner");
    assert!(matches!(&unreached[..], [(path, 2, why)] if *path == program && is_told(why)));
}

#[test]
fn what_root_runs_as_somebody_else_has_the_library() {
    // SAFETY: takes no arguments.
    let root = unsafe { libc::getuid() } == 0;
    if !root || !Path::new("/usr/bin/setpriv").exists() {
        return skipped("only root can run programs as somebody else");
    }
    let folder = Folder::new("children-user");
    let (program, user) = (folder.compile("whose.c", &[]), NOBODY.to_string());
    let output = antiphon(&["run", "--", "setpriv", "--reuid", &user, "--clear-groups", &program])
        .env_remove("XDG_CACHE_HOME")
        .output()
        .expect("the command starts");
    assert_eq!(stdout(&output), "ours\n", "{}", stderr(&output));
    assert!(!stderr(&output).contains("ld.so"), "{}", stderr(&output));
}

#[test]
fn a_program_that_is_not_handed_the_library_is_told() {
    let folder = Folder::new("children-cleared");
    let program = folder.compile("whose.c", &[]);
    let file = folder.path("report.json");
    let below = output(&["run", "--report", &file, "--", "env", "-u", "LD_PRELOAD", &program]);
    assert_eq!(stdout(&below), "glibc\n");
    let unreached = unreached(&file);
    let told = |why: &str| why.contains("started without LD_PRELOAD");
    assert!(matches!(&unreached[..], [(path, 1, why)] if *path == program && told(why)));
}

#[test]
fn what_a_static_program_starts_is_reached() {
    let folder = Folder::new("children-of-static");
    let starts = folder.compile_as("starts", "cc", "starts.c", &["-static"]);
    let program = folder.compile("whose.c", &[]);
    let run = |more: &[&str]| output(&[&["run"], more, &["--", &starts, &program]].concat());
    let reached = run(&[]);
    let said = stderr(&reached);
    assert_eq!(stdout(&reached), "ours\n", "{said}");
    assert!(said.contains("Nothing was replaced in CMD itself: "), "{said}");
    let alone = run(&["--no-children"]);
    let said = stderr(&alone);
    assert_eq!(stdout(&alone), "glibc\n", "{said}");
    assert!(said.contains("Nothing was replaced: "), "{said}");
}

/// Each function that executes a program behaves as without us, and the program is recorded.
#[test]
fn whatever_executes_a_program_is_noted_and_not_changed() {
    let folder = Folder::new("children-execs");
    let program = folder.compile("execs.c", &[]);
    let says = folder.compile_as("says", "cc", "says.c", &["-static"]);
    let (file, place) = (folder.path("report.json"), folder.path(""));
    let path = format!("/usr/bin:{place}:/bin");
    let arguments = [place.trim_end_matches('/'), "says"];
    let plain = Command::new(&program).args(arguments).env("PATH", &path).output();
    let plain = plain.expect("the program starts");
    let ours = antiphon(&["run", "--report", &file, "--", &program])
        .args(arguments)
        .env("PATH", &path)
        .output()
        .expect("the command starts");
    let said = stderr(&ours);
    assert_eq!((stdout(&ours), ours.status.code()), (stdout(&plain), Some(0)), "{said}");
    assert_eq!(stdout(&plain).lines().count(), 14, "{}", stdout(&plain));
    assert!(said.starts_with(&stderr(&plain)), "{said}");
    let unreached = unreached(&file);
    let noted: Vec<_> = unreached.iter().map(|(path, times, _)| (path, *times)).collect();
    assert_eq!(noted, [(&says, 14)], "{said}");
}

#[test]
fn without_children_the_locks_are_for_cmd_and_its_forks_alone() {
    let folder = Folder::new("children-alone");
    let program = folder.compile("family.c", &[]);
    let run = |more: &[&str]| output(&[&["run"], more, &["--", &program]].concat());
    let ways = ["vfork", "spawn", "main's environment", "system", "changed"];
    for (more, whose) in [(&[][..], "ours"), (&["--no-children"], "glibc")] {
        let output = run(more);
        let said = stderr(&output);
        let mut expected = "itself: ours\nfork: ours\n".to_owned();
        ways.iter().for_each(|way| expected += &format!("{way}: {whose}\n"));
        assert_eq!((stdout(&output), output.status.code()), (expected, Some(0)), "{said}");
        assert_eq!(said.contains("were left alone, because of --no-children"), !more.is_empty());
        // The report does not complain of programs that were left alone on request.
        assert!(!said.contains("Not replaced in"), "{said}");
    }
}

#[test]
fn without_children_the_environment_is_what_it_was() {
    let before: [&[(&str, &str)]; 2] =
        [&[], &[("LD_PRELOAD", "libm.so.6"), ("ANTIPHON_LOCK", "a"), ("ANTIPHON_RECORD", "b=c")]];
    // A shell builds its own environment.
    for (before, command) in before.iter().flat_map(|before| [(before, "env"), (before, "sh")]) {
        let run = |mut command: Command| {
            command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", std::env::temp_dir());
            let output = command.envs(before.iter().copied()).output().expect("a start");
            assert!(output.status.success(), "{}", stderr(&output));
            let mut lines: Vec<_> = stdout(&output).lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let arguments: &[&str] = if command == "sh" { &["-c", "env"] } else { &[] };
        let (mut ours, mut plain) = (
            antiphon(&["run", "--no-children", "--profile", "--", command]),
            Command::new(command),
        );
        ours.args(arguments);
        plain.args(arguments);
        assert_eq!(run(ours), run(plain), "{command}");
    }
}

/// The C library recognises the array that it allocated for a constructor by its address.
#[test]
fn without_children_an_environment_that_was_changed_before_can_be_changed_again() {
    let folder = Folder::new("children-settled");
    let flags = ["-shared", "-fPIC", "-DLIBRARY"];
    let library = folder.compile_as("libsettled.so", "cc", "settled.c", &flags);
    let program = folder.compile_as("settled", "cc", "settled.c", &[&library]);
    for more in [&["--profile"][..], &[]] {
        let output = output(&[&["run", "--no-children"], more, &["--", &program]].concat());
        let said = stderr(&output);
        assert_eq!(
            (stdout(&output), output.status.code()),
            ("101\n".to_owned(), Some(0)),
            "{said}"
        );
    }
}

#[test]
fn a_trial_can_leave_children_alone_too() {
    let folder = Folder::new("children-trial");
    let program = folder.compile("whose.c", &[]);
    let script = format!("{program}; :");
    let below = |more: &[&str]| {
        let verb = ["try", "--pairs", "6", "--keep-output"];
        let output = output(&[&verb, more, &["--", "sh", "-c", &script]].concat());
        let said = stdout(&output);
        (said.lines().filter(|line| *line == "ours").count(), output.status.code())
    };
    assert_eq!(below(&[]), (7, Some(0)));
    assert_eq!(below(&["--no-children"]), (0, Some(0)));
}
