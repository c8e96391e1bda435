//! An echo server: each connection is a fiber, which reads and writes as a thread would.
//!
//! `cargo run --release -p antiphon --example echo -- 127.0.0.1:7777 2`, where `nc 127.0.0.1 7777`
//! is a client. The address and the number of threads may be left out.

use std::convert::Infallible;
use std::error::Error;
use std::io::{self, Read, Write};
use std::num::NonZero;
use std::process::ExitCode;
use std::time::Duration;
use std::{env, thread};

use antiphon::fiber::STACK_BYTES;
use antiphon::net::{TcpListener, TcpStream};
use antiphon::pool::Pool;

fn main() -> ExitCode {
    let Err(error) = run();
    eprintln!("echo: {error}; usage: echo [ADDRESS:PORT [THREADS]]");
    ExitCode::from(2)
}

fn run() -> Result<Infallible, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let threads: NonZero<usize> = match arguments.next() {
        Some(threads) => threads.parse()?,
        None => thread::available_parallelism()?,
    };
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(threads.get()).fibers(STACK_BYTES) }.build()?;
    let listener = TcpListener::bind(address)?;
    println!("echoes on {}, by {threads} threads", listener.local_addr()?);
    loop {
        match listener.accept() {
            Ok((stream, _)) => drop(pool.spawn(move || echo(stream))),
            Err(error) => {
                eprintln!("not accepted: {error}");
                // If no descriptor is left, a client has to hang up first.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Sends back all received bytes, until the end of the stream.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => stream.write_all(&buffer[..read])?,
        }
    }
}
