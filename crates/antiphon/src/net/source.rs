//! `Async`, a non-blocking file that fibers and threads can wait for.

use std::fmt;
use std::io::{self, ErrorKind::WouldBlock, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::files::{self, Way};
use antiphon_platform::Platform as _;
use antiphon_runtime::select::Source as _;
use antiphon_sync::wait::Several;

use super::bell::wait;
use crate::cancel::{Cancelled, Token};
use crate::deadline::PAST;
use crate::fiber::{ByToken, Seats, Suspends, Until, Waited};

/// A file that can be waited for. A waiting fiber is suspended, and its thread runs others; a
/// waiting thread blocks.
///
/// ```
/// use antiphon::net::Async;
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
///
/// let (one, other) = UnixStream::pair()?;
/// let (one, other) = (Async::new(one)?, Async::new(other)?);
/// (&one).write_all(b"over")?;
/// let mut read = [0; 4];
/// (&other).read_exact(&mut read)?;
/// assert_eq!(&read, b"over");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The file has the flag `O_NONBLOCK`, which its clones share, also in other processes. A file may
/// be in only one `Async` at a time, and its descriptor must always refer to the same file.
pub struct Async<T: AsFd> {
    pub(super) seats: Seats,
    token: Option<Token>,
    /// `Some` until [`into_inner`](Self::into_inner).
    file: Option<T>,
}

impl<T: AsFd> Async<T> {
    /// Puts the file in non-blocking mode, and wraps it.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn new(file: T) -> io::Result<Self> {
        files::set_nonblocking(file.as_fd(), true)?;
        Ok(Self::of_nonblocking(file))
    }

    /// Wraps a file that is already in non-blocking mode, for the C API.
    #[doc(hidden)]
    pub fn of_nonblocking(file: T) -> Self {
        Self { seats: Seats::default(), token: None, file: Some(file) }
    }

    /// Returns the file.
    #[inline]
    pub fn get_ref(&self) -> &T {
        self.file.as_ref().expect("there until it is taken out")
    }

    /// Returns the file, in blocking mode again. This affects its clones, too: a fiber that waits
    /// for a clone blocks its thread from then on.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn into_inner(mut self) -> io::Result<T> {
        let file = self.file.take().expect("there until it is taken out");
        self.seats.give_up(file.as_fd());
        files::set_nonblocking(file.as_fd(), false)?;
        Ok(file)
    }

    /// Ends all waits of this handle when the token is cancelled, by a call or by its deadline. The
    /// error is then [`Cancelled`], which [`Cancelled::is`] recognizes. If the token is cancelled
    /// already, calls fail at once, even if the file is ready. `None` removes the token.
    ///
    /// ```
    /// use antiphon::cancel::{Cancelled, Token};
    /// use antiphon::net::Async;
    /// use std::io::{Read, Write};
    /// use std::os::unix::net::UnixStream;
    ///
    /// let (mut one, other) = UnixStream::pair()?;
    /// let (token, mut other) = (Token::new(), Async::new(other)?);
    /// other.set_token(Some(&token));
    /// let reads = std::thread::spawn(move || {
    ///     let error = other.read(&mut [0; 4]).unwrap_err();
    ///     other.set_token(None);
    ///     (Cancelled::is(&error), other)
    /// });
    /// token.cancel();
    /// let (was_cancelled, mut other) = reads.join().unwrap();
    /// one.write_all(b"over")?;
    /// let mut read = [0; 4];
    /// other.read_exact(&mut read)?;
    /// assert!(was_cancelled && &read == b"over");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Data that has arrived before is not lost: the call returns it, or a later call does. Each
    /// call with a token takes the lock of the token twice, so give each connection a
    /// [child](Token::child).
    pub fn set_token(&mut self, token: Option<&Token>) {
        self.token = token.cloned();
    }

    /// Returns the token that was [set](Self::set_token).
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Waits until a read or an accept would not block: because of data, a connection, the end of
    /// the data, or an error. Another thread or fiber may have taken it before the return.
    ///
    /// # Errors
    ///
    /// The error of the system, for example for a file that cannot be waited for.
    pub fn readable(&self) -> io::Result<()> {
        self.ready(Way::Read, None)
    }

    /// Waits until there is room to write, or an error. Another thread or fiber may have taken the
    /// room before the return.
    ///
    /// # Errors
    ///
    /// The error of the system, for example for a file that cannot be waited for.
    pub fn writable(&self) -> io::Result<()> {
        self.ready(Way::Write, None)
    }

    /// Waits for one side of the file, for at most `timeout`, for the C API.
    #[doc(hidden)]
    pub fn ready(&self, way: Way, timeout: Option<Duration>) -> io::Result<()> {
        let look = |file: &T| match files::wait(file.as_fd(), way, PAST)? {
            true => Ok(()),
            false => Err(WouldBlock.into()),
        };
        self.until(way, timeout, look, |&()| false)
    }

    /// Calls `read`, and calls it again whenever there may be something to read, until it returns
    /// anything other than `WouldBlock`.
    ///
    /// # Errors
    ///
    /// The error of `read`; or that of the system, as for [`readable`](Self::readable).
    pub fn read_with<R>(&self, read: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.until(Way::Read, None, read, |_| false)
    }

    /// Calls `write`, and calls it again whenever there may be room to write, until it returns
    /// anything other than `WouldBlock`.
    ///
    /// # Errors
    ///
    /// The error of `write`; or that of the system, as for [`writable`](Self::writable).
    pub fn write_with<R>(&self, write: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.until(Way::Write, None, write, |_| false)
    }

    /// As [`read_with`](Self::read_with), for one side of the file, and with a timeout. `drained`
    /// returns, for the result, whether the file has no more.
    ///
    /// # Errors
    ///
    /// As for `read_with`; and `WouldBlock` when the time is over.
    #[doc(hidden)]
    #[inline]
    pub fn until<R>(
        &self,
        way: Way,
        timeout: Option<Duration>,
        attempt: impl FnMut(&T) -> io::Result<R>,
        drained: impl FnOnce(&R) -> bool,
    ) -> io::Result<R> {
        self.within(timeout, |until| self.until_by(way, until, attempt, drained))
    }

    /// Makes a call, and passes it the timeout and the token that end its waits.
    ///
    /// # Errors
    ///
    /// The error of the call; or [`Cancelled`].
    #[inline]
    pub(super) fn within<R>(
        &self,
        timeout: Option<Duration>,
        call: impl FnOnce(&Until<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        match &self.token {
            None => call(&Until::new(timeout, None)),
            Some(token) => by_token(token, timeout, call),
        }
    }

    /// As [`until`](Self::until), for a call that may have waited already.
    #[inline]
    pub(super) fn until_by<R>(
        &self,
        way: Way,
        until: &Until<'_>,
        mut attempt: impl FnMut(&T) -> io::Result<R>,
        drained: impl FnOnce(&R) -> bool,
    ) -> io::Result<R> {
        let file = self.get_ref();
        let Some(fiber) = Suspends::here() else {
            return block_until(file, way, until, attempt);
        };
        let waited = Waited { seats: &self.seats, file: file.as_fd(), way, until };
        fiber.until(waited, || attempt(file), drained)
    }
}

