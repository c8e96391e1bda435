//! A client from its server's point of view.
//!
//! ```text
//!   Greets ──hello──► Told ──announced──► Served ──all sent or dropped──► Leaves ──► (over)
//! ```
//!
//! A client's event either waits for the socket or for a time, or is queued among the loop's work
//! by the importance of the client's next frame: when it runs, one frame is read and written. So
//! over all clients the most important frame is read first.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;

use antiphon_coop::event_loop::{Context, Step};

use super::sender::{Sender, Sent};
use super::server::Terms;
use super::wire::{self, Answer};
use super::{Parting, Quality, Served, Stored};

enum State {
    Greets { said: Vec<u8> },
    Told,
    Served(Box<Sender>),
    Leaves(Parting),
}

/// A client.
pub(super) struct Peer {
    stream: Rc<TcpStream>,
    peer: SocketAddr,
    stored: Rc<Stored>,
    terms: Terms,
    state: State,
    quality: Quality,
    layers: [Sent; 4],
    unread: Option<(u64, String)>,
    /// The bytes to write, and how many of them are written.
    out: Vec<u8>,
    written: usize,
    /// The time when the client last took bytes, or when the wait for it began.
    moved_ns: u64,
    /// The importance with which it is queued among the work.
    stands: Option<u64>,
}

impl Peer {
    pub(super) fn new(
        stream: Rc<TcpStream>,
        peer: SocketAddr,
        stored: Rc<Stored>,
        terms: Terms,
        now_ns: u64,
    ) -> Self {
        Self {
            stream,
            peer,
            stored,
            terms,
            state: State::Greets { said: Vec::new() },
            quality: Quality::All,
            layers: [Sent::default(); 4],
            unread: None,
            out: Vec::new(),
            written: 0,
            moved_ns: now_ns,
            stands: None,
        }
    }

    /// The socket to wait for.
    pub(super) fn socket(&self) -> Rc<TcpStream> {
        Rc::clone(&self.stream)
    }

    /// The record of what the client was sent, for when it has left.
    pub(super) fn served(&self, parting: Parting) -> Served {
        let Self { peer, quality, layers, .. } = *self;
        Served { peer, quality, layers, unread: self.unread.clone(), parting }
    }

    /// Does what is pending; `Err` if the client has left.
    pub(super) fn step(&mut self, context: &Context<'_>) -> Result<Step, Box<Served>> {
        let step = self.go_on(context);
        if let State::Served(sender) = &self.state {
            self.layers = sender.layers();
        }
        step.map_err(|parting| Box::new(self.served(parting)))
    }

    fn go_on(&mut self, context: &Context<'_>) -> Result<Step, Parting> {
        let now_ns = context.now_ns();
        let stands = self.stands.take();
        self.listen(now_ns)?;
        let is_free = self.write(now_ns)?;
        match &mut self.state {
            State::Greets { .. } => self.wait_until(u64::MAX, now_ns),
            State::Leaves(parting) if is_free => Err(parting.clone()),
            State::Told if is_free => {
                let (clip, options) = (self.stored.clip().clone(), self.terms.schedule());
                let sender = Sender::new(clip, &options, self.quality, now_ns);
                self.state = State::Served(Box::new(sender));
                Ok(Step::At(now_ns))
            }
            State::Told | State::Leaves(_) => self.wait_until(u64::MAX, now_ns),
            State::Served(sender) => {
                sender.advance(now_ns);
                if is_free && let Some(stands) = stands {
                    self.send(now_ns, stands)?;
                }
                self.stand(now_ns)
            }
        }
    }

