//! Common methods of TCP connections and UDP sockets: timeouts, a token, and conversions from and
//! to `std`.

/// Defines methods for a type with a `std` `socket`, a `read_timeout` and a `write_timeout`.
macro_rules! timed {
    (
        $own:ident:
        $(#[$about_token:meta])* fn set_token;
        $(#[$about_ref:meta])* fn get_ref;
        $(#[$about_clone:meta])* fn try_clone;
        $(#[$about_reads:meta])* fn set_read_timeout;
        $(#[$about_writes:meta])* fn set_write_timeout;
        $(#[$about_std:meta])* fn into_std;
    ) => {
        impl $own {
            pub(super) fn of_nonblocking(socket: net::$own) -> Self {
                Self {
                    socket: Async::of_nonblocking(socket),
                    read_timeout: Timeout::default(),
                    write_timeout: Timeout::default(),
                }
            }

            $(#[$about_token])*
            pub fn set_token(&mut self, token: Option<&Token>) {
                self.socket.set_token(token);
            }

            /// Returns the token that was [set](Self::set_token).
            #[must_use]
            pub fn token(&self) -> Option<&Token> {
                self.socket.token()
            }

            $(#[$about_ref])*
            #[must_use]
            pub fn get_ref(&self) -> &net::$own {
                self.socket.get_ref()
            }

            $(#[$about_clone])*
            ///
            /// # Errors
            ///
            /// If too many files are open.
            pub fn try_clone(&self) -> io::Result<Self> {
                let mut clone = Self::of_nonblocking(self.socket.get_ref().try_clone()?);
                clone.set_token(self.token());
                clone.set_read_timeout(self.read_timeout.get())?;
                clone.set_write_timeout(self.write_timeout.get())?;
                Ok(clone)
            }

            $(#[$about_reads])*
            ///
            /// # Errors
            ///
            /// `InvalidInput` if the timeout is zero.
            pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.read_timeout.set(timeout)
            }

            $(#[$about_writes])*
            ///
            /// # Errors
            ///
            /// `InvalidInput` if the timeout is zero.
            pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.write_timeout.set(timeout)
            }

            /// Returns the timeout that was [set](Self::set_read_timeout).
            ///
            /// # Errors
            ///
            /// None; the return type is that of `std`.
            pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.read_timeout.get())
            }

            /// Returns the timeout that was [set](Self::set_write_timeout).
            ///
            /// # Errors
            ///
            /// None; the return type is that of `std`.
            pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.write_timeout.get())
            }

            $(#[$about_std])*
            ///
            /// # Errors
            ///
            /// The error of the operating system.
            pub fn into_std(self) -> io::Result<net::$own> {
                self.socket.into_inner()
            }
        }

        impl TryFrom<net::$own> for $own {
            type Error = io::Error;

            /// The timeouts of the `std` socket are not taken over.
            fn try_from(socket: net::$own) -> io::Result<Self> {
                socket.set_nonblocking(true)?;
                Ok(Self::of_nonblocking(socket))
            }
        }

        impl AsFd for $own {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.socket.as_fd()
            }
        }

        impl AsRawFd for $own {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }
    };
}

pub(super) use timed;
