//! Servers and clients over the machine's loopback: order and completeness, under any load of the
//! machine.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use antiphon_coop::event_loop::{Event, Loop, Step, now_ns};

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Decode, Synthetic};
use crate::stream::wire::{self, Reader, Said};
use crate::stream::{
    Bucket, Client, ClientOptions, Parting, Quality, Served, Server, ServerOptions, Stored,
};
use crate::{Error, Headless, made};

use super::super::real::Scratch;

pub(super) type Plays = Client<Headless>;

/// A server of a generated clip, on its own loop, and the clients that have left it.
pub(super) struct Site {
    pub(super) events: Loop,
    pub(super) address: SocketAddr,
    pub(super) left: Rc<RefCell<Vec<Served>>>,
    pub(super) file: PathBuf,
    pub(super) clip: Arc<Clip>,
    _scratch: Scratch,
}

impl Site {
    /// A site whose clip has `units` units, at `rate` frames per second.
    pub(super) fn new(name: &str, [units, rate]: [u32; 2], options: ServerOptions) -> Self {
        let scratch = Scratch::new(name);
        let (file, stream) = (scratch.0.join("clip.h264"), made::layered(units as usize, rate));
        std::fs::write(&file, &stream).unwrap();
        let mut events = Loop::new().unwrap();
        let left = Rc::new(RefCell::new(Vec::new()));
        let tells = Rc::clone(&left);
        let tell = move |served: &Served| tells.borrow_mut().push(served.clone());
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let stored = Stored::open(&file).unwrap();
        let address = Server::start(&mut events, any, stored, options, tell).unwrap();
        let clip = Arc::new(Clip::parse(stream).unwrap());
        Self { events, address, left, file, clip, _scratch: scratch }
    }

    pub(super) fn client(&mut self, quality: Quality, kbit: Option<u64>) -> Plays {
        let bytes_per_second = kbit.map(|kbit| kbit * 125);
        let options = ClientOptions { quality, bytes_per_second, has_counter: true };
        Client::start(&mut self.events, self.address, options, make).unwrap()
    }

    /// Runs until `is_so` returns true; it is called every 10 ms.
    pub(super) fn run_until(&mut self, mut is_so: impl FnMut(&[Served]) -> bool + 'static) {
        let left = Rc::clone(&self.left);
        self.events.submit(Event::timer_in_steps(now_ns(), move |context| {
            if is_so(&left.borrow()) {
                context.stop();
                return Step::Done;
            }
            Step::At(context.now_ns() + 10_000_000)
        }));
        let _ = self.events.run();
    }
}

/// A decoder that takes almost no time.
pub(super) fn make(clip: &Clip) -> Result<(Box<dyn Decode>, Headless), Error> {
    let decoder = Synthetic::new(Costs::by_size(clip, 1000)?, |_| {});
    Ok((Box::new(decoder), Headless))
}

/// Returns whether a client has played everything.
pub(super) fn is_over(client: &Plays) -> bool {
    client.player().is_some_and(|player| player.program().is_over())
}

/// Receives what a server sends over a slow link, in a thread; returns the frames in order.
fn take_slowly(address: SocketAddr, bytes_per_second: u64) -> JoinHandle<Vec<usize>> {
    let mut stream = TcpStream::connect(address).unwrap();
    socket2::SockRef::from(&stream).set_recv_buffer_size(1 << 12).unwrap();
    stream.write_all(&wire::hello(Quality::All)).unwrap();
    std::thread::spawn(move || {
        let mut bucket = Bucket::new(bytes_per_second, 10_000_000);
        let (mut reader, mut bytes, mut frames) = (Reader::default(), [0; 1024], Vec::new());
        loop {
            let now_ns = now_ns();
            if let Some(until_ns) = bucket.empty_until_ns(now_ns) {
                std::thread::sleep(Duration::from_nanos(until_ns - now_ns));
                continue;
            }
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "no end of it");
            bucket.take(now_ns, count);
            reader.feed(&bytes[..count]);
            while let Some(said) = reader.next().unwrap() {
                match said {
                    Said::Frame(frame, _) => frames.push(frame),
                    Said::End => return frames,
                    Said::Begin(..) => {}
                }
            }
        }
    })
}

