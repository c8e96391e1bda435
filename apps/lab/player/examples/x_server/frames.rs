//! The client that makes the server show frames.

use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use antiphon_coop::event_loop::{Event, Loop, Step};
use antiphon_coop::{
    Alone, BoostOptions, Booster, Cooperate, Domain, DomainOptions, Group, WEIGHT,
};
use x11rb::connection::{Connection as _, RequestConnection};
use x11rb::protocol::sync::{
    ConnectionExt as _, Counter, TESTTYPE, Trigger, VALUETYPE, Waitcondition,
};
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateGCAux, CreateWindowAux, Gcontext, ImageFormat, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

use crate::watch::{self, int64};
use crate::{Options, RATE, Result, now};

/// The side that waits until a frame is due.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The server: the frame is sent ahead of its time, after an `XSyncAwait`.
    Await,
    /// The client: the frame is sent when it is due, from a loop on the server's CPU.
    Timer {
        /// Whether the client joins the server's domain.
        joins: bool,
    },
}

/// The tardiness of the frames shown.
pub struct Shown {
    /// Tardiness of each frame in increasing order, in nanoseconds, from the time that was
    /// requested of the server.
    pub late_ns: Vec<u64>,
    /// The mean difference between the requested and the wanted time, in nanoseconds.
    pub rounded_ns: u64,
    /// Whether the watcher had real-time priority on its CPU.
    pub first: bool,
}

/// A frame's size in pixels: 21 kB, of which a socket holds several. A client that blocks on a full
/// socket while it holds the CPU keeps the server from reading.
const SIZE: (u16, u16) = (96, 54);
/// How long before its time a frame is sent, in nanoseconds, if the server waits until it is due.
const AHEAD_NS: u64 = 12_000_000;
const MS: u64 = 1_000_000;

/// The client that shows frames: a window, and a counter that is set after each frame.
struct Client {
    server: RustConnection,
    window: Window,
    gc: Gcontext,
    depth: u8,
    picture: Vec<u8>,
    counter: Counter,
    /// The server's clock, in milliseconds: that of `CLOCK_MONOTONIC`.
    clock: Counter,
}

impl Client {
    fn new(display: &str) -> Result<Self> {
        let (server, screen) = x11rb::connect(Some(display))?;
        server.sync_initialize(3, 1)?.reply()?;
        let counters = server.sync_list_system_counters()?.reply()?.counters;
        let clock = counters.iter().find(|counter| counter.name == b"SERVERTIME");
        let clock = clock.ok_or("a server without SERVERTIME")?.counter;
        let screen = &server.setup().roots[screen];
        let (depth, root) = (screen.root_depth, screen.root);
        let [window, gc, counter] =
            [server.generate_id()?, server.generate_id()?, server.generate_id()?];
        let (class, (width, height)) = (WindowClass::INPUT_OUTPUT, SIZE);
        let no = CreateWindowAux::new();
        server.create_window(depth, window, root, 0, 0, width, height, 0, class, 0, &no)?;
        server.map_window(window)?;
        server.create_gc(gc, window, &CreateGCAux::new())?;
        server.sync_create_counter(counter, int64(0))?.check()?;
        let before = now() / MS;
        let told = server.sync_query_counter(clock)?.reply()?.counter_value;
        let (told, after) = ((told.hi as u64) << 32 | u64::from(told.lo), now() / MS);
        if !(before..=after).contains(&told) {
            return Err(format!("the server's clock is another: {told} at {before} ms").into());
        }
        let picture = vec![0x80; usize::from(width) * usize::from(height) * 4];
        Ok(Self { server, window, gc, depth, picture, counter, clock })
    }

    /// Makes the server hold the following requests until that time.
    fn wait_until(&self, ms: u64) -> Result<()> {
        let trigger = Trigger {
            counter: self.clock,
            wait_type: VALUETYPE::ABSOLUTE,
            wait_value: int64(ms),
            test_type: TESTTYPE::POSITIVE_COMPARISON,
        };
        let condition = Waitcondition { trigger, event_threshold: int64(0) };
        self.server.sync_await_(&[condition])?;
        Ok(())
    }

