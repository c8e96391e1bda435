//! Bounded channels: a sender waits while the channel is full, a receiver while it is empty.
//!
//! ```
//! use antiphon::{channel, fiber, pool::Pool};
//!
//! // SAFETY: no fiber waits while it makes a thread-local.
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
//! Any number of threads and fibers may use both ends, and both can be cloned. Values are received
//! in the order in which they were sent, each once. When all senders are dropped, the values in the
//! channel are still received, and then the channel has ended. When all receivers are dropped, the
//! remaining values are dropped with the channel.
//!
//! A waiting thread sleeps. A waiting [fiber](crate::fiber) is suspended, and a fiber that has not
//! had to wait for a while lets others run. The bound makes senders wait for receivers; so there
//! are no unbounded channels, and no channels of capacity zero.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::channel::{Channel, NotReceived, NotSent};
use antiphon_runtime::select::{Receives, Sends};

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;
use crate::select::{And, Each, Select, Then, ThenOf, polled};

struct Shared<T: Send> {
    channel: Channel<Linux, T>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

/// The sending end of a channel. Clones send to the same channel.
pub struct Sender<T: Send>(Arc<Shared<T>>);

/// The receiving end of a channel. Clones receive from the same channel, and each value goes to one
/// of them.
pub struct Receiver<T: Send>(Arc<Shared<T>>);

/// An iterator over the values received until there are no senders: see [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T: Send>(&'a Receiver<T>);

/// Creates a channel with room for `room` values, rounded up to a power of two.
///
/// # Panics
///
/// If `room` is 0 or above 2³¹.
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
    /// Sends a value. Waits while the channel is full.
    ///
    /// # Errors
    ///
    /// The value, if there are no receivers.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        may_be_ready();
        self.0.channel.send(value, None).map_err(|error| match error {
            NotSent::Full(value) | NotSent::Closed(value) => SendError(value),
        })
    }

    /// Sends like [`send`](Self::send), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// The value, if the channel stayed full, or if there are no receivers.
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), TrySendError<T>> {
        may_be_ready();
        self.0.channel.send(value, Some(deadline_after(timeout))).map_err(not_sent)
    }

    /// Sends like [`send`](Self::send), as a future. The future stands in the same queue as threads
    /// and fibers. If it is dropped before it is ready, the value was not sent, and is dropped.
    ///
    /// # Errors
    ///
    /// The value, if there are no receivers.
    pub async fn send_async(&self, value: T) -> Result<(), SendError<T>> {
        let mut value = Some(value);
        polled(Sends::new(self.channel(), &mut value)).await;
        value.map_or(Ok(()), |value| Err(SendError(value)))
    }

    /// Sends a value without blocking.
    ///
    /// # Errors
    ///
    /// The value, if the channel is full, or if there are no receivers.
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
    /// Receives a value. Waits while the channel is empty.
    ///
    /// # Errors
    ///
    /// If the channel is empty and there are no senders.
    pub fn recv(&self) -> Result<T, RecvError> {
        may_be_ready();
        self.0.channel.recv(None).map_err(|_| RecvError)
    }

    /// Receives like [`recv`](Self::recv), but gives up after `timeout`.
    ///
    /// # Errors
    ///
    /// If no value came in time, or if the channel is empty and there are no senders.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        may_be_ready();
        self.0.channel.recv(Some(deadline_after(timeout))).map_err(|error| match error {
            NotReceived::Empty => RecvTimeoutError::Timeout,
            NotReceived::Closed => RecvTimeoutError::Disconnected,
        })
    }

    /// Receives like [`recv`](Self::recv), as a future. The future stands in the same queue as
    /// threads and fibers. If it is dropped before it is ready, it has received nothing. It is
    /// ready as long as there are values; but a task that receives many values in a row lets other
    /// tasks of its executor run now and then.
    ///
    /// # Errors
    ///
    /// If the channel is empty and there are no senders.
    pub async fn recv_async(&self) -> Result<T, RecvError> {
        let received = polled(Receives::new(self.channel())).await.into_received();
        received.expect("it was chosen").map_err(|_| RecvError)
    }

    /// Receives a value without blocking.
    ///
    /// # Errors
    ///
    /// If the channel is empty. Also if other senders have sent values while a sender that began
    /// before them is still in the middle of its send, because its value comes first.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.0.channel.try_recv().map_err(|error| match error {
            NotReceived::Empty => TryRecvError::Empty,
            NotReceived::Closed => TryRecvError::Disconnected,
        })
    }

    /// Returns an iterator that waits for each value, and ends when the channel is empty and there
    /// are no senders.
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

