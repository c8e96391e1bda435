//! Connections of processes: each gets a page of its own, and the program that registers threads.
//!
//! A process sends nothing: the kernel tells which one it is, and of which user. So there is no
//! argument, path or number of a client to be checked.

use std::collections::HashMap;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::ptr;

use crate::intake;
use crate::loader::{Failure, Loaded, Scope, new_page};
use crate::shared::{PROCESSES, PROCESSES_PER_USER};

/// Processes with pages.
#[derive(Debug)]
pub struct Service {
    listener: UnixListener,
    program: OwnedFd,
    scope: Scope,
    /// By the number of the process.
    clients: HashMap<u32, Client>,
}

#[derive(Debug)]
struct Client {
    user: u32,
    /// Readable when the process has ended.
    process: OwnedFd,
    page: OwnedFd,
}

impl Service {
    /// Serves processes that connect to `listener`.
    ///
    /// # Errors
    ///
    /// As the calls that prepare it.
    pub fn new(listener: UnixListener, loaded: &Loaded, scope: Scope) -> Result<Self, Failure> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, program: loaded.register_program()?, scope, clients: HashMap::new() })
    }

    /// Gives the pages that processes have to a scheduler that was loaded again. Their threads
    /// register again when they see that they are not served.
    ///
    /// # Errors
    ///
    /// As the calls on the kernel's part.
    pub fn renew(&mut self, loaded: &Loaded) -> Result<(), Failure> {
        self.program = loaded.register_program()?;
        self.clients.iter().try_for_each(|(id, client)| loaded.give(*id, client.page.as_fd()))
    }

    /// Returns the descriptors to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let processes = self.clients.values().map(|client| client.process.as_raw_fd());
        [self.listener.as_raw_fd()].into_iter().chain(processes)
    }

    /// Returns how many processes have pages.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.clients.len()
    }

    /// Takes pages of processes back that have ended, and serves those that have connected, at most
    /// [`intake::AT_ONCE`] of them.
    ///
    /// # Errors
    ///
    /// As the calls on the kernel's part. A client's failure is no error here.
    pub fn turn(&mut self, loaded: &Loaded) -> Result<(), Failure> {
        let ended = |client: &Client| is_readable(client.process.as_fd());
        let gone: Vec<_> =
            self.clients.iter().filter(|(_, one)| ended(one)).map(|(id, _)| *id).collect();
        for id in gone {
            self.clients.remove(&id);
            loaded.take_back(id)?;
        }
        intake::take(&self.listener)?.iter().try_for_each(|stream| self.serve(stream, loaded))
    }

    fn serve(&mut self, stream: &UnixStream, loaded: &Loaded) -> Result<(), Failure> {
        // A process that has ended meanwhile can't be asked about.
        let (Ok((id, user)), Ok(process)) = (peer(stream), peer_process(stream)) else {
            return Ok(());
        };
        if !self.clients.contains_key(&id) {
            if !self.has_room(user) {
                return Ok(());
            }
            let page = new_page(self.scope)?;
            loaded.give(id, page.as_fd())?;
            let page = page.as_fd().try_clone_to_owned()?;
            self.clients.insert(id, Client { user, process, page });
        }
        let page = self.clients[&id].page.as_fd();
        // If the client does not receive them, it has none.
        let _ = antiphon_hints::send(stream, [page, self.program.as_fd()]);
        Ok(())
    }

    fn has_room(&self, user: u32) -> bool {
        let of_user = self.clients.values().filter(|client| client.user == user).count();
        self.clients.len() < PROCESSES && (user == 0 || of_user < PROCESSES_PER_USER)
    }
}

/// Returns the process and the user at the other end.
fn peer(stream: &UnixStream) -> io::Result<(u32, u32)> {
    // SAFETY: all zero is a value.
    let mut who: libc::ucred = unsafe { zeroed() };
    option(stream, libc::SO_PEERCRED, &mut who)?;
    let id = u32::try_from(who.pid).ok().filter(|id| *id != 0);
    // A process of another name space has no number here.
    id.map(|id| (id, who.uid)).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

/// Returns a descriptor of the process at the other end.
fn peer_process(stream: &UnixStream) -> io::Result<OwnedFd> {
    /// Since Linux 6.5.
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut descriptor: RawFd = -1;
    option(stream, SO_PEERPIDFD, &mut descriptor)?;
    // SAFETY: the kernel has opened it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn option<T>(stream: &UnixStream, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to the value, which is plain numbers.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            ptr::from_mut(value).cast(),
            &mut bytes,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    let mut one = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, as stated.
    unsafe { libc::poll(&mut one, 1, 0) == 1 && one.revents & libc::POLLIN != 0 }
}
