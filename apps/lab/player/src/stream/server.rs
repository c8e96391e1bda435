//! The server: one stored stream for many clients, on an event loop.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;

use antiphon_coop::event_loop::{Context, Event, Loop, Source, Step, now_ns};
use socket2::SockRef;

use super::peer::Peer;
use super::wire::{self, Answer};
use super::{Parting, Served, Stored};
use crate::Error;
use crate::importance::Scale;
use crate::player::Options;

/// The parameters of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// The window: the longest time by which a frame is sent before it is due, in milliseconds; 10
    /// to 60 000. The first frame is due one window after the client has received the description
    /// of the stream.
    pub window_ms: u32,
    /// How long before its due time a frame expires, in nanoseconds: the time from here to a
    /// picture, including all that was sent before and is still on its way.
    pub margin_ns: u64,
    /// Bytes of the socket's send buffer; up to half of them are unsent bytes. The order of these
    /// bytes can't be changed any more, so the buffer is short.
    pub send_buffer: usize,
    /// The most clients at a time.
    pub clients: usize,
    /// Number of clients after which the server stops listening; `None` for no limit.
    pub serves: Option<u64>,
    /// How long the server waits for a client's greeting, in nanoseconds.
    pub greeting_ns: u64,
    /// How long a client may take no bytes, in nanoseconds.
    pub stall_ns: u64,
}

impl Default for ServerOptions {
    /// A window of a second, a margin of 150 ms, a send buffer of 16 KiB, and 64 clients at a time
    /// without a limit in all, which have 5 s for their greeting and may stall for 10 s.
    fn default() -> Self {
        Self {
            window_ms: 1000,
            margin_ns: 150_000_000,
            send_buffer: 1 << 14,
            clients: 64,
            serves: None,
            greeting_ns: 5_000_000_000,
            stall_ns: 10_000_000_000,
        }
    }
}

/// The terms that all clients share.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) announcement: Arc<[u8]>,
    pub(super) window_ns: u64,
    pub(super) margin_ns: u64,
    pub(super) greeting_ns: u64,
    pub(super) stall_ns: u64,
}

impl Terms {
    /// The options by which frames are due and expire.
    pub(super) fn schedule(&self) -> Options {
        let scale = Scale { look_ahead_ns: self.window_ns };
        Options { scale, margin_ns: self.margin_ns, ..Options::default() }
    }
}

/// A server of a stored stream.
pub struct Server {
    stored: Rc<Stored>,
    options: ServerOptions,
    terms: Terms,
    /// Number of clients now, and of clients ever.
    now: usize,
    ever: u64,
    left: Box<dyn FnMut(&Served)>,
}

type Shared = Rc<RefCell<Server>>;

impl Server {
    /// Makes `events` serve the clients that connect to `address`; `left` is called for each client
    /// that has left. Returns the address, with the actual port.
    ///
    /// # Errors
    ///
    /// [`Error::Socket`] if the address is in use, or not available; [`Error::Parameter`] for a
    /// window out of bounds; [`Error::Stream`] for a stream with a frame whose display place is too
    /// far from its decode place.
    pub fn start(
        events: &mut Loop,
        address: SocketAddr,
        stored: Stored,
        options: ServerOptions,
        left: impl FnMut(&Served) + 'static,
    ) -> Result<SocketAddr, Error> {
        if !wire::WINDOW_MS.contains(&options.window_ms) {
            return Err(Error::Parameter("a window is of 10 to 60000 ms"));
        }
        let terms = Terms {
            announcement: wire::announce(stored.clip(), options.window_ms)?.into(),
            window_ns: u64::from(options.window_ms) * 1_000_000,
            margin_ns: options.margin_ns,
            greeting_ns: options.greeting_ns,
            stall_ns: options.stall_ns,
        };
        let failed = |error: io::Error| Error::Socket(address, error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?;
        let listener = Rc::new(listener);
        let source = Source::readable(Rc::clone(&listener)).edge_triggered();
        let (stored, left) = (Rc::new(stored), Box::new(left));
        let server = Self { stored, options, terms, now: 0, ever: 0, left };
        let shared = Rc::new(RefCell::new(server));
        let accept = move |context: &mut Context<'_>| accept(&shared, &listener, context);
        events.watch(source, Event::when_woken(0, accept).named("accept")).map_err(failed)?;
        Ok(own)
    }

    fn tell(&mut self, served: &Served) {
        self.now -= 1;
        (self.left)(served);
    }

    fn is_closed(&self) -> bool {
        self.options.serves.is_some_and(|serves| self.ever >= serves)
    }

    /// Makes a peer of a new client, if there is room.
    fn welcome(&mut self, stream: TcpStream, address: SocketAddr) -> io::Result<Option<Peer>> {
        stream.set_nonblocking(true)?;
        if self.now >= self.options.clients {
            // A message this short fits the buffer; otherwise the client only sees that the
            // connection was closed.
            let _ = (&stream).write(&wire::refuse(Answer::Busy));
            return Ok(None);
        }
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        socket.set_send_buffer_size(self.options.send_buffer)?;
        // The choice of frames that have not left yet can still change.
        let waits = u32::try_from(self.options.send_buffer / 2).unwrap_or(u32::MAX);
        socket.set_tcp_notsent_lowat(waits.max(1))?;
        self.now += 1;
        self.ever += 1;
        let (stored, terms) = (Rc::clone(&self.stored), self.terms.clone());
        Ok(Some(Peer::new(Rc::new(stream), address, stored, terms, now_ns())))
    }
}

/// Accepts all clients that are connecting.
fn accept(shared: &Shared, listener: &TcpListener, context: &mut Context<'_>) -> Step {
    while !shared.borrow().is_closed() {
        match listener.accept() {
            Ok((stream, address)) => {
                // A client that has left meanwhile is not reported.
                if let Ok(Some(peer)) = shared.borrow_mut().welcome(stream, address) {
                    serve(shared, peer, context);
                }
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Step::Asleep,
                ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                // For example, no descriptor is free: the clients wait until another one has left.
                _ => return Step::At(context.now_ns() + 100_000_000),
            },
        }
    }
    Step::Done
}

fn serve(shared: &Shared, mut peer: Peer, context: &mut Context<'_>) {
    let source = Source::both(peer.socket()).edge_triggered();
    let unserved = peer.served(Parting::HungUp);
    let of_event = Rc::clone(shared);
    let step = move |context: &mut Context<'_>| match peer.step(context) {
        Ok(step) => step,
        Err(served) => {
            of_event.borrow_mut().tell(&served);
            Step::Done
        }
    };
    if let Err(error) = context.watch(source, Event::when_woken(0, step).named("send")) {
        let parting = Parting::Failed(error.to_string());
        shared.borrow_mut().tell(&Served { parting, ..unserved });
    }
}