    /// Makes the server show a frame, and set the counter to the frame's number.
    fn show(&self, number: u64) -> Result<()> {
        let ((width, height), data) = (SIZE, &self.picture);
        let format = ImageFormat::Z_PIXMAP;
        let (window, gc, depth) = (self.window, self.gc, self.depth);
        self.server.put_image(format, window, gc, width, height, 0, 0, 0, depth, data)?;
        self.server.sync_set_counter(self.counter, int64(number))?;
        self.server.flush()?;
        Ok(())
    }
}

/// Shows frames for the requested time.
pub fn display(
    display: &str,
    options: &Options,
    way: Way,
    domain: &str,
    aside: u32,
) -> Result<Shown> {
    // The client is kept: when it disconnects, the server may drop its remaining requests.
    let client = Arc::new(Client::new(display)?);
    client.server.prefetch_maximum_request_bytes();
    let frames = options.seconds * RATE;
    let watcher = watch::start(display, aside, client.counter, frames)?;
    // A quarter of a second for all parts to start.
    let begin_ns = now() + 250 * MS;
    let wanted = move |number: u64| begin_ns + number * 1_000_000_000 / RATE;
    let asked = move |number: u64| match way {
        Way::Await => wanted(number).div_ceil(MS) * MS,
        Way::Timer { .. } => wanted(number),
    };
    let cpu = if way == Way::Await { aside } else { options.cpu };
    let name = (way == Way::Timer { joins: true }).then(|| domain.to_owned());
    // On a separate thread, which is pinned.
    let shows = Arc::clone(&client);
    let run = move || match way {
        Way::Await => by_server(&shows, frames, cpu, asked),
        Way::Timer { .. } => by_timer(shows, frames, cpu, name, asked),
    };
    let run = move || run().map_err(|why| why.to_string());
    thread::spawn(run).join().map_err(|_| "the client that shows frames has failed")??;
    let seen = watcher.join().map_err(|_| "the watcher has failed")??;
    let late = |(number, &at): (usize, &u64)| at.saturating_sub(asked(number as u64));
    let mut late_ns: Vec<_> = seen.at_ns.iter().enumerate().map(late).collect();
    late_ns.sort_unstable();
    let rounded: u64 = (0..frames).map(|number| asked(number) - wanted(number)).sum();
    Ok(Shown { late_ns, rounded_ns: rounded / frames, first: seen.first })
}

/// Sends each frame ahead of its time, from that CPU.
fn by_server(client: &Client, frames: u64, cpu: u32, asked: impl Fn(u64) -> u64) -> Result<()> {
    antiphon_linux::pin(cpu).map_err(|_| "the CPU may not be used")?;
    for number in 0..frames {
        let left_ns = asked(number).saturating_sub(AHEAD_NS).saturating_sub(now());
        thread::sleep(Duration::from_nanos(left_ns));
        client.wait_until(asked(number) / MS)?;
        client.show(number + 1)?;
    }
    Ok(())
}

/// Sends each frame when it is due, from a loop on the server's CPU: in that domain, or alone.
fn by_timer(
    client: Arc<Client>,
    frames: u64,
    cpu: u32,
    domain: Option<String>,
    asked: impl Fn(u64) -> u64 + 'static,
) -> Result<()> {
    antiphon_linux::pin(cpu).map_err(|_| "the CPU may not be used")?;
    let mut events = Loop::new()?;
    let tier: Box<dyn Cooperate> = match domain {
        None => Box::new(Alone),
        Some(name) => {
            let member = Domain::open(&name, DomainOptions::on(cpu))?.join(Group::Own, WEIGHT)?;
            match Booster::start(BoostOptions::default()) {
                Ok(booster) => Box::new(booster.boost(member)),
                Err(_) => Box::new(member),
            }
        }
    };
    events.cooperate_by(tier);
    let failed = Rc::new(std::cell::RefCell::new(None));
    let (why, mut number) = (Rc::clone(&failed), 0);
    events.submit(Event::timer_in_steps(asked(0), move |_| {
        if let Err(error) = client.show(number + 1) {
            *why.borrow_mut() = Some(error);
            return Step::Done;
        }
        number += 1;
        if number < frames { Step::At(asked(number)) } else { Step::Done }
    }));
    let _ = events.run();
    failed.take().map_or(Ok(()), Err)
}
