//! The promises to CMD under `run` and `record`: the items of `docs/contract.md`.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, antiphon, skipped, stderr};
use serde_json::Value;

/// The ways in which CMD may be run.
const MODES: [&[&str]; 5] = [
    &["run"],
    &["run", "--lock", "shfl-mutex+light"],
    &["run", "--profile"],
    &["run", "--lock", "glibc", "--profile"],
    &["record"],
];

/// The arguments of `mode`, with a trace in `folder` where it writes one.
fn mode(mode: &[&str], folder: &Folder) -> Vec<String> {
    let mut arguments: Vec<String> = mode.iter().map(|word| (*word).to_owned()).collect();
    if mode[0] == "record" {
        arguments.extend(["--out".to_owned(), folder.path("trace")]);
    }
    arguments
}

const ANTIPHON: &str = env!("CARGO_BIN_EXE_antiphon");

/// Runs a shell command in which `$A` stands for our command up to CMD, or for nothing.
fn shell(prefix: &[String], line: &str) -> Output {
    let prefix = if prefix.is_empty() {
        String::new()
    } else {
        format!("{ANTIPHON} {} -- ", prefix.join(" "))
    };
    let mut command = Command::new("bash");
    command.args(["-c", &line.replace("$A ", &prefix)]);
    command.output().expect("bash")
}

/// An exit code in the form of a shell.
fn code(output: &Output) -> Option<i32> {
    output.status.code().or(output.status.signal().map(|signal| 128 + signal))
}

/// Runs the line as a user without rights: `None` where that is not possible.
fn as_nobody(prefix: &[String], line: &str, home: &str) -> Option<Output> {
    // SAFETY: takes no arguments.
    if unsafe { libc::getuid() } != 0 {
        skipped("only root can run a program as another user");
        return None;
    }
    let change = "setpriv --reuid 54321 --regid 54321 --clear-groups --inh-caps=-all";
    let line = format!("export XDG_CACHE_HOME={home}; exec {change} bash -c {}", quoted(line));
    Some(shell(prefix, &line))
}

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

fn report(folder: &Folder) -> Value {
    let text = std::fs::read(folder.path("report.json")).expect("a report");
    serde_json::from_slice(&text).expect("JSON")
}

/// Number of waits for locks.
fn waits(report: &Value) -> u64 {
    let locks = report["locks"].as_array().expect("a list");
    locks.iter().filter_map(|lock| lock["contended"].as_u64()).sum()
}

