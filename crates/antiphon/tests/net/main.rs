//! Sockets that fibers and threads wait for.

mod cancel;
mod http;
mod load;
mod races;
mod sockets;
mod threads;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::time::Duration;

use antiphon::fiber::STACK_BYTES;
use antiphon::net::{TcpListener, TcpStream};
use antiphon::pool::{Builder, Pool};

const SHORT: Duration = Duration::from_millis(20);

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }
}

fn pool(threads: usize) -> Pool {
    fibers(threads).build().expect("fibers")
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

/// Returns both ends of a new connection, made on this thread.
fn pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listen();
    let one = TcpStream::connect(address).expect("it listens");
    (one, listener.accept().expect("a connection").0)
}

/// Sends back all that it reads until the end, and returns the number of bytes.
fn echo(stream: &TcpStream) -> io::Result<usize> {
    let (mut buffer, mut all) = ([0; 512], 0);
    loop {
        let read = (&*stream).read(&mut buffer)?;
        if read == 0 {
            return Ok(all);
        }
        (&*stream).write_all(&buffer[..read])?;
        all += read;
    }
}

/// Runs `work` in a fiber of a pool with one thread.
fn in_fiber<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    pool(1).spawn(work).join().unwrap_or_else(|panic| resume_unwind(panic))
}
