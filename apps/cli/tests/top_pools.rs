//! `top` of programs that show their pools.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use antiphon::fiber::{STACK_BYTES, sleep};
use antiphon::pool::Pool;
use antiphon::{Latch, look};
use common::live::Live;
use common::{FRAME, antiphon, has_keys, json, output, stderr};
use serde_json::Value;

/// Has a process of this test be the program.
const IS_PROGRAM: &str = "TOP_POOLS_PROGRAM";

#[inline(never)]
fn waits_at_the_gate(gate: &Latch) {
    gate.wait();
    std::hint::black_box(());
}

/// What the program does, until its stdin ends: five fibers wait at a gate, one sleeps; and of
/// another pool a worker is in one task, and two wait behind it.
#[test]
fn program() {
    if std::env::var_os(IS_PROGRAM).is_none() {
        return;
    }
    // SAFETY: no thread-local is made by what waits.
    let gates = unsafe { Pool::builder().threads(2).fibers(STACK_BYTES).name("gates") }.build();
    let gates = gates.expect("fibers");
    let gate = Arc::new(Latch::new(1));
    for _ in 0..5 {
        let gate = gate.clone();
        let _waits = gates.spawn(move || waits_at_the_gate(&gate));
    }
    let _sleeps = gates.spawn(|| sleep(Duration::from_secs(3600)));
    let long = Pool::builder().threads(1).spares(0).name("long").build().expect("a thread");
    let (begins, began) = std::sync::mpsc::channel();
    let _reads = long.spawn(move || {
        begins.send(()).expect("it waits");
        std::io::stdin().read_to_end(&mut Vec::new())
    });
    let _behind = [long.spawn(|| ()), long.spawn(|| ())];
    began.recv().expect("it begins");
    while gates.fibers(0, Duration::from_secs(60)).waiting() < 6 {}
    println!("\nready");
    drop(long);
    // The fibers never end.
    std::process::exit(0);
}

/// That program, until this is dropped.
struct Shows(Child);

impl Shows {
    fn new(command: &mut Command) -> Self {
        let command = command.env(IS_PROGRAM, "1").env(look::VARIABLE, "1");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let ready = lines.any(|line| line.is_ok_and(|line| line == "ready"));
        assert!(ready, "it ended before");
        Self(child)
    }

    fn alone() -> Self {
        Self::new(Command::new(itself()).args(ARGUMENTS))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

const ARGUMENTS: [&str; 3] = ["program", "--exact", "--nocapture"];

fn itself() -> String {
    std::env::current_exe().expect("this program").display().to_string()
}

impl Drop for Shows {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Where it has not ended, a test has failed already.
        let _ = self.0.wait();
    }
}

fn pool<'a>(look: &'a Value, name: &str) -> &'a Value {
    let pools = look["pools"].as_array().expect("a list");
    pools.iter().find(|pool| pool["name"] == name).unwrap_or_else(|| panic!("{look:#}"))
}

