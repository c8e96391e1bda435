//! Traces of hogs: the functions that they are in.

use std::hint::black_box;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, yield_now};
use antiphon::look;
use antiphon::pool::{Builder, Hog, JoinHandle, Pool};

const PATIENCE: Duration = Duration::from_millis(20);
/// If a hog is not named by then, the test fails.
const FOR_EVER: Duration = Duration::from_secs(60);

fn named(threads: usize) -> Builder {
    Pool::builder().threads(threads).name("named").patience(PATIENCE).name_hogs(true)
}

fn fibers(builder: Builder) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { builder.fibers(STACK_BYTES) }
}

// Each function ends with another operation: the frame of a tail call would be missing.

#[inline(never)]
fn spins_until(over: &AtomicBool) -> bool {
    let begun = Instant::now();
    while !over.load(Relaxed) && begun.elapsed() < FOR_EVER {
        std::hint::spin_loop();
    }
    black_box(over.load(Relaxed))
}

/// Sleeps in a system call, and calls it again when it was interrupted.
#[inline(never)]
fn sleeps_until(over: &AtomicBool) -> bool {
    let begun = Instant::now();
    while !over.load(Relaxed) && begun.elapsed() < FOR_EVER {
        thread::sleep(PATIENCE / 4);
    }
    black_box(over.load(Relaxed))
}

#[inline(never)]
fn calls_it(hog: fn(&AtomicBool) -> bool, over: &AtomicBool) -> bool {
    black_box(hog(over))
}

struct Running {
    over: Arc<AtomicBool>,
    task: JoinHandle<bool>,
}

fn begin(pool: &Pool, hog: fn(&AtomicBool) -> bool) -> Running {
    let over = Arc::new(AtomicBool::new(false));
    let ends = over.clone();
    Running { task: pool.spawn(move || calls_it(hog, &ends)), over }
}

impl Running {
    /// Ends the hog; checks that it has run until now.
    fn end(self) {
        self.over.store(true, Relaxed);
        assert!(self.task.join().expect("no panic"), "it was not named in time");
    }

    fn is_there(&self) -> bool {
        !self.task.is_finished()
    }
}

/// Returns the first hog with a trace.
fn first_named(pool: &Pool, running: &Running) -> Hog {
    loop {
        if let Some(hog) = pool.hogs().into_iter().find(|hog| hog.trace.is_some()) {
            return hog;
        }
        assert!(running.is_there(), "{:?}", pool.hogs());
        thread::sleep(PATIENCE / 4);
    }
}

/// Returns whether the text contains all names, in this order: each function calls the one before.
fn are_in_order(text: &str, names: &[&str]) -> bool {
    let found: Vec<_> = names.iter().map(|name| text.find(name)).collect();
    found.iter().all(Option::is_some) && found.is_sorted()
}

fn is_named(pool: &Pool, hog: fn(&AtomicBool) -> bool, name: &str) {
    let running = begin(pool, hog);
    let hog = first_named(pool, &running);
    running.end();
    let text = hog.to_string();
    assert!(hog.thread.starts_with("named-"), "{text}");
    assert!(hog.seen >= PATIENCE, "{text}");
    assert!(are_in_order(&text, &[name, "calls_it"]), "{text}");
    assert!(text.contains("hog_names.rs:"), "{text}");
}

#[test]
fn a_function_that_spins_is_named() {
    is_named(&named(2).build().expect("a pool"), spins_until, "spins_until");
}

#[test]
fn one_that_waits_in_the_kernel_is_named_and_goes_on() {
    is_named(&named(1).spares(0).build().expect("a pool"), sleeps_until, "sleeps_until");
}

/// The frames go up to the fiber's first function; those below belong to its thread.
#[test]
fn a_fiber_that_spins_is_named() {
    let pool = fibers(named(1)).spares(0).build().expect("fibers");
    is_named(&pool, spins_until, "spins_until");
    let hogs = pool.hogs();
    let trace = hogs.iter().find_map(|hog| hog.trace.as_ref()).expect("it was named");
    let last = trace.frames.last().expect("it was somewhere");
    assert!(!last.name.contains("start_thread"), "{trace:?}");
    assert!(trace.frames.iter().all(|frame| !frame.name.contains("serve")), "{trace:?}");
}

