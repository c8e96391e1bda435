//! The servers. Each listens on a port of this machine, prints the port, and serves until it is
//! killed.

mod blocking;
mod fibers;
mod may;
mod threads;
mod tokio;

use std::io::{self, Write as _};
use std::net::SocketAddr;

use antiphon::net::{Backend, backend};
use serde::{Deserialize, Serialize};

use super::cases::Case;

/// Our servers.
pub const OURS: &[&str] = &["fibers", URING];
/// Our server whose fibers wait by io_uring.
pub const URING: &str = "fibers-uring";
/// The servers to compare with.
pub const PEERS: &[&str] = &["tokio", GO, "may", "threads"];
/// The server that is another program.
pub const GO: &str = "go";
/// The source of that program.
pub const GO_SOURCE: &str = include_str!("main.go");

/// The order for a server.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// Name of the server.
    pub subject: String,
    /// What clients will request.
    pub case: Case,
    /// Number of threads that serve.
    pub workers: usize,
}

/// The address at which a server listens.
const ADDRESS: &str = "127.0.0.1:0";
/// Size of a read buffer.
const ROOM: usize = 16 << 10;
/// The response.
const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\n\
                      Hello, world!\n";

/// Says why fibers can't wait by io_uring, if they can't.
pub fn no_rings() -> Option<String> {
    (backend() != Backend::IoUring).then(|| {
        "no rings: build with --features io_uring; Linux 6.1, kernel.io_uring_disabled = 0"
            .to_owned()
    })
}

/// Serves for ever.
///
/// # Errors
///
/// One line, if the server is unknown or can't listen.
pub fn serve(order: &Order) -> Result<(), String> {
    let Order { subject, case, workers } = order;
    let served = match subject.as_str() {
        "fibers" | URING => fibers::serve(*case, *workers),
        "tokio" => tokio::serve(*case, *workers),
        "may" => may::serve(*case, *workers),
        "threads" => threads::serve(*case),
        _ => return Err(format!("no server '{subject}'")),
    };
    served.map_err(|error| format!("{subject} can't serve: {error}"))
}

/// Prints the port at which it listens.
fn listens(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", address.port())?;
    stdout.flush()
}

/// Returns how many of the bytes read form a request, or `None` if it is incomplete. Our requests
/// have no body: a general server must skip it, as the example `http` of `antiphon` does.
fn request(read: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let parsed = httparse::Request::new(&mut headers).parse(read).map_err(io::Error::other)?;
    Ok(match parsed {
        httparse::Status::Complete(length) => Some(length),
        httparse::Status::Partial => None,
    })
}
