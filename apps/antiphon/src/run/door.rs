//! Hands files to programs that can't open them by their path.
//!
//! CMD opens the recording as `/proc/PID/fd/N`, which fails where CMD runs as another user, in a
//! separate process namespace, in another root directory, or without `/proc`. CMD then connects to
//! the socket served here, which has a name in no file system, sends a secret from its environment,
//! and receives the descriptor. In a separate network namespace there is no such socket; the report
//! then says that a program did not open the recording.
//!
//! No thread is needed: the loop that waits for CMD serves the socket meanwhile.

use std::fs::File;
use std::io::{self, Read as _};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

use antiphon_record::door::{SECRET_BYTES, VARIABLE, Which};

/// How long a caller may take to send its request. A connected caller has sent it already.
const PATIENCE: Duration = Duration::from_millis(200);

/// The socket, and the files that it hands out.
pub struct Door {
    socket: UnixListener,
    secret: String,
    name: String,
    files: Vec<(Which, File)>,
}

impl Door {
    /// Opens a socket that hands out these files.
    ///
    /// # Errors
    ///
    /// Those of the socket calls, and of reading `/dev/urandom`.
    pub fn open(files: Vec<(Which, File)>) -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        // All processes see the name, but not the secret.
        let (name, secret) = bytes.split_at(SECRET_BYTES / 2);
        let name = format!("antiphon-{}-{}", std::process::id(), hex(name));
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, secret: hex(secret), name, files })
    }

    /// Passes the socket's name and the secret to a program.
    pub fn tell(&self, command: &mut Command) {
        command.env(VARIABLE, format!("{}:{}", self.name, self.secret));
    }

    /// Serves all callers that are connected now. A request that fails costs its caller the
    /// recording, and the report says so.
    pub fn serve(&self) {
        while let Ok((stream, _)) = self.socket.accept() {
            let _ = self.serve_one(stream);
        }
    }

    fn serve_one(&self, mut stream: UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut asked = [0; SECRET_BYTES + 1];
        stream.read_exact(&mut asked)?;
        let (secret, which) = asked.split_at(SECRET_BYTES);
        let file = self.files.iter().find(|(of, _)| [of.byte()] == which);
        match file {
            Some((_, file)) if secret == self.secret.as_bytes() => send(&stream, file.as_fd()),
            _ => Ok(()),
        }
    }
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends a descriptor, with one byte of data.
fn send(stream: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // Aligned as a header, with room for a header and a descriptor.
    let mut control = [0_u64; 4];
    let descriptor = file.as_raw_fd();
    let length = size_of_val(&descriptor) as u32;
    // SAFETY: numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: the buffer is long enough for one header and a descriptor, so the first header exists
    // and lies in it; the message lives for the call.
    let sent = unsafe {
        message.msg_controllen = libc::CMSG_SPACE(length) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(descriptor);
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
