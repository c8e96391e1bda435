//! The example `http`: where requests end on a connection that is kept.

#[path = "../../examples/http/requests.rs"]
mod requests;

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use super::{SHORT, in_fiber, pair, pool};
use requests::MOST_BODY;

/// Returns the first lines of the answers to these bytes, and the bodies.
fn answers(sent: impl Into<Vec<u8>>) -> (Vec<String>, String) {
    let sent = sent.into();
    in_fiber(move || {
        let (mut client, mut server) = pair();
        let pool = pool(1);
        let served = pool.spawn(move || requests::serve(&mut server));
        client.write_all(&sent).expect("it is read");
        client.shutdown(Shutdown::Write).expect("connected");
        let mut all = String::new();
        client.read_to_string(&mut all).expect("answers, and the end");
        served.join().expect("no panic").expect("served");
        let statuses = all.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].to_owned());
        (statuses.collect(), all)
    })
}

fn statuses(sent: &str) -> Vec<String> {
    answers(sent).0
}

#[test]
fn a_body_is_no_request() {
    let inner = "GET /stolen HTTP/1.1\r\n\r\n";
    let length = inner.len();
    let sent = format!(
        "POST /a HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{inner}\
         GET /b HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{inner}GET /c HTTP/1.1\r\n\r\n"
    );
    let (statuses, all) = answers(sent);
    assert_eq!(statuses, ["405", "200", "200"]);
    assert!(all.contains("\n/b\n") && all.contains("\n/c\n") && !all.contains("stolen"), "{all}");
}

/// The body is longer than the part that is read with the headers; a client that waits to be asked
/// for it is asked.
#[test]
fn a_long_body_is_read_to_its_end() {
    let body = "x".repeat(MOST_BODY as usize);
    let sent = format!(
        "PUT / HTTP/1.1\r\nContent-Length: {MOST_BODY}\r\nExpect: 100-continue\r\n\r\n{body}\
         GET /after HTTP/1.1\r\nConnection: close\r\n\r\nGET /never HTTP/1.1\r\n\r\n"
    );
    let (statuses, all) = answers(sent);
    assert_eq!(statuses, ["100", "405", "200"]);
    assert!(all.ends_with("\n/after\n"), "{all}");
}

#[test]
fn a_body_without_a_clear_end_is_the_last() {
    let after = "GET /after HTTP/1.1\r\n\r\n";
    let with = |headers: &str| statuses(&format!("GET / HTTP/1.1\r\n{headers}\r\n{after}"));
    for length in ["+5", "-1", "5, 5", "0x5", "", "five"] {
        assert_eq!(with(&format!("Content-Length: {length}\r\n")), ["400"], "{length}");
    }
    assert_eq!(with("Content-Length: 5\r\nContent-Length: 5\r\n"), ["400"]);
    for length in [(MOST_BODY + 1).to_string(), "9".repeat(30)] {
        assert_eq!(with(&format!("Content-Length: {length}\r\n")), ["413"], "{length}");
    }
    assert_eq!(with("Transfer-Encoding: chunked\r\n"), ["501"]);
    assert_eq!(with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), ["501"]);
    // A request that ends early gets no answer.
    assert_eq!(statuses("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nfour"), [""; 0]);
    assert_eq!(statuses("no request\r\n\r\n"), ["400"]);
}

#[test]
fn who_is_silent_is_not_waited_for() {
    let ended = in_fiber(|| {
        let (mut client, mut server) = pair();
        server.set_read_timeout(Some(SHORT)).expect("not zero");
        client.write_all(b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n").expect("room");
        requests::serve(&mut server).map_err(|error| error.kind())
    });
    assert_eq!(ended, Err(ErrorKind::WouldBlock));
}
