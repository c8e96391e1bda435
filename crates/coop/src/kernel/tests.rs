//! A loop beside a scheduler that a test plays: its socket, its page, and its answers.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use antiphon_hints::{Hints, MAGIC, PAGE_BYTES, Registered, VERSION};

use super::*;
use crate::event_loop::{Event, Loop, Step};
use crate::{Domain, DomainOptions, WEIGHT};

/// Where the words of slot 1 are in the page, as its layout has them.
const SLOT: usize = 128;
const UNTIL: usize = SLOT + 64 + 8;
const SEEN: usize = SLOT + 64;
const RELEASE: usize = SLOT;
const POLLS: usize = SLOT + 12;
const GROUP: usize = SLOT + 24;

/// A scheduler that gives a page to those that connect, and writes the time there.
struct Played {
    page: Arc<File>,
    socket: &'static str,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Played {
    fn start(socket: &'static str, is_whole: bool) -> Self {
        // SAFETY: makes a file without a name, which nothing else knows.
        let page = Arc::new(unsafe { File::from_raw_fd(libc::memfd_create(c"page".as_ptr(), 0)) });
        page.set_len(PAGE_BYTES as u64).expect("memory");
        let head = [MAGIC, VERSION, u32::from(is_whole)].map(u32::to_ne_bytes).concat();
        page.write_all_at(&head, 0).expect("memory");
        let listener = UnixListener::bind(socket).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let (stop, written) = (Arc::<AtomicBool>::default(), page.clone());
        let flag = stop.clone();
        let thread = spawn(move || {
            // Relaxed: the flag says nothing about other memory.
            while !flag.load(Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => send(&stream, &written),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
                put(&written, SEEN, now_ns());
                sleep(Duration::from_millis(1));
            }
        });
        Self { page, socket, stop, thread: Some(thread) }
    }

    /// Ends as a scheduler does that is killed: its socket stays, without a listener.
    fn end(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic");
        }
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        self.end();
        fs::remove_file(self.socket).expect("the socket is there");
    }
}

fn put(page: &File, at: usize, value: u64) {
    page.write_all_at(&value.to_ne_bytes(), at as u64).expect("memory");
}

fn word(page: &File, at: usize) -> u64 {
    let mut bytes = [0; 8];
    page.read_exact_at(&mut bytes, at as u64).expect("memory");
    u64::from_ne_bytes(bytes)
}

/// Sends the page, and something in place of the program that registers.
fn send(stream: &UnixStream, page: &File) {
    antiphon_hints::send(stream, [page.as_fd(); 2]).expect("the other end is there");
}

/// A tier that counts what it is asked.
#[derive(Clone, Default)]
struct Counted(Rc<RefCell<(u32, u32)>>);

impl Counted {
    fn polls(&self) -> u32 {
        self.0.borrow().0
    }

    fn rests(&self) -> u32 {
        self.0.borrow().1
    }
}

impl Cooperate for Counted {
    fn poll(&mut self, _: Ask, _: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.0.borrow_mut().0 += 1;
        Answer { poll_at_ns: Some(now_ns() + 1_000_000), ..Answer::default() }
    }

    fn rest(&mut self) {
        self.0.borrow_mut().1 += 1;
    }
}

fn socket(name: &str) -> &'static str {
    let path = std::env::temp_dir().join(format!("antiphon-{}-{name}", std::process::id()));
    Box::leak(path.to_str().expect("a name").to_owned().into_boxed_str())
}