impl<'a, R, C> Select<'a, R, C> {
    /// Adds a case that receives a value. The closure gets an error if the channel is empty and has
    /// no senders.
    pub fn recv<T, F>(
        self,
        receiver: &Receiver<T>,
        then: F,
    ) -> Select<'a, R, And<C, Receives<'_, Linux, T>, F>>
    where
        T: Send,
        F: FnOnce(Result<T, RecvError>) -> R,
    {
        self.and(Receives::new(receiver.channel()), then)
    }

    /// Adds a case for each of these channels; the closure also gets the index of the channel.
    pub fn recv_each<'b, T, F>(
        self,
        receivers: impl IntoIterator<Item = &'b Receiver<T>>,
        then: F,
    ) -> Select<'a, R, Each<C, Receives<'b, Linux, T>, F>>
    where
        T: Send + 'b,
        F: FnOnce(usize, Result<T, RecvError>) -> R,
    {
        let all = receivers.into_iter().map(|receiver| Receives::new(receiver.channel()));
        self.and_each(all.collect(), then)
    }

    /// Adds a case that sends the value, which is taken out of the `Option`. A value that is not
    /// sent stays there; with `None` the case is never ready. The closure gets an error if there
    /// are no receivers.
    ///
    /// ```
    /// use antiphon::{channel, select::Select};
    /// use std::time::Duration;
    ///
    /// let (sender, receiver) = channel::bounded(1);
    /// let mut value = Some(1);
    /// let mut send = || Select::new().send(&sender, &mut value, |sent| sent.is_ok()).try_wait();
    /// assert_eq!((send(), receiver.len()), (Some(true), 1));
    /// // It is gone.
    /// assert_eq!(send(), None);
    /// ```
    pub fn send<'b, T, F>(
        self,
        sender: &'b Sender<T>,
        value: &'b mut Option<T>,
        then: F,
    ) -> Select<'a, R, And<C, Sends<'b, Linux, T>, F>>
    where
        T: Send,
        F: FnOnce(Result<(), SendError<()>>) -> R,
    {
        self.and(Sends::new(sender.channel(), value), then)
    }
}

fn received<T>(source: Receives<'_, Linux, T>) -> Result<T, RecvError> {
    source.into_received().expect("it was chosen").map_err(|_| RecvError)
}

impl<R, T, F: FnOnce(Result<T, RecvError>) -> R> Then<R, F> for Receives<'_, Linux, T> {
    fn then(self, then: F) -> R {
        then(received(self))
    }
}

impl<R, T, F: FnOnce(usize, Result<T, RecvError>) -> R> ThenOf<R, F> for Receives<'_, Linux, T> {
    fn then_of(self, number: usize, then: F) -> R {
        then(number, received(self))
    }
}

impl<R, T, F: FnOnce(Result<(), SendError<()>>) -> R> Then<R, F> for Sends<'_, Linux, T> {
    fn then(self, then: F) -> R {
        then(if self.is_refused() { Err(SendError(())) } else { Ok(()) })
    }
}

macro_rules! end {
    ($name:ident, $count:ident) => {
        impl<T: Send> $name<T> {
            pub(crate) fn channel(&self) -> &Channel<Linux, T> {
                &self.0.channel
            }

            /// Returns the number of values in the channel. It may be out of date at once.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.channel.len()
            }

            /// Returns whether the channel is empty. The answer may be out of date at once.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the capacity of the channel, in values.
            #[must_use]
            pub fn room(&self) -> usize {
                self.0.channel.room()
            }
        }

        impl<T: Send> Clone for $name<T> {
            fn clone(&self) -> Self {
                // Relaxed: the caller holds an end, so the count is not 0.
                self.0.$count.fetch_add(1, Relaxed);
                Self(self.0.clone())
            }
        }

        impl<T: Send> Drop for $name<T> {
            fn drop(&mut self) {
                // Release, Acquire: the operations through all ends happen before the close; pairs
                // with itself.
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