#[test]
fn a_census_says_where_a_thread_is_that_does_not_answer() {
    let pool = fibers(named(1)).spares(0).build().expect("fibers");
    let running = begin(&pool, spins_until);
    let census = loop {
        let census = pool.fibers(10, PATIENCE);
        if census.threads.iter().any(|thread| thread.busy.is_some()) {
            break census.to_string();
        }
        assert!(running.is_there(), "{census}");
    };
    running.end();
    assert!(
        are_in_order(&census, &["named-0: in one task", "spins_until", "calls_it"]),
        "{census}"
    );
}

/// Hogs are reported as long as they last, and afterwards.
#[test]
fn who_looks_at_the_program_is_told_of_hogs() {
    let pool = fibers(named(1)).spares(0).name("told").build().expect("fibers");
    let looks = || {
        let address = look::address(std::process::id()).expect("ours");
        let mut socket = UnixStream::connect_addr(&address).expect("somebody listens");
        socket.write_all(b"antiphon-look 1\n").expect("it is read");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let hogs = answer.split_once("\"name\":\"told\"").expect("the pool").1;
        let hogs = hogs.split_once("\"latest_hogs\":[").expect("its hogs").1;
        hogs.split_once(",\"latency\":").expect("the next key").0.to_owned()
    };
    look::open().expect("a socket");
    let running = begin(&pool, spins_until);
    first_named(&pool, &running);
    let told = looks();
    running.end();
    if told.contains("{\"name\":\"spins_until\"") {
        // Without the name of its module, it is not known whose function it is.
        let why = "skipped: modules are named with CARGO_PROFILE_DEV_DEBUG=full only";
        assert!(writeln!(io::stderr(), "{why}").is_ok());
        return;
    }
    let user = "\"user\":{\"name\":\"hog_names::spins_until\"";
    assert!(told.contains("\"thread\":\"told-0\"") && told.contains(user), "{told}");
    assert!(told.contains("\"ago_ms\":null"), "{told}");
    while looks().contains("\"ago_ms\":null") {}
}

/// A thread may be interrupted anywhere, even in the middle of a switch.
#[test]
fn threads_that_switch_may_be_looked_at_at_any_time() {
    let pool = fibers(named(2)).build().expect("fibers");
    let (over, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let yields = (0..8).map(|_| {
        let (over, begun) = (over.clone(), begun.clone());
        pool.spawn(move || {
            begun.fetch_add(1, Relaxed);
            while !over.load(Relaxed) {
                yield_now();
            }
        })
    });
    let yields: Vec<_> = yields.collect();
    while begun.load(Relaxed) < 8 {
        thread::yield_now();
    }
    let glances = antiphon_linux::glance::Glances::new().expect("a signal");
    assert!(glances.signal() >= libc::SIGRTMIN());
    let (mut asked, mut looks) = (0, 0);
    // A thread that does not answer within the time, zero, is looked at: all are, unless this
    // thread is preempted.
    while asked < 20 || looks == 0 {
        let census = pool.fibers(1, Duration::ZERO);
        looks += census.threads.iter().filter(|thread| thread.busy.is_some()).count();
        asked += 1;
    }
    over.store(true, Relaxed);
    yields.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
}

#[test]
fn a_pool_without_patience_names_nobody() {
    let error = Pool::builder().threads(1).name_hogs(true).build().expect_err("no patience");
    assert!(error.to_string().contains("patience"), "{error}");
    let pool = Pool::builder().threads(1).patience(PATIENCE).build().expect("a pool");
    let running = begin(&pool, spins_until);
    while pool.hogs().is_empty() {
        thread::yield_now();
    }
    running.end();
    assert!(pool.hogs()[0].trace.is_none());
}
