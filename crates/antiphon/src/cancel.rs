//! Cancelling: a tree of tokens that say to those who have them that they are to end.
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
//! not after its parent's; and it stays so. Nothing is unwound: who has a token
//! [checks](Token::check) it, or waits by it, and has an error that `?` passes on. A wait by a
//! token that is cancelled ends at once, whatever else there is.
//!
//! What is not to be cut short is given another token: [`Token::shielded`] makes one for a section.
//! A token is an argument, and no state of the thread's: it is seen in a signature who can be
//! cancelled by what, and a fiber's is not mixed up with another's.
//!
//! A socket has its token given: see [`Async::set_token`](crate::net::Async::set_token).
//!
//! Children that are gone leave nothing in their parent. To cancel takes time by how many there
//! are; who waits is woken once. Deadlines have no thread: who waits by a token wakes itself then.
//!
//! # Locks
//!
//! No token ends a wait for a lock. Who holds one holds it for short, or waits by its own token
//! meanwhile, and so lets go; a waiter that left a lock's queue when it is told would have a second
//! wake beside the one by which it is handed the lock, and who unlocks would have to find out which
//! of them came first. To wait no longer than a token's deadline is `try_lock_for`, with what is
//! [left](Token::left). What is held for as long as others may be cancelled that want it is a value
//! in a channel: who has received it has it.
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
//! // Somebody has it.
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

use crate::channel::{Receiver, Sender};
use crate::fiber::may_be_ready;
use crate::raw::deadline_after;
use crate::select::{Select, polled};
use crate::{Event, Latch};

/// Says whether its work is to end. Clones are the same token.
#[derive(Clone)]
pub struct Token(cancel::Token<Linux>);

/// Cancels a token when it is dropped: see [`Token::guard`].
#[derive(Debug)]
#[must_use = "dropped, it cancels"]
pub struct Guard(Option<Token>);

impl Guard {
    /// Does not cancel it: what was begun has come to its end.
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

/// The work is to end: its token was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl Cancelled {
    /// Whether that is what an error of a file says, of [`net`](crate::net), whose token was
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

/// Of kind `Other`: `std` would begin what is `Interrupted` anew, and a time is another thing.
impl From<Cancelled> for io::Error {
    fn from(cancelled: Cancelled) -> Self {
        Self::other(cancelled)
    }
}

/// Why a value was not sent: the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NotSent<T> {
    /// The token was cancelled.
    Cancelled(T),
    /// There are no receivers.
    Disconnected(T),
}

impl Token {
    /// One that comes of no other, and has no deadline.
    #[must_use]
    pub fn new() -> Self {
        Self(cancel::Token::new(None))
    }

    /// One that is cancelled with this one; cancelled by itself, it leaves this one as it is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self(self.0.child(None))
    }

    /// As [`child`](Self::child), and at that time.
    #[must_use]
    pub fn child_until(&self, deadline: Instant) -> Self {
        self.child_for(deadline.saturating_duration_since(Instant::now()))
    }

    /// As [`child`](Self::child), and after so long.
    #[must_use]
    pub fn child_for(&self, time: Duration) -> Self {
        Self(self.0.child(Some(deadline_after(time))))
    }

    /// Cancels it, and all that come of it. Where two cancel at once, each is back when it has
    /// cancelled what the other has not come to.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it is cancelled: for good.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// The same, for `?`.
    ///
    /// # Errors
    ///
    /// If it is cancelled.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// Waits until it is cancelled. Blocks.
    pub fn wait(&self) {
        may_be_ready();
        while !self.0.wait_until(None) {}
    }

    /// As [`wait`](Self::wait), of a future: beside others, or in a `select!`. Its deadline needs a
    /// thread then, one for all of the process, which is started with the first.
    pub async fn wait_async(&self) {
        polled(self).await;
    }

    /// Cancels it when what this returns is dropped: as a future is that nobody waits for any more.
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

    /// As [`wait`](Self::wait), and no longer than that; says whether it is cancelled.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        may_be_ready();
        self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Runs `section` with a token that this one does not cancel: what is done by that comes to its
    /// end. Afterwards this one says what has become of it.
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

    /// Waits for so long. Blocks.
    ///
    /// # Errors
    ///
    /// If it is cancelled before that.
    pub fn sleep(&self, time: Duration) -> Result<(), Cancelled> {
        if self.wait_for(time) { Err(Cancelled) } else { Ok(()) }
    }

    /// Receives a value; waits for one. The inner error: there is none, and there are no senders.
    ///
    /// # Errors
    ///
    /// If it is cancelled; no value is lost then.
    pub fn recv<T: Send>(&self, receiver: &Receiver<T>) -> Result<Result<T, RecvError>, Cancelled> {
        self.check()?;
        self.or_cancelled().recv(receiver, Ok).wait()
    }

    /// Sends a value; waits for room.
    ///
    /// # Errors
    ///
    /// If it is cancelled, or there are no receivers: the value.
    pub fn send<T: Send>(&self, sender: &Sender<T>, value: T) -> Result<(), NotSent<T>> {
        let mut value = Some(value);
        let sent = self.check().and_then(|()| {
            self.or_cancelled().send(sender, &mut value, |sent| Ok(sent.is_ok())).wait()
        });
        // One that is sent is gone.
        let Some(value) = value else { return Ok(()) };
        Err(if sent.is_err() { NotSent::Cancelled(value) } else { NotSent::Disconnected(value) })
    }

    /// Waits until the event is set, and takes that.
    ///
    /// # Errors
    ///
    /// If it is cancelled; the event is as it was then.
    pub fn wait_event(&self, event: &Event) -> Result<(), Cancelled> {
        self.check()?;
        self.or_cancelled().event(event, || Ok(())).wait()
    }

    /// Waits until the latch is open.
    ///
    /// # Errors
    ///
    /// If it is cancelled.
    pub fn wait_latch(&self, latch: &Latch) -> Result<(), Cancelled> {
        self.check()?;
        self.or_cancelled().latch(latch, || Ok(())).wait()
    }

    fn or_cancelled<R>(
        &self,
    ) -> Select<'_, Result<R, Cancelled>, impl crate::select::Cases<Result<R, Cancelled>>> {
        Select::new().cancelled(self, || Err(Cancelled))
    }

    /// In what time its deadline cancels it, if it has one.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let left = |it: Deadline| it.ns.saturating_sub(deadline_after(Duration::ZERO).ns);
        self.0.deadline().map(|deadline| Duration::from_nanos(left(deadline)))
    }

    /// How much room it has for those that come of it: as many as there were at once.
    #[doc(hidden)]
    #[must_use]
    pub fn places(&self) -> usize {
        self.0.places()
    }

    pub(crate) fn inner(&self) -> &cancel::Token<Linux> {
        &self.0
    }
}

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