/// Checks that no I frame is dropped while it waits and a `b` is sent. This uses only the order of
/// arrivals, not their times: an I frame had been taken in when a frame was sent that is decoded
/// after it, and had not expired when a frame was sent that is due before it.
fn essentials_first(frames: &[usize], clip: &Clip) {
    let all = clip.frames();
    let of = |layer: Layer| move |&n: &usize| all[n].layer == layer;
    let lost = (0..all.len()).filter(of(Layer::Intra)).filter(|intra| !frames.contains(intra));
    for intra in lost {
        let Some(taken_in) = frames.iter().position(|&frame| frame > intra) else { continue };
        let after = frames[taken_in..].iter().filter(|&n| of(Layer::Disposable)(n));
        for &detail in after {
            let was_in_time = all[detail].shown <= all[intra].shown;
            assert!(!was_in_time, "{detail} was sent, and the I {intra} was not");
        }
    }
}

#[test]
fn one_stream_has_three_qualities_at_once_and_who_stalls_is_in_nobodys_way() {
    // 1.2 Mbit/s, with a short send buffer.
    let options =
        ServerOptions { send_buffer: 1 << 12, stall_ns: u64::MAX, ..ServerOptions::default() };
    let mut site = Site::new("three", [96, 240], options);
    // A client that requests everything, and takes nothing.
    let mut stalled = TcpStream::connect(site.address).unwrap();
    socket2::SockRef::from(&stalled).set_recv_buffer_size(1 << 12).unwrap();
    stalled.write_all(&wire::hello(Quality::All)).unwrap();
    let slow = take_slowly(site.address, 600 * 125);
    let clients = [
        site.client(Quality::All, None),
        site.client(Quality::Reference, Some(900)),
        site.client(Quality::Intra, None),
    ];
    let watched = clients.clone();
    // All except the client that stalls: those three and the slow one.
    site.run_until(move |left| watched.iter().all(is_over) && left.len() == 4);

    let frames = slow.join().unwrap();
    essentials_first(&frames, &site.clip);
    let left = site.left.borrow();
    assert!(left.iter().all(|served| served.parting == Parting::Played), "{left:?}");
    for (client, quality) in clients.iter().zip([Quality::All, Quality::Reference, Quality::Intra])
    {
        let received = client.received();
        assert!(received.is_whole && received.fault.is_none(), "{received:?}");
        let player = client.player().unwrap();
        let player = player.program();
        let report = player.report();
        // Each picture shown is the right one, in order.
        assert_eq!((report.disorder, report.misread, report.unread), (0, 0, 0), "{report}");
        let sums = |count: fn(&Served, Layer) -> u64| {
            let same = |served: &&Served| {
                let sent: u64 = Layer::ALL.iter().map(|&layer| served.layer(layer).sent).sum();
                let came: u64 = Layer::ALL.iter().map(|&layer| received.layer(layer)).sum();
                served.quality == quality && sent == came + received.late
            };
            left.iter().find(same).map(|served| Layer::ALL.map(|layer| count(served, layer)))
        };
        // Everything sent has arrived, and nothing that was not requested.
        let sent = sums(|served, layer| served.layer(layer).sent).expect("who was sent as much");
        for (sent, layer) in sent.into_iter().zip(Layer::ALL) {
            assert!(report.layer(layer).shown <= received.layer(layer));
            assert!(received.layer(layer) <= sent && (layer >= quality.least() || sent == 0));
        }
        assert!(report.layer(Layer::Intra).shown > 0, "{report}");
    }
    assert!(frames.len() < site.clip.frames().len(), "a link of half the rate carries it all");
    drop(stalled);
}

#[test]
fn a_server_serves_as_many_as_it_is_to_and_ends() {
    let options = ServerOptions { serves: Some(2), window_ms: 300, ..ServerOptions::default() };
    let mut site = Site::new("two", [12, 60], options);
    let clients = [site.client(Quality::All, None), site.client(Quality::Predicted, None)];
    assert_eq!(site.events.run(), antiphon_coop::event_loop::End::Done);
    assert!(clients.iter().all(is_over));
    let left = site.left.borrow();
    assert_eq!(left.len(), 2);
    for served in left.iter() {
        let line = served.to_string();
        assert!(line.contains("to the end") && line.contains(served.quality.name()), "{line}");
        assert_eq!(line.contains(", b "), served.quality == Quality::All, "{line}");
    }
    // The server has stopped listening.
    assert!(TcpStream::connect(site.address).is_err());
}
