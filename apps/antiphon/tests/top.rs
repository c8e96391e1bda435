//! `top`: finds a running program, shows its waiting threads, and restores the terminal.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};

use common::live::{Live, modes};
use common::{FRAME, Folder, antiphon, has_keys, json, output, stderr};

/// A program under `run` in which a thread waits until this is dropped.
struct Waits {
    runner: Child,
    _folder: Folder,
}

impl Waits {
    fn new(test: &str) -> Self {
        let folder = Folder::new(test);
        let program = folder.compile("waits.c", &[]);
        let mut runner = antiphon(&["run", "--", &program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let mut line = String::new();
        let said = runner.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        assert!(matches!(said, Some(Ok(6))), "{said:?}: {line}");
        Self { runner, _folder: folder }
    }

    fn pid(&self) -> String {
        self.runner.id().to_string()
    }

    /// The process of the program itself.
    fn program(&self) -> String {
        let pid = self.runner.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.expect("children").trim().to_owned()
    }

    fn end(&mut self) {
        drop(self.runner.stdin.take());
        assert!(self.runner.wait().is_ok_and(|status| status.success()));
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        // If it has not ended, a test has failed already.
        let _ = self.runner.kill();
        let _ = self.runner.wait();
    }
}

#[test]
fn a_waiting_thread_is_found_by_the_process_of_either() {
    let waits = Waits::new("top");
    for pid in [waits.pid(), waits.program()] {
        let look = json(&["top", "--json", &pid]);
        has_keys(&look, &FRAME);
        has_keys(&look, &["program", "pid", "runs", "wall_s", "threads", "waiting", "locks"]);
        assert_eq!((&look["pid"], &look["runs"]), (&waits.runner.id().into(), &true.into()));
        let waiting = look["waiting"].as_array().expect("a list");
        assert_eq!(waiting.len(), 1, "{look:#}");
        let site = waiting[0]["site"].as_str();
        assert!(site.is_some_and(|site| site.starts_with("wait_here+")), "{look:#}");
        assert_eq!(look["locks"][0]["still_waiting"], 1, "{look:#}");
        assert!(look["locks"][0]["wait_ns"]["sum"].as_u64() > Some(0), "{look:#}");
    }
    // Without a terminal, one look is printed; without an argument, the only process is shown, or a
    // list.
    let once = output(&["top", &waits.pid()]);
    let text = String::from_utf8_lossy(&once.stdout).into_owned();
    assert!(once.status.success() && text.contains("1 waiting"), "{text}");
    let row = text.lines().find(|line| line.starts_with("wait_here+"));
    assert!(row.is_some() && !text.contains('\x1b'), "{text}");
    let any = output(&["top"]);
    let listed = stderr(&any).contains(&waits.pid()) && any.status.code() == Some(2);
    let only = String::from_utf8_lossy(&any.stdout).contains(&waits.pid());
    assert!(listed || only && any.status.success(), "{any:?}");
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let myself = std::process::id().to_string();
    for (what, code, words) in [
        (myself.as_str(), 2, "antiphon run -- CMD"),
        ("999999999", 2, "there is no process"),
        ("/proc/self/exe", 2, "not a recording"),
        ("/no/such/file", 2, "No such file"),
    ] {
        let wrong = output(&["top", what]);
        let said = stderr(&wrong);
        assert_eq!(wrong.status.code(), Some(code), "{what}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{what}: {said}");
    }
}

#[test]
fn a_recording_file_is_shown_too() {
    let folder = Folder::new("top-file");
    let path = folder.path("recording");
    let scope = antiphon_record::Scope::Full;
    antiphon_record::Recording::create(path.as_ref(), scope).expect("a recording");
    let look = json(&["top", "--json", &path]);
    assert_eq!((&look["pid"], &look["profile"]), (&serde_json::Value::Null, &true.into()));
    assert_eq!(look["program"], path);
}

#[test]
fn on_a_terminal_it_is_live_and_leaves_when_told_so() {
    let mut waits = Waits::new("top-live");
    let mut live = Live::new(&waits.pid());
    live.sees("wait_here+");
    assert_ne!(modes(&live.theirs) & libc::ICANON, live.before & libc::ICANON);
    live.sees("sorted by threads blocked");
    live.ours.write_all(b"s").expect("a key");
    live.sees("sorted by waits");
    // It looks repeatedly: the age grows.
    let first = live.age();
    assert!((0..10).any(|_| live.age() != first), "{first}");
    live.ours.write_all(b"q").expect("a key");
    live.ends();

    // It also ends on a signal, on Ctrl-C, and when the program ends.
    let mut live = Live::new(&waits.pid());
    live.sees("wait_here+");
    // SAFETY: a child that has not been waited for.
    unsafe { libc::kill(live.top.id().cast_signed(), libc::SIGTERM) };
    live.ends();
    let mut live = Live::new(&waits.pid());
    live.sees("wait_here+");
    live.ours.write_all(b"\x03").expect("a key");
    live.ends();
    let mut live = Live::new(&waits.pid());
    live.sees("1 waiting");
    waits.end();
    live.ends();
}
