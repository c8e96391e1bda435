//! Channels with room for so many values: who sends more waits, and who receives waits for one.
//!
//! ```
//! use antiphon::{channel, fiber, pool::Pool};
//!
//! // SAFETY: no thread-local is made by what waits.
//! let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
//! let (numbers, squares) = (channel::bounded(4), channel::bounded(4));
//! let (sender, receiver) = (numbers.0, numbers.1);
//! let squared = squares.0;
//! pool.spawn(move || (0..100).for_each(|number: u64| sender.send(number).unwrap()));
//! pool.spawn(move || receiver.iter().for_each(|number| squared.send(number * number).unwrap()));
//! // On this thread; the other two are fibers of one.
//! assert_eq!(squares.1.iter().sum::<u64>(), 328_350);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Both ends are for any number of threads, fibers and clones. Values are received in the order in
//! which they were sent, each once. When all senders are gone, what they have sent is received, and
//! then there is nothing more; when all receivers are, what is there is dropped with the channel.
//!
//! A thread that waits sleeps; a [fiber](crate::fiber) is suspended, and one that has not had to
//! wait for a while lets others run. Room is what makes those who send wait for
//! those who receive: there are no channels without a bound, and none without room.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::channel::{Channel, NotReceived, NotSent};
use antiphon_runtime::select::{Receives, Sends};

use crate::fiber::may_be_ready;
use crate::raw::deadline_after;
use crate::select::polled;

struct Shared<T: Send> {
    channel: Channel<Linux, T>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

/// Sends values; clones do so to the same channel.
pub struct Sender<T: Send>(Arc<Shared<T>>);

/// Receives values; clones do so from the same channel, and each value goes to one.
pub struct Receiver<T: Send>(Arc<Shared<T>>);

/// The values that are received until there are no senders: see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T: Send>(&'a Receiver<T>);

/// A channel with room for so many values, rounded up to a power of two.
///
/// # Panics
///
/// If that is none, or more than 2³¹.
#[must_use]
pub fn bounded<T: Send>(room: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        channel: Channel::new(room),
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T: Send> Sender<T> {
    /// Sends a value; waits while there is no room.
    ///
    /// # Errors
    ///
    /// If there are no receivers: the value.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        may_be_ready();
        self.0.channel.send(value, None).map_err(|error| match error {
            NotSent::Full(value) | NotSent::Closed(value) => SendError(value),
        })
    }

    /// As [`send`](Self::send), and waits no longer than that.
    ///
    /// # Errors
    ///
    /// If there is no room until then, or there are no receivers: the value.
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), TrySendError<T>> {
        may_be_ready();
        self.0.channel.send(value, Some(deadline_after(timeout))).map_err(not_sent)
    }

    /// As [`send`](Self::send), of a future, which stands in the same queue as threads and fibers.
    /// Dropped before it is ready, the value was not sent, and is dropped.
    ///
    /// # Errors
    ///
    /// If there are no receivers: the value.
    pub async fn send_async(&self, value: T) -> Result<(), SendError<T>> {
        let mut value = Some(value);
        polled(Sends::new(self.channel(), &mut value)).await;
        value.map_or(Ok(()), |value| Err(SendError(value)))
    }

    /// Sends a value. Does not block.
    ///
    /// # Errors
    ///
    /// If there is no room, or there are no receivers: the value.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.channel.try_send(value).map_err(not_sent)
    }
}

fn not_sent<T>(error: NotSent<T>) -> TrySendError<T> {
    match error {
        NotSent::Full(value) => TrySendError::Full(value),
        NotSent::Closed(value) => TrySendError::Disconnected(value),
    }
}

impl<T: Send> Receiver<T> {
    /// Receives a value; waits for one.
    ///
    /// # Errors
    ///
    /// If there is none, and there are no senders.
    pub fn recv(&self) -> Result<T, RecvError> {
        may_be_ready();
        self.0.channel.recv(None).map_err(|_| RecvError)
    }

    /// As [`recv`](Self::recv), and waits no longer than that.
    ///
    /// # Errors
    ///
    /// If there is none until then; or if there are no senders.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        may_be_ready();
        self.0.channel.recv(Some(deadline_after(timeout))).map_err(|error| match error {
            NotReceived::Empty => RecvTimeoutError::Timeout,
            NotReceived::Closed => RecvTimeoutError::Disconnected,
        })
    }

    /// As [`recv`](Self::recv), of a future, which stands in the same queue as threads and fibers.
    /// Dropped before it is ready, it has received nothing. It is ready as long as there are
    /// values: one that receives many at once lets others of its executor run, now and then.
    ///
    /// # Errors
    ///
    /// If there is none, and there are no senders.
    pub async fn recv_async(&self) -> Result<T, RecvError> {
        let received = polled(Receives::new(self.channel())).await.into_received();
        received.expect("it was chosen").map_err(|_| RecvError)
    }

    /// Receives a value. Does not block.
    ///
    /// # Errors
    ///
    /// If there is none; also if others have sent some, while one that has begun before them is in
    /// the middle of its send, as its value comes first.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.channel.try_recv().map_err(|error| match error {
            NotReceived::Empty => TryRecvError::Empty,
            NotReceived::Closed => TryRecvError::Disconnected,
        })
    }

    /// All values until there are no senders; waits for each.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }
}

impl<T: Send> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<'a, T: Send> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

macro_rules! end {
    ($name:ident, $count:ident) => {
        impl<T: Send> $name<T> {
            pub(crate) fn channel(&self) -> &Channel<Linux, T> {
                &self.0.channel
            }

            /// How many values there are; may be stale at once.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.channel.len()
            }

            /// Whether there are none; may be stale at once.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// For how many there is room.
            #[must_use]
            pub fn room(&self) -> usize {
                self.0.channel.room()
            }
        }

        impl<T: Send> Clone for $name<T> {
            fn clone(&self) -> Self {
                // Relaxed: the caller has one.
                self.0.$count.fetch_add(1, Relaxed);
                Self(self.0.clone())
            }
        }

        impl<T: Send> Drop for $name<T> {
            fn drop(&mut self) {
                // Release, Acquire: what all of them have done comes before the end; pairs with
                // itself.
                if self.0.$count.fetch_sub(1, AcqRel) == 1 {
                    self.0.channel.close();
                }
            }
        }

        impl<T: Send> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0.channel).finish()
            }
        }
    };
}

end!(Sender, senders);
end!(Receiver, receivers);
