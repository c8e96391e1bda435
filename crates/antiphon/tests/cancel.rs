//! Cancellation of tokens: by other threads, with their parents, at their deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::cancel::{Cancelled, NotSent, Token};
use antiphon::channel::bounded;
use antiphon::fiber::STACK_BYTES;
use antiphon::pool::Pool;
use antiphon::select::Select;
use antiphon::{Event, Latch};

fn fibers(threads: usize, room: usize) -> Pool {
    // SAFETY: no fiber waits while it makes a thread-local.
    let builder = unsafe { Pool::builder().threads(threads).room(room).fibers(STACK_BYTES) };
    builder.build().expect("fibers")
}

const SOON: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_token_is_cancelled_with_its_parent_and_not_with_its_child() {
    let parent = Token::new();
    let (one, other) = (parent.child(), parent.child());
    let below = one.child();
    one.cancel();
    let seen = [&parent, &one, &below, &other].map(Token::is_cancelled);
    assert_eq!(seen, [false, true, true, false]);
    assert_eq!((one.check(), other.check()), (Err(Cancelled), Ok(())));
    parent.cancel();
    assert!(other.is_cancelled() && parent.child().is_cancelled());
}

#[test]
fn a_deadline_bounds_what_comes_of_it() {
    let parent = Token::new().child_for(SOON);
    let child = parent.child_for(LONG);
    let sooner = child.child_until(Instant::now());
    assert!(sooner.is_cancelled());
    assert!(child.left().is_some_and(|left| left <= SOON));
    child.wait();
    assert!(parent.is_cancelled() && child.child().is_cancelled());
    assert_eq!(child.sleep(LONG), Err(Cancelled));
}

/// Each kind of wait ends early, and loses nothing.
#[test]
fn waits_end_early_and_lose_nothing() {
    let (sender, receiver) = bounded::<u32>(1);
    let (event, latch) = (Event::new(), Latch::new(1));
    let with = |cancelled: bool| {
        let token = if cancelled { Token::new() } else { Token::new().child_for(SOON) };
        if cancelled {
            token.cancel();
        }
        assert_eq!(token.recv(&receiver), Err(Cancelled));
        assert_eq!(token.wait_event(&event), Err(Cancelled));
        assert_eq!(token.wait_latch(&latch), Err(Cancelled));
        assert_eq!(token.sleep(LONG), Err(Cancelled));
        assert!(token.wait_for(LONG));
        assert_eq!(Select::new().cancelled(&token, || 1).wait_for(LONG), Some(1));
    };
    with(false);
    event.set();
    sender.send(1).expect("room");
    latch.count_down(1);
    with(true);
    assert!(event.is_set());
    let token = Token::new().child_for(SOON);
    assert_eq!(token.send(&sender, 2), Err(NotSent::Cancelled(2)));
    let token = Token::new();
    assert_eq!(token.recv(&receiver), Ok(Ok(1)));
    assert_eq!((token.wait_event(&event), token.wait_latch(&latch)), (Ok(()), Ok(())));
    assert_eq!((token.send(&sender, 3), token.sleep(SOON)), (Ok(()), Ok(())));
    drop(receiver);
    assert_eq!(token.send(&sender, 4), Err(NotSent::Disconnected(4)));
}

#[test]
fn children_that_are_gone_leave_nothing() {
    let token = Token::new();
    let kept: Vec<_> = (0..10).map(|_| token.child()).collect();
    for _ in 0..10_000 {
        drop(token.child().child());
    }
    assert!(token.places() <= 11, "{} places", token.places());
    drop(kept);
    let again: Vec<_> = (0..10).map(|_| token.child()).collect();
    assert!(token.places() <= 11 && !again[0].is_cancelled());
}

/// Neither cancelling nor dropping a tree recurses.
#[test]
fn a_tree_may_be_deep() {
    let top = Token::new();
    let mut line = vec![top.clone()];
    for at in 0..200_000 {
        line.push(line[at].child());
    }
    let last = line.pop().expect("the last");
    drop(line);
    top.cancel();
    assert!(last.is_cancelled());
    drop((last, top));
}

/// All waiters are notified, in any kind of wait.
#[test]
fn a_storm_reaches_all() {
    const FIBERS: usize = 10_000;
    let pool = fibers(2, FIBERS);
    let (token, here) = (Token::new(), Arc::new(AtomicUsize::new(0)));
    let (_sender, receiver) = bounded::<u32>(1);
    let all: Vec<_> = (0..FIBERS)
        .map(|number| {
            let (token, receiver, here) = (token.clone(), receiver.clone(), here.clone());
            pool.spawn(move || {
                let own = if number % 2 == 0 { token.child() } else { token };
                here.fetch_add(1, Relaxed);
                match number % 3 {
                    0 => own.recv(&receiver).map(drop),
                    1 => own.sleep(LONG),
                    _ => {
                        own.wait();
                        own.check()
                    }
                }
            })
        })
        .collect();
    while here.load(Relaxed) < FIBERS {
        thread::yield_now();
    }
    token.cancel();
    let ended = all.into_iter().map(|fiber| fiber.join().expect("no panic"));
    assert_eq!(ended.filter(Result::is_err).count(), FIBERS);
}

/// Children are made, wait and are dropped while their parent is cancelled.
#[test]
fn no_child_is_missed() {
    for _ in 0..300 {
        let token = Token::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !token.is_cancelled() {
                        drop(token.child());
                        let child = token.child().child();
                        child.wait_for(Duration::from_micros(20));
                    }
                    token.child().wait();
                });
            }
            scope.spawn(|| {
                thread::yield_now();
                token.cancel();
            });
        });
        assert_eq!(token.places(), 0);
    }
}

#[test]
fn a_section_may_be_shielded() {
    let token = Token::new().child_for(Duration::ZERO);
    let done = token.shielded(|inner| {
        inner.sleep(SOON)?;
        inner.check()
    });
    assert_eq!((done, token.check()), (Ok(()), Err(Cancelled)));
}
