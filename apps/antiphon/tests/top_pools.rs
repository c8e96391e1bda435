//! `top` for programs that show their pools.

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

/// The variable that makes a process of this test run the program.
const IS_PROGRAM: &str = "TOP_POOLS_PROGRAM";

#[inline(never)]
fn waits_at_the_gate(gate: &Latch) {
    gate.wait();
    std::hint::black_box(());
}

const PATIENCE: Duration = Duration::from_millis(5);

/// A pool whose only thread was occupied by one fiber for 20 times its patience, while another
/// fiber of the thread was runnable; that one was spawned in the line that is returned. A third
/// fiber now occupies the thread.
fn hogged() -> (Pool, u32) {
    let builder = Pool::builder().threads(1).spares(0).name("hogged").patience(PATIENCE);
    // SAFETY: waiting creates no thread-local.
    let pool = unsafe { builder.fibers(STACK_BYTES) }.build().expect("fibers");
    let told = Arc::new(Latch::new(1));
    let hogs = told.clone();
    // The first task that a thread makes is timed.
    let (line, beside) = std::thread::scope(|scope| {
        let spawns = || (line!(), pool.spawn(move || told.wait()));
        scope.spawn(spawns).join().expect("it spawns")
    });
    while pool.fibers(0, Duration::from_secs(60)).waiting() < 1 {}
    let hog = pool.spawn(move || {
        hogs.count_down(1);
        std::thread::sleep(20 * PATIENCE);
    });
    for fiber in [hog, beside] {
        fiber.join().expect("no panic");
    }
    // The account of a task is closed after the task ends.
    while pool.recording().tasks.iter().any(|task| !task.is_over) {}
    let _lasts = pool.spawn(|| std::thread::sleep(Duration::from_secs(3600)));
    while pool.hogs().len() < 2 {}
    (pool, line)
}

/// The program of these tests, until its stdin ends. Five fibers wait at a gate, and one sleeps; in
/// another pool a worker is in one task, and two tasks wait behind it; and one pool is [`hogged`].
#[test]
fn program() {
    if std::env::var_os(IS_PROGRAM).is_none() {
        return;
    }
    // SAFETY: waiting creates no thread-local.
    let gates = unsafe { Pool::builder().threads(2).fibers(STACK_BYTES).name("gates") }.build();
    let gates = gates.expect("fibers");
    let gate = Arc::new(Latch::new(1));
    for _ in 0..5 {
        let gate = gate.clone();
        let _waits = gates.spawn(move || waits_at_the_gate(&gate));
    }
    let _sleeps = gates.spawn(|| sleep(Duration::from_secs(3600)));
    let (_hogged, line) = hogged();
    let long = Pool::builder().threads(1).spares(0).name("long").build().expect("a thread");
    let (begins, began) = std::sync::mpsc::channel();
    let _reads = long.spawn(move || {
        begins.send(()).expect("it waits");
        std::io::stdin().read_to_end(&mut Vec::new())
    });
    let _behind = [long.spawn(|| ()), long.spawn(|| ())];
    began.recv().expect("it begins");
    while gates.fibers(0, Duration::from_secs(60)).waiting() < 6 {}
    println!("\nready {line}");
    drop(long);
    // The fibers never end.
    std::process::exit(0);
}

/// That program, until this is dropped, and the line of the source that spawned the hogged tasks.
struct Shows(Child, String);

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
        let ready = lines.find_map(|line| Some(line.ok()?.strip_prefix("ready ")?.to_owned()));
        Self(child, ready.expect("it ended before"))
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
        // If it has not ended, a test has failed already.
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

    // Without an argument, the only process is shown, or a list of several.
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
    // The program runs under antiphon run.
    let look = json(&["top", "--json", &shows.pid()]);
    has_keys(&look, &["locks", "waiting", "threads"]);
    assert_eq!(look["pid"], shows.0.id(), "{look:#}");
    assert_ne!(look["pools_pid"], look["pid"], "{look:#}");
    assert_eq!(pool(&look, "gates")["threads"], 2);
}