fn scheduled<C: Cooperate>(socket: &'static str, only_whole: bool, inner: C) -> Scheduled<C> {
    let register = |hints: Arc<Hints>| {
        Registered::without_scheduler(hints, 1).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let door = Door { socket, register };
    Scheduled { door, only_whole, ..Scheduled::over(inner) }
}

/// Polls as a loop with work does, until that is so.
fn until<C: Cooperate>(tier: &mut Scheduled<C>, is_so: impl Fn(&Scheduled<C>) -> bool) {
    let begun_ns = now_ns();
    while !is_so(tier) {
        assert!(now_ns() < begun_ns + 20_000_000_000, "{:?}", tier.served);
        tier.poll(Ask { release_ns: Some(7), importance: Some(3) }, &mut |_| ());
        sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_loop_is_under_the_scheduler_while_there_is_one_and_else_by_its_tier() {
    let path = socket("there");
    let inner = Counted::default();
    let mut tier = scheduled(path, false, inner.clone());
    let is_served = |tier: &Scheduled<Counted>| tier.served.is_served();
    // There is none yet.
    until(&mut tier, |_| inner.polls() == 3);
    assert!(!is_served(&tier));
    for round in 1..=2 {
        let mut played = Played::start(path, false);
        until(&mut tier, is_served);
        assert_eq!(inner.rests(), round);
        let (told, polls) = (word(&played.page, RELEASE), inner.polls());
        assert_eq!(told, 7);
        let before = word(&played.page, POLLS) as u32;
        let answer = tier.poll(Ask { release_ns: Some(9), importance: Some(3) }, &mut |_| ());
        assert_eq!((word(&played.page, RELEASE), inner.polls()), (9, polls));
        assert_eq!(word(&played.page, POLLS) as u32, before + 1);
        assert!(answer.poll_at_ns.is_some());
        tier.tell(Some(11));
        assert_eq!(word(&played.page, RELEASE), 11);
        // It is killed: the loop is by its tier again, and stays there.
        played.end();
        until(&mut tier, |tier| !is_served(tier));
        let answer = tier.poll(Ask { release_ns: Some(7), importance: Some(3) }, &mut |_| ());
        assert!(answer.poll_at_ns.is_some() && inner.polls() == polls + 1);
        drop(played);
    }
}

#[test]
fn a_poll_that_begins_with_an_old_page_is_the_last_under_the_scheduler() {
    let path = socket("ends");
    let mut tier = scheduled(path, false, Counted::default());
    let mut played = Played::start(path, false);
    until(&mut tier, |tier| tier.served.is_served());
    played.end();
    let old_ns = word(&played.page, SEEN) + FRESH_NS;
    let mut begun_ns = 0;
    while tier.served.is_served() {
        assert!(begun_ns < old_ns, "it believed a page that was {} ns old", begun_ns - old_ns);
        begun_ns = now_ns();
        tier.poll(Ask { release_ns: None, importance: Some(0) }, &mut |_| ());
    }
}

#[test]
fn only_a_scheduler_of_all_threads_is_taken_unasked() {
    let path = socket("whole");
    let inner = Counted::default();
    for is_whole in [false, true] {
        let _played = Played::start(path, is_whole);
        let mut tier = scheduled(path, true, inner.clone());
        if is_whole {
            until(&mut tier, |tier| tier.served.is_served());
        } else {
            until(&mut tier, |tier| matches!(tier.state, State::Away { look_ns } if look_ns > 0));
            assert!(!tier.served.is_served());
        }
    }
    assert_eq!(inner.rests(), 1);
}

#[test]
fn no_poll_waits_for_a_scheduler_that_does_not_answer() {
    let path = socket("silent");
    let _listener = UnixListener::bind(path).expect("a socket");
    let inner = Counted::default();
    let mut tier = scheduled(path, false, inner.clone());
    until(&mut tier, |_| inner.polls() == 100);
    assert!(matches!(tier.state, State::Asked(_)));
    fs::remove_file(path).expect("the socket is there");
}

#[test]
fn a_loop_goes_on_when_its_scheduler_ends_in_the_middle() {
    let path = socket("loop");
    let played = Arc::new(std::sync::Mutex::new(Played::start(path, false)));
    let (tell, told) = mpsc::channel();
    let inner = Counted::default();
    let tier = scheduled(path, false, inner.clone());
    let served = tier.served();
    let mut events = Loop::new().expect("files");
    events.cooperate_by(Box::new(tier));
    let mut step = 0;
    let begun_ns = now_ns();
    events.submit(Event::best_effort_in_steps(1, move |_| {
        assert!(now_ns() < begun_ns + 20_000_000_000, "step {step}");
        let played = played.lock().expect("no panic");
        match (step, served.is_served()) {
            (0, true) => {
                // The loop is to go on for some time, by the scheduler's word.
                put(&played.page, UNTIL, now_ns() + 1_000_000_000);
                drop(played);
                step = 1;
            }
            (1, true) => {
                let mut played = played;
                played.end();
                step = 2;
            }
            (2, false) => {
                step = 3;
                tell.send(()).expect("it is waited for");
                return Step::Done;
            }
            _ => {}
        }
        Step::More(1)
    }));
    let _ = events.run();
    assert!(told.try_recv().is_ok() && inner.polls() > 0);
}

#[test]
fn members_of_a_domain_do_not_wait_for_one_that_is_under_the_scheduler() {
    let path = socket("rests");
    let options = DomainOptions::on(antiphon_linux::allowed()[0]);
    let domain = Domain::private(options).expect("a domain");
    let member = domain.join(Group::Own, WEIGHT).expect("a place");
    let mut tier = scheduled(path, false, member);
    let _played = Played::start(path, false);
    until(&mut tier, |tier| tier.served.is_served());
    let other = spawn({
        let domain = domain.clone();
        move || {
            let mut member = domain.join(Group::Own, WEIGHT).expect("a place");
            let ask = Ask { release_ns: None, importance: Some(0) };
            (0..100).for_each(|_| _ = member.poll(ask, &mut |_| ()));
        }
    });
    while !other.is_finished() {
        tier.poll(Ask { release_ns: None, importance: Some(0) }, &mut |_| ());
    }
    other.join().expect("no panic");
    // A member that is waited for, and does not poll, is demoted.
    let mine = tier.inner().status().expect("it is a member");
    assert_eq!(mine.demotions, [0; 3]);
}

/// Forks, and returns whether all of `child` is so in the child.
fn is_so_in_a_child(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child polls tiers, which start no thread and take no lock, and ends.
    let process = unsafe { libc::fork() };
    if process == 0 {
        // SAFETY: ends the child, without the parent's handlers.
        unsafe { libc::_exit(i32::from(!child())) };
    }
    assert!(process > 0, "{}", io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: waits for the child, and writes a number.
    assert_eq!(unsafe { libc::waitpid(process, &mut status, 0) }, process);
    status == 0
}

/// Moves the socket away, so that a child finds no scheduler of its own.
fn without_socket(path: &str, is_so: impl FnOnce() -> bool) -> bool {
    let elsewhere = format!("{path}-away");
    fs::rename(path, &elsewhere).expect("the socket is there");
    let is_so = is_so();
    fs::rename(&elsewhere, path).expect("the socket is there");
    is_so
}

const ASK: Ask = Ask { release_ns: Some(9), importance: Some(3) };

#[test]
fn a_child_does_not_touch_its_parents_page_and_goes_on_by_the_inner_tier() {
    let path = socket("forks");
    let inner = Counted::default();
    let mut tier = scheduled(path, false, inner.clone());
    let played = Played::start(path, false);
    until(&mut tier, |tier| tier.served.is_served());
    let (before, polls) = (word(&played.page, POLLS) as u32, inner.polls());
    let is_so = without_socket(path, || {
        is_so_in_a_child(|| {
            tier.tell(Some(5));
            let told = tier.present();
            tier.poll(ASK, &mut |_| ());
            told.is_none() && inner.polls() == polls + 1 && !tier.served.is_served()
        })
    });
    assert!(is_so, "the child has touched the page, or takes itself for served");
    assert_eq!((word(&played.page, POLLS) as u32, word(&played.page, RELEASE)), (before, 7));
    until(&mut tier, |tier| tier.served.is_served());
}

#[test]
fn a_child_does_not_take_the_answer_that_is_for_its_parent() {
    let path = socket("answers");
    let inner = Counted::default();
    let mut tier = scheduled(path, false, inner.clone());
    let played = Played::start(path, false);
    tier.poll(ASK, &mut |_| ());
    let State::Asked(connecting) = &tier.state else { panic!("it has not asked") };
    assert!(connecting.is_own());
    let is_so = without_socket(path, || {
        is_so_in_a_child(|| {
            // By then the answer is there.
            sleep(Duration::from_millis(20));
            tier.poll(ASK, &mut |_| ());
            matches!(tier.state, State::Away { .. }) && inner.polls() == 2
        })
    });
    assert!(is_so, "the child is still connected");
    until(&mut tier, |tier| tier.served.is_served());
    drop(played);
}

#[test]
fn a_wait_that_forks_does_not_touch_the_page_in_the_child() {
    let path = socket("waits");
    let mut tier = scheduled(path, false, Counted::default());
    let played = Played::start(path, false);
    until(&mut tier, |tier| tier.served.is_served());
    let parent = std::process::id();
    let idle = Ask { importance: None, ..ASK };
    let mut child = 0;
    // SAFETY: the child goes on to the end of the poll, and ends.
    tier.poll(idle, &mut |_| child = unsafe { libc::fork() });
    if std::process::id() != parent {
        // SAFETY: ends the child, without the parent's handlers.
        unsafe { libc::_exit(i32::from(tier.served.is_served())) };
    }
    let mut status = 0;
    // SAFETY: waits for the child, and writes a number.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child has touched the page, or takes itself for served");
    until(&mut tier, |tier| tier.served.is_served());
    drop(played);
}

#[test]
fn a_loop_keeps_the_group_of_its_tier_and_tells_that_it_is_served() {
    let path = socket("group");
    let played = Played::start(path, true);
    let mut events = Loop::new().expect("files");
    let served = events.waits().served();
    let tier = scheduled(path, false, Counted::default()).sharing(Group::Number(7));
    let (mut tier, switch) = crate::Switched::new(tier);
    // A tier over it passes the question on.
    assert!(tier.reports_to(&Arc::default()));
    drop(switch);
    events.cooperate_by(Box::new(tier));
    let begun_ns = now_ns();
    events.submit(Event::best_effort_in_steps(1, move |_| {
        assert!(now_ns() < begun_ns + 20_000_000_000, "it does not tell that it is served");
        if served.is_served() { Step::Done } else { Step::More(1) }
    }));
    let _ = events.run();
    assert_eq!(word(&played.page, GROUP) as u32, 7);
    // Others don't look for the scheduler.
    assert!(!crate::Alone.reports_to(&Arc::default()));
}
