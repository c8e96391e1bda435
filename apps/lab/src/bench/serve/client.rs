//! Clients: threads, each with its share of the connections and its own epoll.
//!
//! Without a rate, a connection sends again when it has its answer, and the latency is the time
//! from sending to the answer. With a rate, requests are due at regular times, on the connections
//! in turn; if a connection still waits for an answer the request is queued, and the latency is
//! measured from when it was due: so a server that pauses is charged for all requests of that time.
//! A request without an answer at the end counts with its wait so far.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use antiphon_linux::files::{Epoll, Events};
use antiphon_platform::{Clock, Deadline};
use antiphon_report::stats::Histogram;

use super::cases::Case;
use crate::compete::work::{now_ns, sleep_until};

/// A request and the length of its answer.
pub struct Exchange {
    request: Vec<u8>,
    /// Length of an answer, in bytes.
    answer: usize,
}

/// The client of a thread, with its connections.
pub struct Client {
    exchange: Exchange,
    connections: Vec<Connection>,
    epoll: Epoll,
    buffer: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    /// Time at which the current request was sent, or due; bytes of it written, and bytes of its
    /// answer read.
    since_ns: Option<u64>,
    written: usize,
    read: usize,
    /// Due times of the queued requests.
    due: VecDeque<u64>,
}

/// When a client sends requests.
#[derive(Clone, Copy)]
pub struct Schedule {
    /// Time to begin, by the monotonic clock.
    pub begin_ns: u64,
    /// Time from which answers count.
    pub count_ns: u64,
    /// Time to end.
    pub end_ns: u64,
    /// Time from one request of this thread to the next; `None` to send as soon as the answer is
    /// there.
    pub gap_ns: Option<f64>,
}

/// The results of a client.
#[derive(Default)]
pub struct Seen {
    /// Number of answers while it counted.
    pub answers: u64,
    /// Latencies of requests that were answered, or due, while it counted.
    pub latencies: Histogram,
}

/// Maximal length of a valid answer.
const MOST_ANSWER: usize = 2 << 20;
/// Maximal time that a server may be silent.
const SILENCE: Duration = Duration::from_secs(10);

impl Exchange {
    /// The exchange of a case, with `bytes` to be echoed. Sends one request to the server, to learn
    /// the length of an answer.
    ///
    /// # Errors
    ///
    /// One line, if the answer is wrong or missing.
    pub fn of(case: Case, bytes: usize, address: SocketAddr) -> Result<Self, String> {
        let request = match case {
            Case::Echo => (0..bytes).map(|at| at as u8).collect(),
            Case::Http => b"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        };
        let asked = ask(&request, case, address);
        let answer = asked.map_err(|error| format!("the server does not answer: {error}"))?;
        if case == Case::Echo && answer != request {
            return Err("the server sends another response than expected".to_owned());
        }
        Ok(Self { request, answer: answer.len() })
    }
}

/// Returns the answer to a request.
fn ask(request: &[u8], case: Case, address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    stream.write_all(request)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..read]);
        let length = match case {
            Case::Echo => Some(request.len()),
            Case::Http => http_length(&answer)?,
        };
        match length {
            Some(length) if length == answer.len() => return Ok(answer),
            _ if read == 0 || answer.len() > MOST_ANSWER => {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            _ => {}
        }
    }
}

/// Returns the length of a response, if its headers are complete.
fn http_length(answer: &[u8]) -> io::Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(answer).map_err(io::Error::other)?;
    let httparse::Status::Complete(head) = parsed else { return Ok(None) };
    let length = response.headers.iter().find(|it| it.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| str::from_utf8(header.value).ok()?.parse().ok());
    let length: usize = length.ok_or_else(|| io::Error::other("a response without a length"))?;
    Ok(Some(head + length))
}