fn notes(report: &Value) -> String {
    let notes = report["notes"].as_array().expect("a list").iter();
    notes.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

/// CMD finds the same state as without Antiphon: dispositions and mask of signals, descriptors,
/// limits, environment, arguments, folder, group and rights.
#[test]
fn what_a_program_is_started_with_is_what_it_would_have_been() {
    let folder = Folder::new("state");
    let state = folder.compile("state.c", &[]);
    let found = folder.path("found");
    let setups = [
        "$A STATE".to_owned(),
        "trap '' CHLD; $A STATE".to_owned(),
        "trap '' PIPE; $A STATE".to_owned(),
        "trap '' XFSZ HUP INT QUIT TERM SEGV BUS WINCH RTMIN+3; $A STATE".to_owned(),
        format!("{state} block 15 -- $A STATE"),
        format!("{state} block 17 -- $A STATE"),
        "$A STATE <&-".to_owned(),
        "$A STATE >&-".to_owned(),
        "$A STATE 2>&-".to_owned(),
        "$A STATE <&- >&- 2>&-".to_owned(),
        "$A STATE 7</dev/null".to_owned(),
        "ulimit -n 64; ulimit -c 0; ulimit -S -f 4000000; ulimit -S -s 4096; $A STATE".to_owned(),
        "umask 077; cd /; nice -n 3 taskset 1 $A STATE a 'b c'".to_owned(),
        "ASAN_OPTIONS=exitcode=3 EMPTY= $A STATE".to_owned(),
    ];
    for line in setups {
        let line = line.replace("STATE", &format!("{state} {found}"));
        let run = |prefix: &[String]| {
            let output = shell(prefix, &line);
            let found = std::fs::read_to_string(&found).expect("what was found");
            // The order of variables does not matter.
            let mut found: Vec<_> = found.lines().map(str::to_owned).collect();
            found.sort_unstable();
            (output.status.code(), found)
        };
        let without = run(&[]);
        assert_eq!(without.0, Some(7), "{line}");
        for arguments in MODES.map(|arguments| mode(arguments, &folder)) {
            assert_eq!(run(&arguments), without, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn the_exit_code_is_the_programs_whatever_this_process_was_started_with() {
    let folder = Folder::new("codes");
    let lines = [
        ("trap '' CHLD; $A sh -c 'exit 7'", 7),
        ("trap '' PIPE; $A sh -c 'trap \"\" PIPE; echo l || exit 5; exit 6' | true", 0),
        ("$A cat /etc/passwd >&-", 1),
        ("$A sh -c 'kill -9 $$'", 137),
        ("$A sh -c 'sleep 1 & exit 3'", 3),
    ];
    for (line, code) in lines {
        for arguments in MODES.map(|arguments| mode(arguments, &folder)) {
            let output = shell(&arguments, line);
            assert_eq!(self::code(&output), Some(code), "{arguments:?}: {line}");
            assert_eq!(self::code(&shell(&[], line)), Some(code), "{line}");
        }
    }
    // The effect of a missing reader on a program that ignores SIGPIPE, and on one that doesn't.
    let told = "$A sh -c 'sleep 0.2; echo l; echo $? > FILE' | true";
    for before in ["trap '' PIPE; ", ""] {
        let said = |prefix: &[String]| {
            let _ = std::fs::remove_file(folder.path("told"));
            shell(prefix, &format!("{before}{}", told.replace("FILE", &folder.path("told"))));
            std::fs::read_to_string(folder.path("told")).ok()
        };
        assert_eq!(said(&mode(&["run"], &folder)), said(&[]), "{before}");
    }
}

/// A program under `run`, and the lines that it prints.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = antiphon(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // The program has its own group, with this process as the parent: the kernel does not
            // stop an orphaned group for SIGTSTP, and our group may be one.
            .process_group(0)
            .spawn()
            .expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("text")
    }

    fn send(&self, signal: i32) {
        // SAFETY: takes numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Waits until the process has a state, given as the kernel's letter.
    fn comes_to(pid: u32, state: char) {
        let end = Instant::now() + Duration::from_secs(60);
        let now = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next())
        };
        while now() != Some(state) {
            assert!(Instant::now() < end, "{pid} is in state {:?}, not {state}", now());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // In a test that passes, it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every signal that is sent reaches CMD, in order, and with its value.
#[test]
fn what_is_sent_to_this_process_comes_to_the_program() {
    let folder = Folder::new("sent");
    let program = folder.compile("catches.c", &[]);
    let mut running = Running::start(&["run", "--", &program]);
    assert!(running.line().starts_with("ready "));
    // Excluded are the two that can't be caught, those that the C library keeps, and the last.
    let all = (1..=64).filter(|it| ![libc::SIGKILL, libc::SIGSTOP, 32, 33].contains(it));
    // Continuing a program removes a pending stop signal, and the other way round.
    for signal in all.filter(|&it| it != libc::SIGTERM) {
        running.send(signal);
        assert_eq!(running.line(), format!("signal {signal} value 0"));
    }
    let value = libc::sigval { sival_ptr: std::ptr::without_provenance_mut(4711) };
    for signal in [libc::SIGUSR1, 40] {
        // SAFETY: takes numbers; the child has not been waited for.
        assert_eq!(unsafe { libc::sigqueue(running.child.id() as i32, signal, value) }, 0);
        assert_eq!(running.line(), format!("signal {signal} value 4711"));
    }
    running.send(libc::SIGTERM);
    assert_eq!(running.line(), "signal 15 value 0");
    assert_eq!(running.child.wait().expect("an end").code(), Some(10));
}

#[test]
fn a_program_that_is_stopped_stops_this_process_and_goes_on_with_it() {
    let mut running = Running::start(&["run", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let program: u32 = running.line().parse().expect("a number");
    for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        Running::comes_to(program, 'S');
        running.send(signal);
        Running::comes_to(program, 'T');
        Running::comes_to(running.child.id(), 'T');
        running.send(libc::SIGCONT);
    }
    Running::comes_to(program, 'S');
    running.send(libc::SIGTERM);
    assert_eq!(running.child.wait().expect("an end").code(), Some(143));
}

#[test]
fn a_program_does_not_outlive_this_process_when_that_is_killed() {
    let mut running = Running::start(&["run", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let program = running.line();
    running.child.kill().expect("killed");
    assert_eq!(running.child.wait().expect("an end").signal(), Some(libc::SIGKILL));
    let end = Instant::now() + Duration::from_secs(60);
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_there() {
        assert!(Instant::now() < end, "the program runs on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A shell that leaves a process behind ends as usual; the report has what was recorded until then,
/// and says that more follows.
#[test]
fn a_program_that_leaves_something_behind_ends_as_it_does() {
    let folder = Folder::new("behind");
    let program = folder.compile("contends.c", &[]);
    for arguments in MODES {
        for round in 0..4 {
            let mut arguments = mode(arguments, &folder);
            arguments.extend(["--report".to_owned(), folder.path("report.json")]);
            let line = format!("$A sh -c '{program}; for i in 1 2 3; do {program} & done; exit 3'");
            let output = shell(&arguments, &line);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stderr(&output));
            let report = report(&folder);
            assert!(waits(&report) > 0, "{arguments:?} {round}: {report:#}");
            let daemon = format!("$A {program} daemon {}", folder.path("done"));
            let output = shell(&arguments, &daemon);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {}", stderr(&output));
            let notes = notes(&self::report(&folder));
            assert!(notes.contains("still running"), "{arguments:?}: {notes}");
            let end = Instant::now() + Duration::from_secs(60);
            while std::fs::read_to_string(folder.path("done")).ok().as_deref() != Some("16800\n") {
                assert!(Instant::now() < end, "{arguments:?}: the daemon did not end its work");
                std::thread::sleep(Duration::from_millis(10));
            }
            assert!(std::fs::remove_file(folder.path("done")).is_ok());
        }
    }
}

/// A resource limit may prevent the recording, or has no effect, and is reported; CMD gets the same
/// limits as without us.
#[test]
fn limits_bound_the_program_and_not_what_watches_it() {
    let folder = Folder::new("limits");
    let program = folder.compile("contends.c", &[]);
    let arguments = ["run".to_owned(), "--report".to_owned(), folder.path("report.json")];
    // Enough for the program and its part of the recording.
    for limit in ["-v 90000", "-S -f 8", "-n 32", "-l 64", "-s 256"] {
        let output = shell(&arguments, &format!("ulimit {limit}; $A {program}"));
        assert_eq!(output.status.code(), Some(5), "{limit}: {}", stderr(&output));
        let report = report(&folder);
        assert!(waits(&report) > 0, "{limit}: {report:#}");
    }
    // Too little for any recording. The report can't be written to a file either.
    let output = shell(&["run".to_owned()], &format!("ulimit -f 8; $A {program}"));
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("Nothing was recorded: the limit on the size of files"));
    let output = shell(&mode(&["record"], &folder), &format!("ulimit -f 8; $A {program}"));
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}

#[test]
fn without_room_for_a_thread_of_ours_the_program_runs_all_the_same() {
    let home = Folder::new("few");
    // The other user must be able to write to it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(home.path(""), open).expect("rights");
    let cache = home.path("cache");
    let run = ["run".to_owned()];
    let Some(two) = as_nobody(&run, "ulimit -u 2; exec $A sh -c \"exit 3\"", &cache) else {
        return;
    };
    assert_eq!(two.status.code(), Some(3), "{}", stderr(&two));
    assert!(stderr(&two).contains("not looked at from outside"), "{}", stderr(&two));
    let one = as_nobody(&run, "ulimit -u 1; exec $A sh -c \"exit 3\"", &cache).expect("as before");
    assert_eq!(one.status.code(), Some(125), "{}", stderr(&one));
    assert!(stderr(&one).contains("ulimit -u") && stderr(&one).lines().count() == 1);
}

#[test]
fn memory_that_may_be_locked_is_left_to_the_program() {
    let folder = Folder::new("locked");
    let program = folder.compile("locked.c", &[]);
    let open = |path: &str| {
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, rights).expect("rights");
    };
    open(&folder.path(""));
    open(&program);
    let locked = |output: &Output| -> u64 {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = text.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("{text}{}", stderr(output)))
    };
    let line = format!("ulimit -l 8192; exec $A {program}");
    for arguments in MODES.map(|arguments| mode(arguments, &folder)) {
        let cache = folder.path("cache");
        let Some(with) = as_nobody(&arguments, &line, &cache) else { return };
        assert_eq!(with.status.code(), Some(5), "{arguments:?}: {}", stderr(&with));
        let without = as_nobody(&[], &line, &cache).expect("as before");
        assert!(locked(&with) < locked(&without) + 4096, "{arguments:?}: {}", locked(&with));
    }
}

/// Programs that can't open the recording by its path receive it, or are counted.
#[test]
fn programs_in_other_namespaces_and_of_other_users_are_recorded_or_named() {
    let folder = Folder::new("elsewhere");
    let program = folder.compile("contends.c", &[]);
    for path in [folder.path(""), program.clone()] {
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, rights).expect("rights");
    }
    let arguments = ["run".to_owned(), "--report".to_owned(), folder.path("report.json")];
    let recorded = [
        ("unshare -pf --mount-proc", "unshare -pf --mount-proc PROGRAM"),
        ("setpriv", "setpriv --reuid nobody --regid nogroup --clear-groups PROGRAM"),
        ("su", "su -s /bin/sh nobody -c PROGRAM"),
        ("unshare -m", "unshare -m sh -c \"umount -l /proc; PROGRAM\""),
    ];
    for (what, line) in recorded {
        let line = line.replace("PROGRAM", &program);
        if shell(&[], &line).status.code() != Some(5) {
            skipped(&format!("{what} is not allowed here"));
            continue;
        }
        let output = shell(&arguments, &format!("$A {line}"));
        assert_eq!(output.status.code(), Some(5), "{line}: {}", stderr(&output));
        assert!(waits(&report(&folder)) > 0, "{line}: {}", stderr(&output));
    }
    // Another network namespace has no socket of ours.
    let line =
        format!("unshare -n setpriv --reuid nobody --regid nogroup --clear-groups {program}");
    if shell(&[], &line).status.code() == Some(5) {
        let output = shell(&arguments, &format!("$A {line}"));
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("2 of 3 programs opened the recording"), "{said}");
        assert!(!said.contains("No thread had to wait"), "{said}");
    } else {
        skipped("unshare -n is not allowed here");
    }
}

#[test]
fn a_program_in_another_root_directory_is_named() {
    let folder = Folder::new("chroot");
    let program = folder.compile("contends.c", &["-static"]);
    let shared = folder.compile_as("shared", "cc", "contends.c", &["-pthread"]);
    // Copies the files that a dynamic program needs there.
    let root = folder.path("");
    let line = format!(
        "cd {root} && for file in $(ldd {shared} | grep -o '/[^ ]*'); do \
         mkdir -p .$(dirname $file) && cp -L $file .$file; done; chroot {root} /shared"
    );
    if shell(&[], &line).status.code() != Some(5) {
        skipped("chroot is not allowed here");
        return;
    }
    for (name, why) in [("shared", "another root directory"), ("program", "another root directory")]
    {
        let output = shell(&["run".to_owned()], &format!("$A chroot {root} /{name}"));
        assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
        assert!(stderr(&output).contains(why), "{name} ({program}): {}", stderr(&output));
        assert!(!stderr(&output).contains("No thread had to wait"), "{}", stderr(&output));
        // The loader there is not asked to load a library that it can't find.
        assert!(!stderr(&output).contains("ld.so"), "{}", stderr(&output));
    }
}

#[test]
fn a_folder_whose_files_can_not_be_executed_is_passed_over() {
    let folder = Folder::new("noexec");
    let program = folder.compile("contends.c", &[]);
    let file = folder.path("report.json");
    let line = format!(
        "unshare -m sh -c 'mkdir {0} && mount -t tmpfs -o noexec none {0} && XDG_CACHE_HOME={0} \
         {ANTIPHON} run --report {file} -- {program}'",
        folder.path("cache")
    );
    let output = shell(&[], &line);
    if stderr(&output).contains("Operation not permitted") || stderr(&output).contains("unshare:") {
        skipped("mounts are not allowed here");
        return;
    }
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(waits(&report(&folder)) > 0, "{}", stderr(&output));
}

/// A failure after CMD has ended is reported, and does not replace CMD's exit code.
#[test]
fn a_report_that_can_not_be_written_does_not_hide_how_the_program_ended() {
    let full = ["run".to_owned(), "--report".to_owned(), "/dev/full.json".to_owned()];
    let refused = shell(&full, "$A sh -c 'exit 3'");
    // Detected before CMD is started.
    assert!(matches!(refused.status.code(), Some(125 | 3)), "{}", stderr(&refused));
    let folder = Folder::new("unwritten");
    let place = folder.path("gone");
    std::fs::create_dir(&place).expect("a folder");
    let report = ["run".to_owned(), "--report".to_owned(), format!("{place}/report.json")];
    for (code, expected) in [(3, 3), (0, 125)] {
        std::fs::create_dir_all(&place).expect("a folder");
        let line = format!("$A sh -c 'rm -r {place}; exit {code}'");
        let output = shell(&report, &line);
        assert_eq!(output.status.code(), Some(expected), "{}", stderr(&output));
        assert!(stderr(&output).contains("report.json"), "{}", stderr(&output));
    }
    let mut out = std::io::stderr();
    assert!(out.flush().is_ok());
}
