//! Files that this program can't open by their path: asked for at a socket
//! ([`antiphon_record::door`]).

use core::ffi::{CStr, c_int};
use core::mem::{size_of_val, zeroed};
use core::time::Duration;

use antiphon_record::door::{SECRET_BYTES, VARIABLE, Which};

use crate::mode;
use crate::sys::{self, File};

/// Longest wait for an answer: the process that answers may be stopped, and this program is to
/// start.
const PATIENCE: Duration = Duration::from_secs(2);

/// The file that the variable names by its path; if it can't be opened so, that which is asked for.
pub(crate) fn open(path: &CStr, which: Which) -> Option<File> {
    File::open(path, libc::O_RDWR | libc::O_NOCTTY).or_else(|| ask(which))
}

/// Asks for a file.
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

/// A socket that is connected to the one of that abstract name.
fn connect(name: &[u8]) -> Option<File> {
    let kind = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as usize;
    // SAFETY: takes numbers.
    let socket = unsafe { sys::call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0]) }?;
    // SAFETY: a new descriptor, known to no other code.
    let socket = unsafe { File::from_descriptor(socket) };
    // SAFETY: numbers, of which zero is a value.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The name stands behind a zero byte, which makes it an abstract one.
    let room = address.sun_path.get_mut(1..=name.len())?;
    for (to, from) in room.iter_mut().zip(name) {
        *to = from.cast_signed();
    }
    let length = size_of_val(&address.sun_family) + 1 + name.len();
    let args = [socket.descriptor() as usize, (&raw const address) as usize, length, 0];
    // SAFETY: the address is as long as we say, and there for the call.
    unsafe { sys::call(libc::SYS_connect, args) }?;
    Some(socket)
}

fn send(socket: &File, bytes: &mut [u8]) -> Option<()> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: numbers and pointers, of which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    // No signal where the other side is gone.
    let args = [socket.descriptor() as usize, (&raw const message) as usize, NO_SIGNAL, 0];
    // SAFETY: the message and what it points to are there for the call.
    unsafe { sys::call(libc::SYS_sendmsg, args) }.filter(|&sent| sent == bytes.len()).map(drop)
}

const NO_SIGNAL: usize = libc::MSG_NOSIGNAL as usize;

/// The descriptor that comes with one byte.
fn receive(socket: &File) -> Option<File> {
    wait_for(socket)?;
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    // Aligned as a header is, and with room for one and a descriptor.
    let mut control = [0_u64; 4];
    // SAFETY: numbers and pointers, of which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    let flags = libc::MSG_CMSG_CLOEXEC as usize;
    let args = [socket.descriptor() as usize, (&raw mut message) as usize, flags, 0];
    // SAFETY: the message and what it points to are there for the call, and ours to write.
    unsafe { sys::call(libc::SYS_recvmsg, args) }?;
    // SAFETY: the kernel has said how much of the buffer it has filled; a header that is there is
    // whole, and so are the data of one of this kind, which is a descriptor that is ours now.
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

/// Waits until there is an answer; `None` if that takes too long.
fn wait_for(socket: &File) -> Option<()> {
    let mut poll = libc::pollfd { fd: socket.descriptor(), events: libc::POLLIN, revents: 0 };
    let most = libc::timespec { tv_sec: PATIENCE.as_secs() as libc::time_t, tv_nsec: 0 };
    let args = [(&raw mut poll) as usize, 1, (&raw const most) as usize, 0];
    // SAFETY: both structures are there for the call; no mask of signals is given.
    let ready = unsafe { sys::call(libc::SYS_ppoll, args) };
    (ready == Some(1)).then_some(())
}
