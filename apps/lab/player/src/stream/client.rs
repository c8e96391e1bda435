//! The client: takes the frames that a server sends, at up to a given rate, and passes them to a
//! player.

use std::cell::{Ref, RefCell};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use antiphon_coop::event_loop::{Context, Event, Loop, Source, Step};
use socket2::{Domain, Socket, Type};

use super::wire::{self, Reader, Said};
use super::{Bucket, Quality};
use crate::clip::{Clip, Layer};
use crate::decode::Decode;
use crate::picture::Screen;
use crate::{Error, Hosted, Options, Player, Scale};

/// How long the client waits for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the client waits for a stream to begin, in nanoseconds.
const BEGIN_NS: u64 = 10_000_000_000;
/// The interval at which the client checks whether its player has ended, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
/// The size of a read, in bytes, with a rate and without one.
const SLOW_READ: usize = 1 << 11;
const READ: usize = 1 << 16;
/// The rate of a link is averaged over this time, in nanoseconds.
const BURST_NS: u64 = 10_000_000;
/// The size of a segment on a real network: those of a loopback are longer than slow links'
/// buffers.
const SEGMENT: u32 = 1400;
/// The most bytes of frames that have arrived and are not decoded: 64 MiB, and few in tests.
const HELD: usize = if cfg!(test) { 1 << 20 } else { 1 << 26 };

/// The options of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// The layers that it requests.
    pub quality: Quality,
    /// The most bytes that it reads per second: simulates a link of that rate on a machine without
    /// one. The socket then has room for a tenth of a second's bytes, but at least the minimum of a
    /// socket, so the server chooses late what it sends.
    pub bytes_per_second: Option<u64>,
    /// Whether pictures have a [counter](crate::counter), which is read when they are shown.
    pub has_counter: bool,
}

/// The frames that have arrived from a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Frames that arrived in time to be of use, by layer, the least important first.
    pub(super) frames: [u64; 4],
    /// Frames that arrived when they were no longer of use.
    pub late: u64,
    /// All bytes received, including those outside of frames.
    pub bytes: u64,
    /// Whether the server has sent everything that it intended to send.
    pub is_whole: bool,
    /// Why the stream ended early.
    pub fault: Option<String>,
}

impl Received {
    /// Frames of a layer that arrived in time to be of use.
    pub fn layer(&self, layer: Layer) -> u64 {
        self.frames[layer as usize]
    }
}

type Plays<S> = Hosted<Player<Box<dyn Decode>, S>>;
type Make<S> = dyn FnOnce(&Clip) -> Result<(Box<dyn Decode>, S), Error>;

/// A client. Copies refer to the same client.
pub struct Client<S>(Rc<RefCell<State<S>>>);

impl<S> Clone for Client<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

struct State<S> {
    /// The connection, until no more data comes.
    stream: Option<Rc<TcpStream>>,
    reader: Reader,
    bucket: Option<Bucket>,
    options: ClientOptions,
    make: Option<Box<Make<S>>>,
    player: Option<Plays<S>>,
    received: Received,
    begun_ns: u64,
}

impl<S: Screen + 'static> Client<S> {
    /// Connects to a server, and makes `events` play the stream that arrives. `make` is called when
    /// a stream begins, to create its decoder and its screen. Blocks until the connection exists,
    /// for at most 5 s.
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] if no server answers; [`Error::Parameter`] for a rate of 0.
    pub fn start(
        events: &mut Loop,
        address: SocketAddr,
        options: ClientOptions,
        make: impl FnOnce(&Clip) -> Result<(Box<dyn Decode>, S), Error> + 'static,
    ) -> Result<Self, Error> {
        if options.bytes_per_second == Some(0) {
            return Err(Error::Parameter("a link carries more than 0 bytes a second"));
        }
        let failed = |error: io::Error| Error::Socket(address, error);
        let stream = Rc::new(connect(address, &options).map_err(failed)?);
        let source = Source::readable(Rc::clone(&stream)).edge_triggered();
        let client = Self(Rc::new(RefCell::new(State {
            stream: Some(stream),
            reader: Reader::default(),
            bucket: options.bytes_per_second.map(|rate| Bucket::new(rate, BURST_NS)),
            options,
            make: Some(Box::new(make)),
            player: None,
            received: Received::default(),
            begun_ns: antiphon_coop::event_loop::now_ns(),
        })));
        let state = Rc::clone(&client.0);
        let step = move |context: &mut Context<'_>| state.borrow_mut().step(context);
        // Runs before decoding: it is little work, and decoding depends on it.
        events.watch(source, Event::when_woken(0, step).named("take")).map_err(failed)?;
        Ok(client)
    }

    /// The frames that have arrived so far.
    ///
    /// # Panics
    ///
    /// If called while the client's event runs.
    pub fn received(&self) -> Ref<'_, Received> {
        Ref::map(self.0.borrow(), |state| &state.received)
    }

    /// The player, if a stream has begun.
    ///
    /// # Panics
    ///
    /// If called while the client's event runs.
    pub fn player(&self) -> Option<Plays<S>> {
        self.0.borrow().player.clone()
    }
}

