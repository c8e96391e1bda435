//! The servers, all of which listen on a port of this machine that they print, and serve until they
//! are killed.

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

/// Ours.
pub const OURS: &[&str] = &["fibers", URING];
/// Ours, where fibers wait by rings.
pub const URING: &str = "fibers-uring";
/// The servers beside them.
pub const PEERS: &[&str] = &["tokio", GO, "may", "threads"];
/// The one that is a program of its own.
pub const GO: &str = "go";
/// The source of that program.
pub const GO_SOURCE: &str = include_str!("main.go");

/// The server that is wanted.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// Its name.
    pub subject: String,
    /// The requests that it will get.
    pub case: Case,
    /// Threads that serve.
    pub workers: usize,
}

/// The address at which a server listens.
const ADDRESS: &str = "127.0.0.1:0";
/// Room for what is read at a time.
const ROOM: usize = 16 << 10;
/// The page.
const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 14\r\n\r\n\
                      Hello, world!\n";

/// Why there are no rings to wait by, if there are none.
pub fn no_rings() -> Option<String> {
    (backend() != Backend::IoUring).then(|| {
        "no rings: build with --features io_uring; Linux 6.1, kernel.io_uring_disabled = 0"
            .to_owned()
    })
}

/// Serves, for ever.
///
/// # Errors
///
/// One line: it is not known, or can't listen.
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

/// Says where it listens.
fn listens(address: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", address.port())?;
    stdout.flush()
}

/// How many bytes of what was read are a request; `None`: there is more to come. Ours have no body:
/// a server for others has to skip it, as the example `http` of `antiphon` does.
fn request(read: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let parsed = httparse::Request::new(&mut headers).parse(read).map_err(io::Error::other)?;
    Ok(match parsed {
        httparse::Status::Complete(length) => Some(length),
        httparse::Status::Partial => None,
    })
}
