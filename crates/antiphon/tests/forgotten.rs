//! The destructor of a forgotten guard or future never runs, and yet values that others borrow
//! through it must stay: scopes wait, tasks continue, and queues contain no waiter that is gone.
//! `src/borrows.rs` has the programs that the compiler refuses.

use std::future::Future;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use antiphon::cancel::Token;
use antiphon::pool::Pool;
use antiphon::select::Select;
use antiphon::{Event, Latch, channel, fiber, promise};

/// Returns a pool whose tasks block their threads, and a pool whose tasks are fibers.
fn pools() -> [Pool; 2] {
    // SAFETY: no fiber waits while it makes a thread-local.
    let fibers = unsafe { Pool::builder().threads(2).fibers(fiber::STACK_BYTES) };
    [Pool::new(2).unwrap(), fibers.build().unwrap()]
}

/// The number of tasks that have ended.
#[derive(Default)]
struct Ended(AtomicUsize);

impl Ended {
    /// Returns a value that counts a task as ended when the task drops it.
    fn one(self: &Arc<Self>) -> One {
        One(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

struct One(Arc<Ended>);

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Relaxed);
    }
}

/// Opens the latch when dropped.
struct Opens<'a>(&'a Latch);

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        self.0.count_down(1);
    }
}

/// The scope's tasks wait until its body is over, and then read the values that they borrow.
#[test]
fn a_scope_that_is_forgotten_waits_for_its_tasks() {
    for pool in pools() {
        for panics in [false, true] {
            let (gate, ended) = (Latch::new(1), Arc::new(Ended::default()));
            let borrowed = vec![7_u8; 4096];
            let over = catch_unwind(AssertUnwindSafe(|| {
                pool.scope(|scope| {
                    let _body = Opens(&gate);
                    for _ in 0..8 {
                        let (one, gate, borrowed) = (ended.one(), &gate, &borrowed);
                        scope.spawn(move || {
                            gate.wait();
                            assert!(borrowed.iter().all(|&byte| byte == 7));
                            drop(one);
                        });
                    }
                    #[expect(forgetting_references, reason = "nobody has more of it to forget")]
                    forget(scope);
                    assert!(!panics, "the body ends early");
                });
            }));
            assert_eq!((over.is_err(), ended.count()), (panics, 8));
        }
    }
}

/// The task continues with its own values, which are dropped when it ends.
#[test]
fn a_handle_that_is_forgotten_leaves_its_task_alone() {
    for pool in pools() {
        let (gate, ended) = (Arc::new(Latch::new(1)), Arc::new(Ended::default()));
        for _ in 0..4 {
            let (one, gate) = (ended.one(), gate.clone());
            forget(pool.spawn(move || {
                gate.wait();
                drop(one);
            }));
        }
        assert_eq!(ended.count(), 0);
        gate.count_down(1);
        // The drop waits for the tasks.
        drop(pool);
        assert_eq!(ended.count(), 4);
    }
}

/// A waker that counts its wake-ups.
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A polled future is forgotten: the thread that provides the value uses the remaining state to
/// wake, and the value stays.
#[test]
fn an_awaited_value_that_is_forgotten_may_come() {
    let (woken, ended) = (Arc::new(Woken(AtomicUsize::new(0))), Arc::new(Ended::default()));
    let waker = Waker::from(woken.clone());
    let (promise, mut awaited) = promise::new();
    assert!(matches!(pin!(&mut awaited).poll(&mut Context::from_waker(&waker)), Poll::Pending));
    forget(awaited);
    promise.fulfil(ended.one());
    assert_eq!((woken.0.load(Relaxed), ended.count()), (1, 0));
}

/// A select that is forgotten before it waits is in no queue: values go to others.
#[test]
fn a_select_that_is_forgotten_takes_nothing() {
    let (sender, receiver) = channel::bounded(1);
    let (event, token, mut had) = (Event::new(), Token::new(), Vec::new());
    let select = Select::new().recv(&receiver, |it| had.push(it)).event(&event, || ());
    #[expect(clippy::forget_non_drop, reason = "it has nothing to drop: it is in no queue")]
    forget(select.cancelled(&token, || ()));
    assert_eq!(token.places(), 0);
    sender.send(5).unwrap();
    event.set();
    assert!(event.try_wait());
    assert_eq!((receiver.recv(), had.len()), (Ok(5), 0));
}

/// A select that is forgotten while it waits has left its name with its sources; the next waiter
/// must not mistake that for a waker.
#[test]
fn a_select_that_is_forgotten_as_it_waits_is_nobody() {
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let (promise, mut awaited) = promise::new();
    let mut select = Box::pin(Select::new().promise(&mut awaited, |_| ()).wait_async());
    assert!(select.as_mut().poll(&mut context).is_pending());
    forget(select);
    assert!(pin!(&mut awaited).poll(&mut context).is_pending());
    promise.fulfil(7);
    assert_eq!(woken.0.load(Relaxed), 1);
    assert_eq!(pin!(&mut awaited).poll(&mut context), Poll::Ready(Ok(7)));
}

/// A forgotten token can't be cancelled directly any more, but its parent still cancels it.
#[test]
fn a_token_that_is_forgotten_is_cancelled_with_its_parent() {
    let parent = Token::new();
    let child = parent.child();
    let same = child.clone();
    forget(child);
    parent.cancel();
    assert!(same.is_cancelled());
}

/// Forgotten ends of a channel close nothing, and its values stay.
#[test]
fn a_sender_that_is_forgotten_closes_nothing() {
    let ended = Arc::new(Ended::default());
    let (sender, receiver) = channel::bounded(2);
    sender.send(ended.one()).unwrap();
    forget(sender);
    drop(receiver.recv().unwrap());
    assert_eq!(ended.count(), 1);
    assert!(receiver.try_recv().is_err());
}
