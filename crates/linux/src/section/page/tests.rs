//! A thread beside schedulers that a test plays: their socket, and a page for each.

use std::fs::{self, File};
use std::os::fd::{AsFd as _, FromRawFd as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use antiphon_hints::{MAGIC, PAGE_BYTES, VERSION};

use super::*;
use crate::local;

/// Where words of slot 1 are in the page, as its layout has them.
const SECTION: u64 = 128 + 8;
const SEEN: u64 = 128 + 64;
const WANTED: u64 = SEEN + 28;
const WAITING: u64 = SEEN + 56;
/// And of its head.
const STALLED: u64 = 12;
/// Longer than it takes to notice an end or to look again.
const LATE_NS: u64 = 2_000_000_000;

/// A scheduler of all threads: gives its page to processes that connect.
struct Played {
    page: File,
    listener: UnixListener,
    socket: PathBuf,
}

impl Played {
    fn start(socket: &str) -> Self {
        // SAFETY: makes a file without a name, which nothing else knows.
        let page = unsafe { File::from_raw_fd(libc::memfd_create(c"page".as_ptr(), 0)) };
        page.set_len(PAGE_BYTES as u64).expect("memory");
        let head = [MAGIC, VERSION, 1].map(u32::to_ne_bytes).concat();
        page.write_all_at(&head, 0).expect("memory");
        let listener = UnixListener::bind(socket).expect("a socket");
        Self { page, listener, socket: socket.into() }
    }

    fn serve(&self) {
        let (stream, _) = self.listener.accept().expect("a connection");
        send(&stream, &self.page);
    }

    fn word(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.page.read_exact_at(&mut bytes, at).expect("memory");
        u32::from_ne_bytes(bytes)
    }

    fn sees(&self, at_ns: u64) {
        self.page.write_all_at(&at_ns.to_ne_bytes(), SEEN).expect("memory");
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        fs::remove_file(&self.socket).expect("the socket is there");
    }
}

/// Sends the page, and something in place of the program that registers.
fn send(stream: &UnixStream, page: &File) {
    antiphon_hints::send(stream, [page.as_fd(); 2]).expect("the other end is there");
}

/// A door whose socket is the test's own, and which gives each thread slot 1.
fn door(name: &str) -> &'static Door {
    let socket = std::env::temp_dir().join(format!("antiphon-{name}-{}", std::process::id()));
    let socket: &'static str = Box::leak(socket.to_str().expect("a path").into());
    let register = |hints: &'static Hints| hints.page().slots.first();
    Box::leak(Box::new(Door { connections: Connections::new(socket), register }))
}

/// Connects while the scheduler answers.
fn connect(door: &'static Door, scheduler: &Played) {
    std::thread::scope(|scope| {
        scope.spawn(|| scheduler.serve());
        door.connections.connect();
    });
}

/// Makes the thread believe that the scheduler has not written for longer than it may take.
fn is_late(scheduler: &Played, thread: &Thread) {
    let now_ns = clock::now(Clock::Monotonic);
    scheduler.sees(now_ns.saturating_sub(LATE_NS));
    thread.slot_since_ns.store(now_ns.saturating_sub(LATE_NS), Relaxed);
}