/// Makes a call that ends when the token is cancelled.
fn by_token<R>(
    token: &Token,
    timeout: Option<Duration>,
    call: impl FnOnce(&Until<'_>) -> io::Result<R>,
) -> io::Result<R> {
    let told = Several::<Linux>::new();
    let stand = token.inner().stand(&told);
    // `is_cancelled` also covers a deadline that has passed without a notification.
    if stand.is_none() || token.is_cancelled() {
        return Err(Cancelled.into());
    }
    let by = ByToken { token, told: &told, epoch: Linux::epoch() };
    call(&Until::new(timeout, Some(by)))
}

/// As [`Async::until`], for a thread: blocks it.
fn block_until<T: AsFd, R>(
    file: &T,
    way: Way,
    until: &Until<'_>,
    mut attempt: impl FnMut(&T) -> io::Result<R>,
) -> io::Result<R> {
    loop {
        match attempt(file) {
            Err(error) if error.kind() == WouldBlock => {}
            tried => return tried,
        }
        while !wait(file.as_fd(), way, until)? {
            if until.is_over() {
                return Err(until.error());
            }
        }
    }
}

impl<T: AsFd> Drop for Async<T> {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            self.seats.give_up(file.as_fd());
        }
    }
}

impl<T: AsFd> AsFd for Async<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.get_ref().as_fd()
    }
}

impl<T: AsFd> AsRawFd for Async<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T: AsFd> Read for &Async<T>
where
    for<'a> &'a T: Read,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_with(|mut file| file.read(buffer))
    }
}

impl<T: AsFd> Write for &Async<T>
where
    for<'a> &'a T: Write,
{
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.write_with(|mut file| file.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_with(|mut file| file.flush())
    }
}

impl<T: AsFd> Read for Async<T>
where
    for<'a> &'a T: Read,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl<T: AsFd> Write for Async<T>
where
    for<'a> &'a T: Write,
{
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self).flush()
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for Async<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Async").field(self.get_ref()).finish()
    }
}