    /// Sends the most important frame, if it is as important as the event's key in the queue:
    /// otherwise another client's frame may come first.
    fn send(&mut self, now_ns: u64, stood: u64) -> Result<(), Parting> {
        let State::Served(sender) = &mut self.state else { return Ok(()) };
        match sender.first() {
            Some((importance, frame)) if importance <= stood => {
                self.put(frame);
                self.moved_ns = now_ns;
                self.write(now_ns).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Queues for the next frame among the work, or waits.
    fn stand(&mut self, now_ns: u64) -> Result<Step, Parting> {
        let State::Served(sender) = &mut self.state else { return Ok(Step::At(now_ns)) };
        let next_ns = sender.next_ns();
        if !self.out.is_empty() {
            return self.wait_until(next_ns.unwrap_or(u64::MAX), now_ns);
        }
        if let Some((importance, _)) = sender.first() {
            self.stands = Some(importance);
            return Ok(Step::More(importance));
        }
        if let Some(next_ns) = next_ns {
            return Ok(Step::At(next_ns));
        }
        self.layers = sender.layers();
        self.out.extend(wire::end());
        self.leave(Parting::Played, now_ns)
    }

    /// Reads a frame into the output.
    fn put(&mut self, frame: usize) {
        let State::Served(sender) = &mut self.state else { return };
        let length = self.stored.clip().frames()[frame].bytes.len();
        self.out.extend(wire::frame(frame, length));
        match self.stored.read(frame, &mut self.out) {
            Ok(()) => sender.sent(frame),
            Err(error) => {
                self.out.clear();
                sender.drop_frame(frame as u64);
                self.unread.get_or_insert_with(|| (0, error.to_string())).0 += 1;
            }
        }
    }

    fn leave(&mut self, parting: Parting, now_ns: u64) -> Result<Step, Parting> {
        self.state = State::Leaves(parting);
        self.moved_ns = now_ns;
        Ok(Step::At(now_ns))
    }

    /// Waits for the socket until `until_ns`, or until the client's patience has run out.
    fn wait_until(&self, until_ns: u64, now_ns: u64) -> Result<Step, Parting> {
        let is_greeting = matches!(self.state, State::Greets { .. });
        let patience_ns = if is_greeting { self.terms.greeting_ns } else { self.terms.stall_ns };
        let end_ns = self.moved_ns.saturating_add(patience_ns);
        if now_ns >= end_ns {
            return Err(if is_greeting { Parting::Silent } else { Parting::Stalled });
        }
        Ok(Step::At(until_ns.min(end_ns)))
    }

    /// Reads what the client sends: a greeting, and nothing more.
    fn listen(&mut self, now_ns: u64) -> Result<(), Parting> {
        let mut bytes = [0; 64];
        loop {
            match (&*self.stream).read(&mut bytes) {
                Ok(0) => return Err(Parting::HungUp),
                Ok(count) => self.hear(&bytes[..count], now_ns)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(parting(&error)),
            }
        }
    }

    fn hear(&mut self, bytes: &[u8], now_ns: u64) -> Result<(), Parting> {
        let State::Greets { said } = &mut self.state else { return Err(Parting::Garbage) };
        said.extend_from_slice(bytes);
        // A greeting that begins otherwise is rejected before it is complete.
        let common = said.len().min(wire::HELLO.len());
        if said[..common] != wire::HELLO[..common] || said.len() > wire::HELLO_LEN {
            return Err(Parting::Garbage);
        }
        let Some(hello) = said.first_chunk() else { return Ok(()) };
        self.moved_ns = now_ns;
        match wire::greeted(hello) {
            Ok(quality) => {
                self.quality = quality;
                self.out = self.terms.announcement.to_vec();
                self.state = State::Told;
                Ok(())
            }
            Err(Some(answer)) => {
                self.out = wire::refuse(answer);
                let is_version = answer == Answer::Version;
                let parting = if is_version { Parting::OtherVersion } else { Parting::Garbage };
                self.state = State::Leaves(parting);
                Ok(())
            }
            Err(None) => Err(Parting::Garbage),
        }
    }

    /// Writes as much as there is room for; returns whether everything is written.
    fn write(&mut self, now_ns: u64) -> Result<bool, Parting> {
        while self.written < self.out.len() {
            match (&*self.stream).write(&self.out[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    self.moved_ns = now_ns;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(parting(&error)),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }
}

fn parting(error: &io::Error) -> Parting {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
            Parting::HungUp
        }
        _ => Parting::Failed(error.to_string()),
    }
}
