//! An HTTP/1.1 server that answers with the request: each connection is a fiber, and is kept for
//! further requests.
//!
//! `cargo run --release -p antiphon --example http -- 127.0.0.1:8080 2 30`, and then
//! `curl http://127.0.0.1:8080/hello`. The address, the number of threads and the seconds after
//! which a silent connection ends may be left out.

mod requests;

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Read};
use std::net::Shutdown;
use std::num::NonZero;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, thread};

use antiphon::fiber::STACK_BYTES;
use antiphon::net::{TcpListener, TcpStream};
use antiphon::pool::Pool;

/// Seconds of silence after which a connection ends.
const SILENT_S: NonZero<u64> = NonZero::new(30).unwrap();
/// The time for which the server still reads after the last answer, and the maximum number of bytes
/// that it reads then.
const LINGERS: Duration = Duration::from_secs(1);
const LINGERING_BYTES: u64 = 1 << 20;

fn main() -> ExitCode {
    let Err(error) = run();
    eprintln!("http: {error}; usage: http [ADDRESS:PORT [THREADS [SECONDS]]]");
    ExitCode::from(2)
}

fn run() -> Result<Infallible, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let threads: NonZero<usize> = match arguments.next() {
        Some(threads) => threads.parse()?,
        None => thread::available_parallelism()?,
    };
    let silent: NonZero<u64> = arguments.next().map_or(Ok(SILENT_S), |seconds| seconds.parse())?;
    let silent = Duration::from_secs(silent.get());
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(threads.get()).fibers(STACK_BYTES) }.build()?;
    let listener = TcpListener::bind(address)?;
    println!("serves http://{}, by {threads} threads", listener.local_addr()?);
    loop {
        match listener.accept() {
            Ok((stream, _)) => drop(pool.spawn(move || serve(stream, silent))),
            Err(error) => {
                eprintln!("not accepted: {error}");
                // If no descriptor is left, a client has to hang up first.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Serves a connection until its last request, or until nothing comes or goes for `silent`.
fn serve(mut stream: TcpStream, silent: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(silent))?;
    stream.set_write_timeout(Some(silent))?;
    requests::serve(&mut stream)?;
    // If a socket is closed with unread bytes in it, the kernel resets the connection, and the
    // client may lose the answer.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(LINGERS))?;
    io::copy(&mut stream.take(LINGERING_BYTES), &mut io::sink()).map(drop)
}
