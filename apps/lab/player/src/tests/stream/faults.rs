//! Peers that violate the protocol or leave early: each leads to a clear message, and other clients
//! are not disturbed.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use antiphon_coop::event_loop::Loop;

use crate::clip::Layer;
use crate::stream::wire;
use crate::stream::{
    Client, ClientOptions, Parting, Quality, Received, Server, ServerOptions, Stored,
};
use crate::{Error, made};

use super::loopback::{Site, is_over, make};

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn brief() -> ServerOptions {
    ServerOptions { window_ms: 300, ..ServerOptions::default() }
}

#[test]
fn what_can_not_be_served_is_said() {
    let said = Stored::open(Path::new("/no/such/clip.h264")).unwrap_err().to_string();
    assert!(said.contains("/no/such/clip.h264") && said.contains("No such file"), "{said}");
    let error = Stored::open(Path::new("Cargo.toml")).unwrap_err();
    assert!(matches!(error, Error::Stream(..)), "{error}");

    let mut site = Site::new("unserved", [4, 60], brief());
    let again = |address, options| {
        let stored = Stored::open(&site.file).unwrap();
        Server::start(&mut site.events, address, stored, options, |_| {})
    };
    let mut again = again;
    let said = again(site.address, brief()).unwrap_err().to_string();
    assert!(said.contains(&site.address.to_string()) && said.contains("in use"), "{said}");
    let wide = ServerOptions { window_ms: 100_000, ..brief() };
    assert!(matches!(again(any(), wide), Err(Error::Parameter(_))));
}

#[test]
fn clients_that_are_none_are_sent_away_and_the_others_are_served() {
    let options = ServerOptions { clients: 6, greeting_ns: 200_000_000, ..brief() };
    let mut site = Site::new("peers", [24, 60], options);
    let connect = || TcpStream::connect(site.address).unwrap();
    let mut web = connect();
    web.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut chatty = connect();
    chatty.write_all(&wire::hello(Quality::All)).unwrap();
    chatty.write_all(b"and").unwrap();
    let mut newer = connect();
    let mut hello = wire::hello(Quality::All);
    hello[4] = 2;
    newer.write_all(&hello).unwrap();
    let silent = connect();
    let mut gone = connect();
    gone.write_all(&wire::hello(Quality::All)).unwrap();
    gone.shutdown(Shutdown::Both).unwrap();
    drop(gone);
    let client = site.client(Quality::All, None);
    // One client more than there is room for.
    let crowded = site.client(Quality::All, None);

    let (watched, many) = (client.clone(), crowded.clone());
    site.run_until(move |left| {
        is_over(&watched) && left.len() == 6 && many.received().fault.is_some()
    });

    let mut partings: Vec<_> =
        site.left.borrow().iter().map(|served| served.parting.clone()).collect();
    for wanted in [
        Parting::Garbage,
        Parting::Garbage,
        Parting::OtherVersion,
        Parting::Silent,
        Parting::HungUp,
        Parting::Played,
    ] {
        let place = partings.iter().position(|parting| *parting == wanted);
        partings.remove(place.unwrap_or_else(|| panic!("{wanted:?} of {partings:?}")));
    }
    let fault = crowded.received().fault.clone().unwrap();
    assert!(fault.contains("as many as it may"), "{fault}");
    // A peer that speaks another version gets an error.
    let mut answer = Vec::new();
    newer.read_to_end(&mut answer).unwrap();
    assert_eq!((answer.len(), &answer[..7]), (40, &b"aphS\x01\0\x01"[..]));
    drop((web, silent));
    let player = client.player().unwrap();
    assert!(player.program().report().layer(Layer::Intra).shown > 0);
    assert!(client.received().is_whole);
}

#[test]
fn who_takes_nothing_is_not_waited_for_without_end() {
    let options = ServerOptions { stall_ns: 300_000_000, send_buffer: 1 << 12, ..brief() };
    // 1.2 Mbit/s for two seconds.
    let mut site = Site::new("stalls", [96, 240], options);
    let mut stalled = TcpStream::connect(site.address).unwrap();
    socket2::SockRef::from(&stalled).set_recv_buffer_size(1 << 12).unwrap();
    stalled.write_all(&wire::hello(Quality::All)).unwrap();
    site.run_until(|left| left.len() == 1);
    let left = site.left.borrow();
    assert_eq!(left[0].parting, Parting::Stalled);
    assert!(left[0].to_string().contains("stopped reading"));
}

#[test]
fn a_file_that_is_cut_short_loses_what_was_there() {
    let options = ServerOptions { serves: Some(1), ..brief() };
    let mut site = Site::new("short", [24, 60], options);
    let whole = std::fs::metadata(&site.file).unwrap().len();
    std::fs::File::options().write(true).open(&site.file).unwrap().set_len(whole / 2).unwrap();
    let client = site.client(Quality::All, None);
    let _ = site.events.run();
    let left = site.left.borrow();
    assert!(left[0].unread.as_ref().is_some_and(|(frames, _)| *frames > 0), "{:?}", left[0]);
    assert!(left[0].to_string().contains("could not be read"));
    let received = client.received();
    assert!(received.is_whole && is_over(&client), "{received:?}");
    let player = client.player().unwrap();
    assert_eq!(player.program().report().misread, 0);
    assert!((1..24).contains(&player.program().report().layer(Layer::Intra).shown));
}

/// The state of a client that is sent these bytes, and then nothing.
fn told(bytes: Vec<u8>) -> Received {
    let listener = TcpListener::bind(any()).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; wire::HELLO_LEN];
        stream.read_exact(&mut hello).unwrap();
        // The client may hang up before everything is sent.
        let _ = stream.write_all(&bytes);
    });
    let mut events = Loop::new().unwrap();
    let client = Client::start(&mut events, address, ClientOptions::default(), make).unwrap();
    let _ = events.run();
    server.join().unwrap();
    client.received().clone()
}

#[test]
fn servers_that_are_none_are_told_apart() {
    let announce =
        |units| wire::announce(&crate::Clip::parse(made::layered(units, 60)).unwrap(), 20).unwrap();
    let begin = announce(4);
    let with = |more: &[u8]| [&begin[..], more].concat();
    // Frames that are due in two seconds.
    let mut much = announce(40);
    for number in 120..125 {
        much.extend(wire::frame(number, 300_000));
        much.resize(much.len() + 300_000, 7);
    }
    for (bytes, wanted) in [
        (Vec::new(), "hung up"),
        (begin[..30].to_vec(), "hung up"),
        (
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec(),
            "not the answer of such",
        ),
        (begin.clone(), "hung up"),
        (with(&wire::frame(20, 5)), "a frame with an impossible"),
        (with(&wire::frame(0, 1 << 30)), "a frame with an impossible"),
        (with(&[9; 12]), "unknown kind"),
        (much, "more frames ahead than"),
    ] {
        let received = told(bytes);
        let fault = received.fault.unwrap_or_default();
        assert!(fault.contains(wanted) && !received.is_whole, "{wanted}: {fault}");
    }
    let whole = told(with(&wire::end()));
    assert!(whole.is_whole && whole.fault.is_none(), "{whole:?}");

    let listener = TcpListener::bind(any()).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut events = Loop::new().unwrap();
    let mut start = |options| Client::start(&mut events, address, options, make).err().unwrap();
    let error = start(ClientOptions::default());
    assert!(error.to_string().contains("refused"), "{error}");
    let no_link = ClientOptions { bytes_per_second: Some(0), ..ClientOptions::default() };
    assert!(matches!(start(no_link), Error::Parameter(_)));
}
