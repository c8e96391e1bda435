//! Cancellation: a tree of tokens that tell their holders to stop.
//!
//! ```
//! use antiphon::cancel::{Cancelled, Token};
//! use antiphon::channel;
//! use std::time::Duration;
//!
//! let (sender, receiver) = channel::bounded::<u32>(1);
//! let all = Token::new();
//! let request = all.child_for(Duration::from_secs(60));
//! let work = move || -> Result<u32, Cancelled> {
//!     let mut sum = 0;
//!     // Both end it: the token, and that there are no senders.
//!     while let Ok(number) = request.recv(&receiver)? {
//!         sum += number;
//!     }
//!     Ok(sum)
//! };
//! let worker = std::thread::spawn(work);
//! sender.send(1).unwrap();
//! all.cancel();
//! assert_eq!(worker.join().unwrap(), Err(Cancelled));
//! ```
//!
//! A token is cancelled by [`cancel`](Token::cancel), with its parent, or at its deadline, which is
//! never after its parent's. It stays cancelled. Nothing is unwound: the holder of a token
//! [checks](Token::check) it or passes it to a wait, and gets an error that `?` passes on. A wait
//! with a cancelled token ends at once, whatever else is ready.
//!
//! A section that must not be cut short gets another token, made by [`Token::shielded`]. A token is
//! an argument, not a state of the thread. So a signature shows which token can cancel a function,
//! and the tokens of two fibers are not mixed up.
//!
//! A socket is given its token by [`Async::set_token`](crate::net::Async::set_token).
//!
//! Dropped children take no memory in their parent. Cancelling takes time in proportion to the
//! number of children; each waiter is woken once. Deadlines need no thread: a thread or fiber that
//! waits with a token wakes itself at the deadline.
//!
//! # Locks
//!
//! No token ends a wait for a lock. The owner of a lock holds it for a short time, or waits with
//! its own token meanwhile, and so releases it. If a cancelled waiter left the queue of a lock, it
//! would have a second wake-up beside the one that hands it the lock, and the unlocking thread
//! would have to find out which came first. To wait no longer than the deadline of a token, use
//! `try_lock_for` with the time that is [left](Token::left). For a resource that is held long while
//! other waiters may be cancelled, put a value in a channel: the receiver of the value holds it.
//!
//! ```
//! use antiphon::cancel::{Cancelled, Token};
//! use antiphon::channel;
//!
//! let (give_back, take) = channel::bounded(1);
//! give_back.send(Vec::new()).unwrap();
//! let append = |token: &Token, number: u32| -> Result<(), Cancelled> {
//!     let mut all = token.recv(&take)?.expect("there is a sender");
//!     all.push(number);
//!     give_back.send(all).expect("there is a receiver, and room");
//!     Ok(())
//! };
//! let token = Token::new();
//! assert_eq!(append(&token, 1), Ok(()));
//! // Now the vector is out.
//! let held = take.recv().unwrap();
//! std::thread::scope(|scope| {
//!     let waits = scope.spawn(|| append(&token, 2));
//!     token.cancel();
//!     assert_eq!(waits.join().unwrap(), Err(Cancelled));
//! });
//! assert_eq!(held, [1]);
//! ```

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::mpsc::RecvError;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_runtime::cancel;

use crate::budget::may_be_ready;
use crate::channel::{Receiver, Sender};
use crate::deadline::deadline_after;
use crate::event::{Event, Latch};
use crate::select::{And, Select, Then, as_inner, polled};

/// A token that tells its holders whether to stop. Clones are the same token.
#[derive(Clone)]
pub struct Token(cancel::Token<Linux>);

/// Cancels a token when it is dropped: see [`Token::guard`].
#[derive(Debug)]
#[must_use = "dropped, it cancels"]
pub struct Guard(Option<Token>);

impl Guard {
    /// Disarms the guard: the token is not cancelled, because the work has ended.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(token) = &self.0 {
            token.cancel();
        }
    }
}

/// The error of a wait whose token was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Cancelled {
    /// Returns whether `error`, from a file of [`net`](crate::net), means that the file's token was
    /// cancelled.
    ///
    /// ```
    /// use antiphon::cancel::Cancelled;
    ///
    /// assert!(Cancelled::is(&Cancelled.into()));
    /// assert!(!Cancelled::is(&std::io::ErrorKind::TimedOut.into()));
    /// ```
    #[must_use]
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// The error is of kind `Other`: `std` would repeat a call that ends with `Interrupted`, and a
/// timeout is another kind.
impl From<Cancelled> for io::Error {
    fn from(cancelled: Cancelled) -> Self {
        Self::other(cancelled)
    }
}

/// The reason why a value was not sent, with the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NotSent<T> {
    /// The token was cancelled.
    Cancelled(T),
    /// There are no receivers.
    Disconnected(T),
}

impl Token {
    /// Creates a token without a parent and without a deadline.
    #[must_use]
    pub fn new() -> Self {
        Self(cancel::Token::new(None))
    }