/// Shows where the time of fibers went, and which tasks took it.
#[test]
fn who_hogs_and_who_is_hogged_is_shown() {
    let shows = Shows::alone();
    let look = json(&["top", "--json", &shows.pid()]);
    let hogged = pool(&look, "hogged");
    let hogs = hogged["latest_hogs"].as_array().expect("a list");
    let times: Vec<_> = hogs.iter().map(|hog| hog["for_ms"].as_u64()).collect();
    assert_eq!(hogs.len(), 2, "{hogged:#}");
    assert!(hogs[0]["ago_ms"].is_null() && hogs[1]["ago_ms"].is_u64(), "{hogged:#}");
    assert!(times.iter().all(|ms| *ms >= Some(PATIENCE.as_millis() as u64)), "{hogged:#}");
    assert!(hogs.iter().all(|hog| hog["thread"] == "hogged-0"), "{hogged:#}");
    let latency = &hogged["latency"];
    let place = format!("top_pools.rs:{}:", shows.1);
    let is_it = |it: &&Value| it["place"].as_str().is_some_and(|it| it.contains(&place));
    let first = latency["by_place"].as_array().expect("a list").iter().find(is_it);
    let it = first.unwrap_or_else(|| panic!("{place} in {hogged:#}"));
    assert_eq!((&it["recorded"], &it["live"]), (&1.into(), &0.into()), "{hogged:#}");
    let max = |part: &str| it[part]["max"].as_u64().expect("a time");
    assert!(max("hogged_ns") > 0 && max("runnable_ns") >= max("hogged_ns"), "{hogged:#}");
    assert!(it["delayed_ns"].as_u64() >= Some(max("runnable_ns")), "{hogged:#}");
    let worst = latency["worst"].as_array().expect("a list");
    assert!(worst.iter().any(|task| is_it(&task) && task["is_over"] == true), "{hogged:#}");
    assert!(latency["window_ms"].is_u64() && latency["others"].is_null(), "{hogged:#}");
    assert_eq!(latency["hogged_ns"]["max"].as_u64(), Some(max("hogged_ns")), "{hogged:#}");
    // The tasks at the gate are alive, and were spawned in one line of the source.
    let gates = pool(&look, "gates");
    let live = gates["latency"]["by_place"].as_array().expect("a list").iter();
    let live = live.filter_map(|place| place["live"].as_u64()).sum::<u64>();
    assert_eq!(gates["latency"]["live"], live, "{gates:#}");
    assert!(live > 0 && gates["latest_hogs"] == Value::Array(Vec::new()), "{gates:#}");

    let once = output(&["top", "--once", &shows.pid()]);
    let text = String::from_utf8_lossy(&once.stdout).into_owned();
    println!("{text}");
    let has = |words: &[&str]| text.lines().any(|line| words.iter().all(|it| line.contains(it)));
    assert!(has(&["hog", "times", "longest", "last seen"]), "{text}");
    assert!(has(&["-", "2", "hogged-0", "now"]), "{text}");
    assert!(has(&["spawned at", "queued", "running", "waiting", "runnable", "hogged"]), "{text}");
    assert!(has(&[&place[..place.len() - 1], "p99", "ms"]), "{text}");
    assert!(has(&["most delayed"]) && has(&["hogged-0", "over"]), "{text}");
}

/// This process answers with something else.
#[test]
fn another_version_and_garbage_are_refused() {
    let pid = std::process::id();
    let listener = UnixListener::bind_addr(&look::address(pid).expect("ours")).expect("a socket");
    for (answer, code, words) in [
        ("{\"antiphon_look\":2,\"pools\":[]}", 69, "version 2 of the protocol"),
        ("HTTP/1.1 400 Bad Request", 1, "garbled"),
        ("", 1, "garbled"),
        (
            "{\"antiphon_look\":1,\"error\":\"this program belongs to another user\"}",
            69,
            "belongs to another user",
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
