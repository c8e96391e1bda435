//! Tests of sleeping in calls other than the futex, and of notifications.

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_linux::notify::{EventFd, Signal};
use antiphon_platform::{Clock, Clocks as _, Deadline, Notify, Parked, Platform, Ticket};

fn ns_from_now(ns: u64) -> Option<Deadline> {
    Some(Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + ns })
}

/// Each test has one ticket at a time, and ends it once.
fn sleep(way: &impl Notify, ticket: Ticket, deadline: Option<Deadline>) -> Parked {
    // SAFETY: each test has one ticket at a time, and ends it once.
    unsafe { way.sleep(ticket, deadline) }
}

fn end(way: &impl Notify, ticket: Ticket) {
    // SAFETY: each test has one ticket at a time, and ends it once.
    unsafe { way.end(ticket) }
}

/// Checks of both ways to notify: a notification before a sleep, none (the sleep times out), and
/// one during a sleep.
fn tells(way: &impl Notify) {
    let ticket = way.begin();
    way.notify(ticket);
    assert_eq!(sleep(way, ticket, None), Parked::Woken);
    end(way, ticket);

    let ticket = way.begin();
    let early = Instant::now();
    assert_eq!(
        sleep(way, ticket, ns_from_now(2_000_000)),
        Parked::TimedOut,
        "told once, not twice"
    );
    assert!(early.elapsed() >= Duration::from_millis(2));
    thread::scope(|scope| {
        scope.spawn(|| way.notify(ticket));
        while sleep(way, ticket, None) != Parked::Woken {}
    });
    end(way, ticket);
}

#[test]
fn an_eventfd_ends_a_sleep() {
    let way = EventFd::new().expect("a file");
    tells(&way);
    let ticket = way.begin();
    way.notify(ticket);
    end(&way, ticket);
    let ticket = way.begin();
    assert_eq!(
        sleep(&way, ticket, ns_from_now(0)),
        Parked::TimedOut,
        "the end makes it unreadable"
    );
    assert!(way.as_fd().try_clone_to_owned().is_ok());
}

#[test]
fn a_signal_ends_a_sleep() {
    let way = Signal::new(libc::SIGUSR1).expect("a signal");
    tells(&way);
    // Also a notification while no thread sleeps, and one to a thread that has ended.
    way.notify(Ticket::MIN.saturating_add(u64::from(u32::MAX >> 1)));
    let gone = thread::spawn(|| Linux::thread().0).join().expect("no panic");
    way.notify(Ticket::new(gone.into()).expect("threads are not 0"));
    assert!(Signal::new(libc::SIGUSR1).is_ok(), "shared by mailboxes");
    assert!(Signal::new(libc::SIGSEGV).is_err());
}

#[test]
fn a_signal_that_the_program_uses_or_ignores_is_refused() {
    extern "C" fn own(_: i32) {}
    let refused = |action: libc::sighandler_t| {
        // SAFETY: an empty handler, or none; no other test uses this signal.
        unsafe { libc::signal(libc::SIGURG, action) };
        let refused = Signal::new(libc::SIGURG).expect_err("it is taken");
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        refused.to_string()
    };
    assert!(refused(own as extern "C" fn(i32) as libc::sighandler_t).contains("has a handler"));
    assert!(refused(libc::SIG_IGN).contains("ignores this signal"));
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
    assert!(Signal::new(libc::SIGURG).is_ok());
}
