//! The operations of a ring, and the events that it reports.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread;

use antiphon_platform::{Clock, Notify as _, Ticket};

use super::super::ways_of;
use super::*;

const PAST: Option<Deadline> = Some(Deadline { clock: Clock::Monotonic, ns: 0 });

/// Returns `None` if this machine does not allow rings.
fn ring(bell: &EventFd) -> Option<Ring> {
    // Bypasses the capture of output, so that programs that count tests see it.
    let skip = |error: &io::Error| _ = writeln!(io::stderr(), "skipped: no ring: {error}");
    Ring::new(bell).inspect_err(skip).ok()
}

fn bell() -> EventFd {
    EventFd::new().expect("a file")
}

/// The results of a poll.
fn told(ring: &mut Ring) -> Vec<(u64, Done)> {
    let mut told = Vec::new();
    ring.wait(PAST, |key, done| told.push((key, done))).expect("a look");
    told
}

/// Waits for `count` results.
fn wait_for(ring: &mut Ring, count: usize) -> HashMap<u64, Done> {
    let mut told = HashMap::new();
    while told.len() < count {
        let tell = |key, done| assert_eq!(told.insert(key, done), None, "{key} twice");
        ring.wait(None, tell).expect("a wait");
    }
    told
}

#[test]
fn bytes_are_received_and_sent() {
    let bell = bell();
    let Some(mut ring) = ring(&bell) else { return };
    let (mut one, other) = UnixStream::pair().expect("a pair");
    // As the sockets of fibers are.
    other.set_nonblocking(true).expect("a socket");
    for early in [false, true] {
        let mut bytes = [0; 8];
        let room = (bytes.as_mut_ptr(), bytes.len());
        if early {
            one.write_all(b"to").expect("room");
        }
        // SAFETY: the bytes are there, and not used, until the ring reports the end.
        unsafe { ring.receive(other.as_fd(), room, 6) }
        if !early {
            assert_eq!(told(&mut ring), []);
            one.write_all(b"to").expect("room");
        }
        assert_eq!(wait_for(&mut ring, 1)[&6], Done::Bytes(2));
        assert_eq!(&bytes[..2], b"to");
    }
    let bytes = b"and fro";
    // SAFETY: the bytes are `'static`.
    unsafe { ring.send(other.as_fd(), (bytes.as_ptr(), bytes.len()), 8) }
    assert!(ring.is_worth_it(), "it can be sent at once");
    assert_eq!(told(&mut ring), [(8, Done::Bytes(7))]);
    assert!(!ring.is_worth_it());
    let mut read = [0; 7];
    one.read_exact(&mut read).expect("what was sent");
    assert_eq!(&read, bytes);
    drop(one);
    // SAFETY: the bytes are `'static`; none of them is sent.
    unsafe { ring.send(other.as_fd(), (bytes.as_ptr(), bytes.len()), 8) }
    assert_eq!(wait_for(&mut ring, 1)[&8], Done::Failed(libc::EPIPE));
}

#[test]
fn what_is_taken_back_takes_no_bytes() {
    let bell = bell();
    let Some(mut ring) = ring(&bell) else { return };
    let (mut one, mut other) = UnixStream::pair().expect("a pair");
    let mut bytes = [0; 8];
    for begun in [true, false] {
        let room = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the bytes are there, and not used, until the ring reports the end.
        unsafe { ring.receive(other.as_fd(), room, 6) }
        ring.ready(other.as_fd(), Way::Read, 8);
        if begun {
            assert_eq!(told(&mut ring), []);
        }
        ring.cancel(6);
        ring.cancel(8);
        let both = HashMap::from([(6, Done::TakenBack), (8, Done::TakenBack)]);
        assert_eq!(wait_for(&mut ring, 2), both);
        // Without effect: the request has ended.
        ring.cancel(6);
        one.write_all(b"x").expect("room");
        assert_eq!(told(&mut ring), []);
        other.read_exact(&mut [0]).expect("nobody else has it");
    }
}

#[test]
fn a_bell_ends_a_wait_that_is_on_or_the_next() {
    let bell = bell();
    let Some(mut ring) = ring(&bell) else { return };
    for _ in 0..3 {
        bell.notify(Ticket::MIN);
        assert_eq!(wait_for(&mut ring, 0).len(), 0);
        ring.wait(None, |key, _| panic!("{key} was not asked for")).expect("a wait");
    }
    thread::scope(|threads| {
        threads.spawn(|| bell.notify(Ticket::MIN));
        ring.wait(None, |key, _| panic!("{key} was not asked for")).expect("a wait");
    });
}

/// More requests than there are entries, and more results than there is room for.
#[test]
fn all_are_told_of_however_many() {
    const COUNT: u64 = 3 * DONE as u64;
    let bell = bell();
    let Some(mut ring) = ring(&bell) else { return };
    let (mut one, other) = UnixStream::pair().expect("a pair");
    (2..2 + COUNT).for_each(|key| ring.ready(other.as_fd(), Way::Read, key));
    assert_eq!(told(&mut ring), []);
    one.write_all(b"x").expect("room");
    bell.notify(Ticket::MIN);
    let told = wait_for(&mut ring, COUNT as usize);
    assert!((2..2 + COUNT).all(|key| matches!(told[&key], Done::Bytes(_))));
    // The bell still works after that.
    bell.notify(Ticket::MIN);
    ring.wait(None, |key, _| panic!("{key} was told of")).expect("a wait");
}

#[test]
fn a_file_is_told_of_once_or_each_time_and_who_is_outside_is_told() {
    let (bell, outside) = (bell(), bell());
    let Some(mut ring) = ring(&bell) else { return };
    let is_told = || {
        let told = crate::files::wait(outside.as_fd(), Way::Read, PAST).expect("a look");
        // SAFETY: the ticket comes from `begin`, and no thread sleeps with it.
        unsafe { outside.end(outside.begin()) };
        told
    };
    let more = |ring: &mut Ring| {
        let mut told = Vec::new();
        let tell = |key, done, more| {
            assert!(matches!(done, Done::Bytes(bits) if ways_of(bits as u32) == (true, false)));
            told.push((key, more));
        };
        ring.wait_for_more(PAST, tell).expect("a look");
        told
    };
    ring.notify(&outside).expect("it takes one");
    for (trigger, key) in [(Trigger::Level, 6), (Trigger::Edge, 8)] {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        ring.watch(other.as_fd(), (true, false), trigger, key);
        assert!(!ring.begin().expect("a call"));
        assert!(!is_told());
        one.write_all(b"x").expect("room");
        assert!(is_told());
        assert!(ring.begin().expect("a call"), "nobody has been told of it");
        let goes_on = trigger == Trigger::Edge;
        assert_eq!(more(&mut ring), [(key, goes_on)]);
        one.write_all(b"x").expect("room");
        assert_eq!(more(&mut ring).len(), usize::from(goes_on));
        is_told();
    }
}