fn connect(address: SocketAddr, options: &ClientOptions) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if let Some(rate) = options.bytes_per_second {
        // The kernel allocates twice as much, for its own overhead.
        let room = (rate / 20).clamp(1 << 12, 1 << 18);
        socket.set_recv_buffer_size(room as usize)?;
        socket.set_tcp_mss(SEGMENT)?;
    }
    socket.connect_timeout(&address.into(), CONNECT)?;
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.write_all(&wire::hello(options.quality))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

impl<S: Screen + 'static> State<S> {
    fn step(&mut self, context: &mut Context<'_>) -> Step {
        let went = self.take(context);
        // A player that has shown everything, or whose screen was closed, needs no more of the
        // stream.
        let is_over = self.player.as_ref().is_some_and(|player| player.program().is_over());
        if let Ok(step) = went
            && step != Step::Done
            && !is_over
        {
            return step;
        }
        if let Err(fault) = went
            && !is_over
        {
            self.received.fault = Some(fault);
            if let Some(player) = &self.player {
                player.with(context, |player, timeline| player.cut(timeline));
            }
        }
        self.stream = None;
        Step::Done
    }

    /// Reads what has arrived, until the loop has other work.
    fn take(&mut self, context: &mut Context<'_>) -> Result<Step, String> {
        let Some(stream) = self.stream.clone() else { return Ok(Step::Done) };
        let mut bytes = [0; READ];
        loop {
            let now_ns = context.now_ns();
            if let Some(until_ns) = self.bucket.and_then(|bucket| bucket.empty_until_ns(now_ns)) {
                return self.wait(until_ns, now_ns);
            }
            if context.is_over() {
                return Ok(Step::More(0));
            }
            let most = if self.bucket.is_some() { SLOW_READ } else { READ };
            match (&*stream).read(&mut bytes[..most]) {
                Ok(0) => return Err("the server hung up".to_owned()),
                Ok(count) => {
                    if let Some(bucket) = &mut self.bucket {
                        bucket.take(now_ns, count);
                    }
                    self.received.bytes += count as u64;
                    self.reader.feed(&bytes[..count]);
                    if self.hear(context)? {
                        return Ok(Step::Done);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return self.wait(u64::MAX, now_ns);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("the server is gone: {error}")),
            }
        }
    }

    fn wait(&self, until_ns: u64, now_ns: u64) -> Result<Step, String> {
        if self.player.is_none() && now_ns >= self.begun_ns + BEGIN_NS {
            return Err("no stream has begun".to_owned());
        }
        Ok(Step::At(until_ns.min(now_ns + LOOK_NS)))
    }

    /// Handles the messages that are complete; returns whether the stream has ended.
    fn hear(&mut self, context: &mut Context<'_>) -> Result<bool, String> {
        let garbage = |what: &str| format!("the server sends {what}");
        while let Some(said) = self.reader.next().map_err(garbage)? {
            match (said, &self.player) {
                (Said::Begin(clip, window_ns), _) => self.begin(clip, window_ns, context)?,
                (Said::Frame(frame, bytes), Some(player)) => {
                    let (layer, held) = player.with(context, |player, timeline| {
                        (player.arrive(frame, bytes, timeline), player.held_bytes())
                    });
                    match layer {
                        Some(layer) => self.received.frames[layer as usize] += 1,
                        None => self.received.late += 1,
                    }
                    if held > HELD {
                        return Err("the server sends more frames ahead than this client can hold"
                            .to_owned());
                    }
                }
                (Said::Frame(..), None) => {}
                (Said::End, _) => {
                    self.received.is_whole = true;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn begin(
        &mut self,
        clip: Clip,
        look_ahead_ns: u64,
        context: &mut Context<'_>,
    ) -> Result<(), String> {
        let Some(make) = self.make.take() else { return Ok(()) };
        let (decoder, screen) = make(&clip).map_err(|error| error.to_string())?;
        let scale = Scale { look_ahead_ns };
        let options =
            Options { scale, has_counter: self.options.has_counter, ..Options::default() };
        let player = Player::new(Arc::new(clip), decoder, screen, options);
        self.player = Some(Hosted::begin(context, player));
        Ok(())
    }
}
