//! Requests of one connection, and where each ends: RFC 9112, section 6.
//!
//! | length in the request | handling |
//! |---|---|
//! | none | the request ends with its headers |
//! | `Content-Length` | that many bytes are skipped, up to [`MOST_BODY`]; above that 413 |
//! | several, or not a number | 400, and the connection ends |
//! | `Transfer-Encoding` | 501, and the connection ends |

use std::io::{self, Read, Write};

use httparse::{EMPTY_HEADER, Request, Status};

/// Maximum size of a request without its body, in bytes.
const MOST_BYTES: usize = 8 << 10;
const MOST_HEADERS: usize = 64;
/// Maximum size of a body, in bytes.
pub const MOST_BODY: u64 = 1 << 20;
/// The answer to a client that sends the body only when asked for it: RFC 9110, section 10.1.1.
const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The reason why the end of a request is unknown, or too far to wait for: a status, and a text.
type Refusal = (&'static str, &'static str);

/// Answers one request after the other, until a request is the last or is refused, or the stream
/// ends.
///
/// # Errors
///
/// The errors of the stream, including its timeouts.
pub fn serve(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let (mut buffer, mut filled) = ([0; MOST_BYTES], 0);
    loop {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut request = Request::new(&mut headers);
        match request.parse(&buffer[..filled]) {
            Ok(Status::Complete(length)) => {
                let body = match body_length(&request) {
                    Ok(body) => body,
                    Err((status, why)) => return stream.write_all(&response(status, why, true)),
                };
                let (answer, is_last) = answer(&request);
                let waits = has(&request, "expect", "100-continue");
                let here = body.min((filled - length) as u64);
                buffer.copy_within(length + here as usize..filled, 0);
                filled -= length + here as usize;
                let is_whole = skip(stream, body - here, waits)?;
                if is_whole {
                    stream.write_all(&answer)?;
                }
                if is_last || !is_whole {
                    return Ok(());
                }
            }
            Ok(Status::Partial) if filled < MOST_BYTES => {
                match stream.read(&mut buffer[filled..])? {
                    0 => return Ok(()),
                    read => filled += read,
                }
            }
            _ => return stream.write_all(&response("400 Bad Request", "no request\n", true)),
        }
    }
}

/// Reads the last `left` bytes of a body, and returns whether they came. If `waits`, the client
/// waits for a `100 Continue`.
fn skip(stream: &mut (impl Read + Write), left: u64, waits: bool) -> io::Result<bool> {
    if left > 0 && waits {
        stream.write_all(GO_ON)?;
    }
    Ok(io::copy(&mut stream.take(left), &mut io::sink())? == left)
}

/// Returns the length of the body, in bytes.
fn body_length(request: &Request<'_, '_>) -> Result<u64, Refusal> {
    // This header takes precedence over a length.
    if values(request, "transfer-encoding").next().is_some() {
        return Err(("501 Not Implemented", "no transfer encodings: send a Content-Length\n"));
    }
    let mut lengths = values(request, "content-length");
    let Some(length) = lengths.next() else { return Ok(0) };
    if lengths.next().is_some() || length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
        return Err(("400 Bad Request", "Content-Length is not one decimal number\n"));
    }
    // Only digits, so a number that does not fit is too large.
    let length = str::from_utf8(length).ok().and_then(|digits| digits.parse().ok());
    length.filter(|&length| length <= MOST_BODY).ok_or(("413 Content Too Large", "1 MiB at most\n"))
}

/// Returns the answer to a request, and whether it is the last of the connection.
fn answer(request: &Request<'_, '_>) -> (Vec<u8>, bool) {
    let is_last = request.version == Some(0) || has(request, "connection", "close");
    if request.method != Some("GET") {
        let status = "405 Method Not Allowed\r\nAllow: GET";
        return (response(status, "only GET\n", is_last), is_last);
    }
    let text = format!("{}\n", request.path.unwrap_or_default());
    (response("200 OK", &text, is_last), is_last)
}

/// Returns the values of the headers of that name.
fn values<'a>(request: &'a Request<'_, '_>, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let named = request.headers.iter().filter(move |it| it.name.eq_ignore_ascii_case(name));
    named.map(|header| header.value)
}

fn has(request: &Request<'_, '_>, name: &str, value: &str) -> bool {
    values(request, name).any(|it| it.eq_ignore_ascii_case(value.as_bytes()))
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
