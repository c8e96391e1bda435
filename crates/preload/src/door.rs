//! Client of the socket that hands out files which this program can't open by their path
//! ([`antiphon_record::door`]).

use core::ffi::{CStr, c_int};
use core::mem::{size_of_val, zeroed};
use core::time::Duration;

use antiphon_record::door::{SECRET_BYTES, VARIABLE, Which};

use crate::mode;
use crate::sys::{self, File};

/// Longest wait for an answer: the process that answers may be stopped, and must not keep this
/// program from starting.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens the file at `path`; if that fails, asks the socket for the file `which`.
pub(crate) fn open(path: &CStr, which: Which) -> Option<File> {
    File::open(path, libc::O_RDWR | libc::O_NOCTTY).or_else(|| ask(which))
}

/// Asks the socket for a file.
#[cold]
fn ask(which: Which) -> Option<File> {
    let place = mode::variable(
        // SAFETY: the C library's word, which is always readable.
        unsafe { mode::environ },
        VARIABLE.as_bytes(),
    )?;
    let place = place.to_bytes();
    let colon = place.iter().position(|&byte| byte == b':')?;
    let (name, secret) = (&place[..colon], &place[colon + 1..]);
    let socket = connect(name)?;
    let mut request = [0; SECRET_BYTES + 1];
    request[..SECRET_BYTES].copy_from_slice(secret.get(..SECRET_BYTES)?);
    request[SECRET_BYTES] = which.byte();
    send(&socket, &mut request)?;
    receive(&socket)
}

/// Returns a socket connected to the abstract address `name`.
fn connect(name: &[u8]) -> Option<File> {
    let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as usize;
    // SAFETY: all arguments are numbers.
    let socket = unsafe { sys::call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0]) }?;
    // SAFETY: the descriptor is new, and no other code knows it.
    let socket = unsafe { File::from_descriptor(socket) };
    // SAFETY: a structure of numbers, for which zero is valid.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // A zero byte in front of the name makes it abstract.
    let room = address.sun_path.get_mut(1..=name.len())?;
    for (to, from) in room.iter_mut().zip(name) {
        *to = from.cast_signed();
    }
    let length = size_of_val(&address.sun_family) + 1 + name.len();
    let args = [socket.descriptor() as usize, (&raw const address) as usize, length, 0];
    // SAFETY: the address has this length, and lives for the call.
    unsafe { sys::call(libc::SYS_connect, args) }?;
    Some(socket)
}

fn send(socket: &File, bytes: &mut [u8]) -> Option<()> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: a structure of numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    // No `SIGPIPE` if the peer is gone.
    let args = [socket.descriptor() as usize, (&raw const message) as usize, NO_SIGNAL, 0];
    // SAFETY: the message and its buffers live for the call.
    unsafe { sys::call(libc::SYS_sendmsg, args) }.filter(|&sent| sent == bytes.len()).map(drop)
}

const NO_SIGNAL: usize = libc::MSG_NOSIGNAL as usize;

/// Receives a descriptor, which comes with one byte.
fn receive(socket: &File) -> Option<File> {
    wait_for(socket)?;
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // Aligned like a control header, with room for one header and one descriptor.
    let mut control = [0_u64; 4];
    // SAFETY: a structure of numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let flags = libc::MSG_CMSG_CLOEXEC as usize;
    let args = [socket.descriptor() as usize, (&raw mut message) as usize, flags, 0];
    // SAFETY: the message and its buffers live for the call, and may be written to.
    unsafe { sys::call(libc::SYS_recvmsg, args) }?;
    // SAFETY: the kernel has stored how much of the buffer it has filled; a header in it is
    // complete, and so are the data of this kind of header: a descriptor, which is ours now.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message).as_ref()?;
        let is_descriptor =
            (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        is_descriptor.then(|| {
            let descriptor = libc::CMSG_DATA(header).cast::<c_int>().read_unaligned();
            File::from_descriptor(descriptor as usize)
        })
    }
}

/// Waits for an answer; returns `None` after [`PATIENCE`].
fn wait_for(socket: &File) -> Option<()> {
    let mut poll = libc::pollfd { fd: socket.descriptor(), events: libc::POLLIN, revents: 0 };
    let most = libc::timespec { tv_sec: PATIENCE.as_secs() as libc::time_t, tv_nsec: 0 };
    let args = [(&raw mut poll) as usize, 1, (&raw const most) as usize, 0];
    // SAFETY: both structures live for the call; no signal mask is given.
    let ready = unsafe { sys::call(libc::SYS_ppoll, args) };
    (ready == Some(1)).then_some(())
}
