//! Files for programs that can't open them by their path.
//!
//! CMD opens the recording as `/proc/PID/fd/N`, which fails where it runs as another user, in a
//! process namespace of its own, in another root directory, or without `/proc`. It then asks here:
//! at a socket that has a name in no file system, with a secret that it has from its environment,
//! and is handed the descriptor. A network namespace of its own has no such socket; the report says
//! that a program did not open the recording.
//!
//! It takes no thread: the loop that waits for CMD serves it meanwhile.

use std::fs::File;
use std::io::{self, Read as _};
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::process::Command;
use std::time::Duration;

use antiphon_record::door::{SECRET_BYTES, VARIABLE, Which};

/// How long a caller may take to say what it wants. A caller that is connected has said so.
const PATIENCE: Duration = Duration::from_millis(200);

/// The socket, and what is handed out.
pub struct Door {
    socket: UnixListener,
    secret: String,
    name: String,
    files: Vec<(Which, File)>,
}

impl Door {
    /// Opens one at which these files are handed out.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn open(files: Vec<(Which, File)>) -> io::Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        // The name is seen by all; the secret is not.
        let (name, secret) = bytes.split_at(SECRET_BYTES / 2);
        let name = format!("antiphon-{}-{}", std::process::id(), hex(name));
        let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, secret: hex(secret), name, files })
    }

    /// Tells a program where it is.
    pub fn tell(&self, command: &mut Command) {
        command.env(VARIABLE, format!("{}:{}", self.name, self.secret));
    }

    /// Serves all that are at the door now. One that goes wrong is the caller's loss: it records
    /// nothing, and the report says so.
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

/// Sends a descriptor, and a byte with it.
fn send(stream: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // Aligned as a header is, and with room for one and a descriptor.
    let mut control = [0_u64; 4];
    let descriptor = file.as_raw_fd();
    let length = size_of_val(&descriptor) as u32;
    // SAFETY: numbers and pointers, of which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: the buffer is long enough for one header and a descriptor, so that there is a first
    // header, which lies in it; the message lives for the call.
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
