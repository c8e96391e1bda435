//! An HTTP/1.1 server that says what it was asked for: each connection is a fiber, and is kept for
//! further requests.
//!
//! `cargo run --release -p antiphon --example http -- 127.0.0.1:8080 2`, and then
//! `curl http://127.0.0.1:8080/hello`. The address and the number of threads may be left out.

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

/// Of a request without its body, and of headers.
const MOST_BYTES: usize = 8 << 10;
const MOST_HEADERS: usize = 64;

fn main() -> ExitCode {
    let Err(error) = run();
    eprintln!("http: {error}; usage: http [ADDRESS:PORT [THREADS]]");
    ExitCode::from(2)
}

fn run() -> Result<Infallible, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let threads: NonZero<usize> = match arguments.next() {
        Some(threads) => threads.parse()?,
        None => thread::available_parallelism()?,
    };
    // SAFETY: no thread-local is made by what waits.
    let pool = unsafe { Pool::builder().threads(threads.get()).fibers(STACK_BYTES) }.build()?;
    let listener = TcpListener::bind(address)?;
    println!("serves http://{}, by {threads} threads", listener.local_addr()?);
    loop {
        match listener.accept() {
            Ok((stream, _)) => drop(pool.spawn(move || serve(stream))),
            Err(error) => {
                eprintln!("not accepted: {error}");
                // Where no descriptor is left, somebody has to hang up first.
                thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Answers one request after the other, until one is the last, or none.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut filled) = ([0; MOST_BYTES], 0);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&buffer[..filled]) {
            Ok(httparse::Status::Complete(length)) => {
                let (answer, is_last) = answer(&request);
                stream.write_all(&answer)?;
                if is_last {
                    return Ok(());
                }
                buffer.copy_within(length..filled, 0);
                filled -= length;
            }
            Ok(httparse::Status::Partial) if filled < MOST_BYTES => {
                match stream.read(&mut buffer[filled..])? {
                    0 => return Ok(()),
                    read => filled += read,
                }
            }
            _ => return stream.write_all(&response("400 Bad Request", "no request\n", true)),
        }
    }
}

/// What is sent back, and whether nothing is after it.
fn answer(request: &httparse::Request<'_, '_>) -> (Vec<u8>, bool) {
    let has = |name: &str, value: &[u8]| {
        request.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case(name) && header.value.eq_ignore_ascii_case(value)
        })
    };
    if request.method != Some("GET") {
        // There may be a body, which is not read.
        return (response("405 Method Not Allowed", "only GET\n", true), true);
    }
    let is_last = request.version == Some(0) || has("connection", b"close");
    let text = format!("{}\n", request.path.unwrap_or_default());
    (response("200 OK", &text, is_last), is_last)
}

fn response(status: &str, text: &str, is_last: bool) -> Vec<u8> {
    let kept = if is_last { "close" } else { "keep-alive" };
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: {kept}\r\n\r\n{text}"
    )
    .into_bytes()
}