#[test]
fn a_thread_whose_scheduler_has_ended_comes_to_the_next_one() {
    let door = door("next");
    let first = Played::start(door.connections.socket);
    first.page.write_all_at(&7_u32.to_ne_bytes(), SECTION).expect("memory");
    connect(door, &first);
    local::with(|thread| {
        assert!(door.register(thread));
        assert_eq!(first.word(SECTION), 0, "of the former thread of the slot");
        begin(thread);
        assert_eq!(first.word(SECTION), 1);
        assert!(!door.must_ask(thread, true), "it has only just registered");
        is_late(&first, thread);
        first.sees(clock::now(Clock::Monotonic));
        assert!(!door.must_ask(thread, true), "the scheduler has written");
        end(thread);
        begin(thread);

        // The scheduler ends, and has wanted the CPU before.
        first.page.write_all_at(&1_u32.to_ne_bytes(), WANTED).expect("memory");
        is_late(&first, thread);
        let own = slot(thread).expect("it has not noticed");
        assert!(!is_wanted(thread, own), "a wish from before the end");
        assert!(door.must_ask(thread, true), "SERVED-1");
        assert_eq!(first.word(SECTION), 0, "SERVED-3");
        begin(thread);
        assert_eq!(first.word(SECTION), 0, "it has no slot");
        assert!(!door.register(thread), "SERVED-2");
        let page = first.page.try_clone().expect("a descriptor");
        drop(first);
        assert!(!door.must_ask(thread, false), "there is none");

        // Another one comes. The search does not look for it all the time.
        let next = Played::start(door.connections.socket);
        let until_ns = clock::now(Clock::Monotonic) + LATE_NS;
        let mut asked = false;
        next.listener.set_nonblocking(true).expect("a socket");
        while !door.must_ask(thread, false) {
            if let Ok((stream, _)) = next.listener.accept() {
                assert!(!core::mem::replace(&mut asked, true), "one connection");
                send(&stream, &next.page);
            }
            assert!(clock::now(Clock::Monotonic) < until_ns + 10 * LATE_NS, "not found");
        }
        assert!(door.register(thread));
        begin(thread);
        assert_eq!(next.word(SECTION), 1);
        let mut former = [0; 4];
        page.read_exact_at(&mut former, SECTION).expect("memory");
        assert_eq!(former, [0; 4], "nothing is told to the former one");
        assert!(!door.must_ask(thread, true));
        end(thread);
        assert_eq!(next.word(SECTION), 0);
        thread.slot.store(null_mut(), Relaxed);
    });
}

/// As does one that has not noticed itself, or that had no slot.
#[test]
fn threads_ask_again_when_another_scheduler_has_come() {
    let door = door("others");
    let first = Played::start(door.connections.socket);
    connect(door, &first);
    local::with(|thread| assert!(door.register(thread)));
    let number = door.connections.number();
    door.connections.lose(number);
    drop(first);
    let next = Played::start(door.connections.socket);
    connect(door, &next);
    assert_eq!(door.connections.number(), number + 1);
    local::with(|thread| {
        assert!(door.must_ask(thread, false));
        assert!(door.register(thread));
        assert!(!door.must_ask(thread, false), "it has asked");
        thread.slot.store(null_mut(), Relaxed);
    });
}

/// Waiters are told whether threads wait for a CPU, and whether one of the process has lost its own
/// in a section: a spin ends then.
#[test]
fn waiters_hear_of_threads_without_a_cpu() {
    let door = door("waiters");
    let scheduler = Played::start(door.connections.socket);
    connect(door, &scheduler);
    local::with(|thread| {
        assert_eq!((threads_wait(thread), stalled(thread).is_some()), (None, false));
        assert!(door.register(thread));
        assert_eq!(threads_wait(thread), None, "the scheduler has not written yet");
        scheduler.sees(clock::now(Clock::Monotonic));
        assert_eq!(threads_wait(thread), Some(false));
        scheduler.page.write_all_at(&3_u32.to_ne_bytes(), WAITING).expect("memory");
        assert_eq!(threads_wait(thread), Some(true));
        let count = stalled(thread).expect("it has a page");
        assert_eq!(count.load(Relaxed), 0);
        scheduler.page.write_all_at(&1_u32.to_ne_bytes(), STALLED).expect("memory");
        assert_eq!(count.load(Relaxed), 1);
        thread.slot.store(null_mut(), Relaxed);
        assert!(threads_wait(thread).is_none() && stalled(thread).is_none());
    });
}

/// SECTION-5, CONNECT-3.
#[test]
fn the_child_of_a_fork_has_no_page() {
    let door = door("child");
    let scheduler = Played::start(door.connections.socket);
    connect(door, &scheduler);
    local::with(|thread| assert!(door.register(thread)));
    // SAFETY: the child stores to atomics and makes system calls, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_alone = local::with(|thread| {
            begin(thread);
            let asks = door.must_ask(thread, true) || door.must_ask(thread, false);
            !asks && !door.register(thread)
        });
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!is_alone)) };
    }
    assert!(child > 0);
    let mut status = -1;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!((status, scheduler.word(SECTION)), (0, 0));
    local::with(|thread| thread.slot.store(null_mut(), Relaxed));
}