    /// Creates a child, which is cancelled with this token. Cancelling the child does not cancel
    /// this token.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child(None))
    }

    /// Creates a [`child`](Self::child) that is cancelled at `deadline` at the latest.
    #[must_use]
    pub fn child_until(&self, deadline: Instant) -> Self {
        self.child_for(deadline.saturating_duration_since(Instant::now()))
    }

    /// Creates a [`child`](Self::child) that is cancelled after `time` at the latest.
    #[must_use]
    pub fn child_for(&self, time: Duration) -> Self {
        Self(self.0.child(Some(deadline_after(time))))
    }

    /// Cancels the token and all its descendants. If two threads cancel at the same time, each
    /// returns when it has cancelled the tokens that the other has not reached.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns whether the token is cancelled. A cancelled token stays cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Checks [`is_cancelled`](Self::is_cancelled), as a result for `?`.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the token is cancelled.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// Blocks until the token is cancelled.
    pub fn wait(&self) {
        may_be_ready();
        while !self.0.wait_until(None) {}
    }

    /// Waits like [`wait`](Self::wait), as a future: together with others, or in a `select!`. A
    /// deadline then needs a thread: one for the whole process, started with the first deadline.
    pub async fn wait_async(&self) {
        polled(self).await;
    }

    /// Returns a guard that cancels the token when it is dropped: for example when a future is
    /// dropped because no task waits for it any more.
    ///
    /// ```
    /// use antiphon::cancel::Token;
    ///
    /// let token = Token::new();
    /// drop(token.guard());
    /// assert!(token.is_cancelled());
    /// ```
    pub fn guard(&self) -> Guard {
        Guard(Some(self.clone()))
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns whether the token is
    /// cancelled.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        may_be_ready();
        self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Runs `section` with a token that this token does not cancel, so that the section runs to its
    /// end. Afterwards this token still shows whether it was cancelled.
    ///
    /// ```
    /// use antiphon::cancel::{Cancelled, Token};
    ///
    /// fn close(token: &Token) -> Result<(), Cancelled> {
    ///     token.check()
    /// }
    /// let token = Token::new();
    /// token.cancel();
    /// assert_eq!(token.shielded(close), Ok(()));
    /// assert_eq!(close(&token), Err(Cancelled));
    /// ```
    pub fn shielded<R>(&self, section: impl FnOnce(&Self) -> R) -> R {
        section(&Self::new())
    }

    /// Sleeps for `time`.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the token is cancelled before that.
    pub fn sleep(&self, time: Duration) -> Result<(), Cancelled> {
        if self.wait_for(time) { Err(Cancelled) } else { Ok(()) }
    }

    /// Receives a value; waits while the channel is empty. The inner error means that the channel
    /// is empty and has no senders.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the token is cancelled; no value is lost then.
    pub fn recv<T: Send>(&self, receiver: &Receiver<T>) -> Result<Result<T, RecvError>, Cancelled> {
        self.check()?;
        self.or_cancelled().recv(receiver, Ok).wait()
    }

    /// Sends a value; waits while the channel is full.
    ///
    /// # Errors
    ///
    /// The value, if the token is cancelled or there are no receivers.
    pub fn send<T: Send>(&self, sender: &Sender<T>, value: T) -> Result<(), NotSent<T>> {
        let mut value = Some(value);
        let sent = self.check().and_then(|()| {
            self.or_cancelled().send(sender, &mut value, |sent| Ok(sent.is_ok())).wait()
        });
        // `None`: the value was sent.
        let Some(value) = value else { return Ok(()) };
        Err(if sent.is_err() { NotSent::Cancelled(value) } else { NotSent::Disconnected(value) })
    }

    /// Waits until the event is set, and resets it.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the token is cancelled; the event is left unchanged.
    pub fn wait_event(&self, event: &Event) -> Result<(), Cancelled> {
        self.check()?;
        self.or_cancelled().event(event, || Ok(())).wait()
    }

    /// Waits until the latch is open.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the token is cancelled.
    pub fn wait_latch(&self, latch: &Latch) -> Result<(), Cancelled> {
        self.check()?;
        self.or_cancelled().latch(latch, || Ok(())).wait()
    }

    fn or_cancelled<R>(
        &self,
    ) -> Select<'_, Result<R, Cancelled>, impl crate::select::Cases<Result<R, Cancelled>>> {
        Select::new().cancelled(self, || Err(Cancelled))
    }

    /// Returns the time until the deadline of the token, if it has one.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let left = |it: Deadline| it.ns.saturating_sub(deadline_after(Duration::ZERO).ns);
        self.0.deadline().map(|deadline| Duration::from_nanos(left(deadline)))
    }

    /// Returns the capacity for children: the largest number that existed at the same time.
    #[doc(hidden)]
    #[must_use]
    pub fn places(&self) -> usize {
        self.0.places()
    }

    pub(crate) fn inner(&self) -> &cancel::Token<Linux> {
        &self.0
    }
}

impl<'a, R, C> Select<'a, R, C> {
    /// Adds a case that waits until the token is cancelled, by a call or by its deadline.
    pub fn cancelled<F>(self, token: &Token, then: F) -> Select<'a, R, And<C, &Token, F>>
    where
        F: FnOnce() -> R,
    {
        self.and(token, then)
    }
}

as_inner!(Token);

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl Error for Cancelled {}

impl<T> fmt::Debug for NotSent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled(_) => "Cancelled",
            Self::Disconnected(_) => "Disconnected",
        })
    }
}