#[test]
fn pools_are_shown_with_hogs_fibers_and_places() {
    let shows = Shows::alone();
    let look = json(&["top", "--json", &shows.pid()]);
    has_keys(&look, &FRAME);
    let ours = (&shows.0.id().into(), &true.into());
    assert_eq!((&look["pools_pid"], &look["runs"]), ours, "{look:#}");
    assert_eq!(look["pid"], look["pools_pid"], "{look:#}");
    let long = pool(&look, "long");
    let worker = &long["workers"][0];
    assert_eq!((&worker["worker"], &worker["seat"]), (&0.into(), &0.into()), "{long:#}");
    assert_eq!(worker["state"], "runs", "{long:#}");
    assert!(long["workers"][0]["for_ms"].as_u64() > Some(0), "{long:#}");
    assert_eq!((&long["shared"], &long["fibers"]), (&2.into(), &false.into()), "{long:#}");
    let gates = pool(&look, "gates");
    let waiting = gates["hosts"].as_array().expect("a list").iter();
    assert_eq!(waiting.filter_map(|host| host["waiting"].as_u64()).sum::<u64>(), 6, "{gates:#}");
    let place = &gates["places"][0];
    assert_eq!((&place["count"], &place["has_deadline"]), (&5.into(), &false.into()), "{gates:#}");
    assert_eq!(place["user"]["name"], "top_pools::waits_at_the_gate", "{gates:#}");
    assert_eq!(gates["places"][1]["has_deadline"], true, "{gates:#}");

    let once = output(&["top", "--once", &shows.pid()]);
    let text = String::from_utf8_lossy(&once.stdout).into_owned();
    assert!(once.status.success(), "{text}");
    println!("{text}");
    let has = |words: &[&str]| text.lines().any(|line| words.iter().all(|it| line.contains(it)));
    assert!(has(&["antiphon top: ", &shows.pid()]), "{text}");
    assert!(has(&["pool long", "1 thread", "1 in one task"]), "{text}");
    assert!(has(&["2 outside"]), "{text}");
    assert!(has(&["fibers: 0 may go on, 6 wait: 1 until a time"]), "{text}");
    let place = ["5", "Latch::wait", "top_pools::waits_at_the_gate", "top_pools.rs:"];
    assert!(has(&place), "{text}");
    assert!(has(&["a time", "top_pools::program"]), "{text}");

    // Without a process it is the only one, or one of a list.
    let any = output(&["top"]);
    let listed = stderr(&any).contains(&shows.pid()) && any.status.code() == Some(2);
    let only = String::from_utf8_lossy(&any.stdout).contains(&shows.pid());
    assert!(listed || only && any.status.success(), "{any:?}");
}

#[test]
fn a_live_look_ends_with_its_program() {
    let shows = Shows::alone();
    let mut live = Live::new(&shows.pid());
    live.sees("waits_at_the_gate");
    live.ours.write_all(b"q").expect("a key");
    live.ends();
    let mut live = Live::new(&shows.pid());
    live.sees("pool gates");
    drop(shows);
    live.ends();
}

#[test]
fn under_run_locks_and_pools_are_beside_each_other() {
    let program = itself();
    let arguments = [&["run", "--", program.as_str()][..], &ARGUMENTS].concat();
    let shows = Shows::new(&mut antiphon(&arguments));
    // Of antiphon run, whose program it is.
    let look = json(&["top", "--json", &shows.pid()]);
    has_keys(&look, &["locks", "waiting", "threads"]);
    assert_eq!(look["pid"], shows.0.id(), "{look:#}");
    assert_ne!(look["pools_pid"], look["pid"], "{look:#}");
    assert_eq!(pool(&look, "gates")["threads"], 2);
}

/// This process shows something else.
#[test]
fn another_version_and_garbage_are_refused() {
    let pid = std::process::id();
    let listener = UnixListener::bind_addr(&look::address(pid).expect("ours")).expect("a socket");
    for (answer, code, words) in [
        ("{\"antiphon_look\":2,\"pools\":[]}", 69, "version 2 of the protocol"),
        ("HTTP/1.1 400 Bad Request", 1, "garbled"),
        ("", 1, "garbled"),
        (
            "{\"antiphon_look\":1,\"error\":\"this program is another user's\"}",
            69,
            "another user's",
        ),
    ] {
        let asks = antiphon(&["top", "--once", &pid.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let (mut socket, _) = listener.accept().expect("it asks");
        let mut request = [0; 16];
        socket.read_exact(&mut request).expect("a request");
        assert_eq!(&request, b"antiphon-look 1\n");
        socket.write_all(answer.as_bytes()).expect("it reads");
        drop(socket);
        let wrong = asks.wait_with_output().expect("it ends");
        let said = stderr(&wrong);
        assert_eq!(wrong.status.code(), Some(code), "{answer}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{answer}: {said}");
    }
}