impl Client {
    /// Opens `count` connections, and sends a request over each.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn open(exchange: Exchange, count: usize, address: SocketAddr) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        let mut connections = Vec::with_capacity(count);
        for key in 0..count {
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(SILENCE))?;
            stream.write_all(&exchange.request)?;
            stream.read_exact(&mut vec![0; exchange.answer])?;
            stream.set_nonblocking(true)?;
            epoll.add(stream.as_fd(), key as u64)?;
            let (since_ns, due) = (None, VecDeque::new());
            connections.push(Connection { stream, since_ns, written: 0, read: 0, due });
        }
        Ok(Self { exchange, connections, epoll, buffer: vec![0; 16 << 10] })
    }

    /// Sends and receives according to `schedule`.
    ///
    /// # Errors
    ///
    /// The system's error, or an error if the server has closed a connection.
    pub fn run(&mut self, schedule: Schedule) -> io::Result<Seen> {
        let mut seen = Seen::default();
        let mut events = Events::new(self.connections.len().min(1024));
        if schedule.gap_ns.is_some() {
            // Otherwise the kernel may delay wake-ups by some 50 µs.
            // SAFETY: takes plain numbers.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        }
        sleep_until(schedule.begin_ns);
        let mut due_ns = schedule.gap_ns.map_or(f64::MAX, |_| schedule.begin_ns as f64);
        let mut turn = 0;
        if schedule.gap_ns.is_none() {
            for at in 0..self.connections.len() {
                self.connections[at].due.push_back(now_ns());
                self.go_on(at, false, &schedule, &mut seen)?;
            }
        }
        loop {
            let now_ns = now_ns();
            if now_ns >= schedule.end_ns {
                break;
            }
            while due_ns as u64 <= now_ns {
                self.connections[turn].due.push_back(due_ns as u64);
                if self.connections[turn].since_ns.is_none() {
                    self.go_on(turn, false, &schedule, &mut seen)?;
                }
                turn = (turn + 1) % self.connections.len();
                due_ns += schedule.gap_ns.unwrap_or(f64::MAX);
            }
            let ns = schedule.end_ns.min(due_ns as u64);
            self.epoll.wait(&mut events, Some(Deadline { clock: Clock::Monotonic, ns }))?;
            for event in events.iter() {
                self.go_on(event.key as usize, event.read, &schedule, &mut seen)?;
            }
        }
        self.give_up(&schedule, &mut seen);
        Ok(seen)
    }

    /// Writes and reads as much of a connection as possible.
    fn go_on(
        &mut self,
        at: usize,
        mut reads: bool,
        schedule: &Schedule,
        seen: &mut Seen,
    ) -> io::Result<()> {
        let (exchange, connection) = (&self.exchange, &mut self.connections[at]);
        loop {
            if connection.since_ns.is_none() {
                let Some(due_ns) = connection.due.pop_front() else { return Ok(()) };
                connection.since_ns = Some(due_ns);
            }
            if !connection.carry_on(exchange, reads, &mut self.buffer)? {
                return Ok(());
            }
            // The next answer can't be there before its request is sent; it comes with another
            // event.
            reads = false;
            let now_ns = now_ns();
            if let Some(since_ns) = connection.since_ns.take()
                && schedule.counts(since_ns, now_ns)
            {
                seen.answers += 1;
                seen.latencies.record(now_ns.saturating_sub(since_ns), 1);
            }
            if schedule.gap_ns.is_none() && now_ns < schedule.end_ns {
                connection.due.push_back(now_ns);
            }
        }
    }

    /// Counts the requests that were due and have no answer, with the time that they have waited so
    /// far.
    fn give_up(&self, schedule: &Schedule, seen: &mut Seen) {
        if schedule.gap_ns.is_none() {
            return;
        }
        let waits = self.connections.iter().flat_map(|it| it.since_ns.iter().chain(&it.due));
        for &since_ns in waits.filter(|&&since_ns| since_ns >= schedule.count_ns) {
            seen.latencies.record(schedule.end_ns.saturating_sub(since_ns), 1);
        }
    }
}

impl Connection {
    /// Writes and, if there may be something, reads. Returns whether the answer is complete; if
    /// not, going on would block.
    fn carry_on(
        &mut self,
        exchange: &Exchange,
        reads: bool,
        buffer: &mut [u8],
    ) -> io::Result<bool> {
        while self.written < exchange.request.len() {
            match self.stream.write(&exchange.request[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while reads && self.read < exchange.answer {
            let room = buffer.len().min(exchange.answer - self.read);
            match self.stream.read(&mut buffer[..room]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.read += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let done = self.read == exchange.answer;
        if done {
            (self.read, self.written) = (0, 0);
        }
        Ok(done)
    }
}

impl Schedule {
    /// Returns whether an answer counts: by when it came or, with a rate, by when it was due.
    fn counts(&self, since_ns: u64, now_ns: u64) -> bool {
        let at_ns = if self.gap_ns.is_some() { since_ns } else { now_ns };
        (self.count_ns..self.end_ns).contains(&at_ns)
    }
}
