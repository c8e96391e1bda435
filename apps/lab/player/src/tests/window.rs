//! Windows on an X server that each test starts: Xvfb.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use antiphon_coop::event_loop::{End, Event, Loop, Step, now_ns};
use x11rb::protocol::xproto::{ClientMessageEvent, ConnectionExt as _, EventMask, ImageFormat};
use x11rb::rust_connection::RustConnection;

use crate::decode::{Costs, Decode, Synthetic, installed, spin};
use crate::ffmpeg::Making;
use crate::picture::Screen as _;
use crate::window::{Drawn, Status, Window};
use crate::{Clip, Error, Hosted, Options, Picture, Player, counter, made};

use super::real;

/// An X server that ends when this is dropped.
struct Xvfb {
    process: Child,
    display: String,
}

impl Xvfb {
    /// Starts it on a free display number; `None`, with a message, if it is not installed.
    fn start(arguments: &[&str]) -> Option<Self> {
        let started = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Not by a macro, whose output the test harness captures.
                let why = "\nskipped: Xvfb is not installed (Debian: apt-get install xvfb)";
                writeln!(std::io::stderr(), "{why}").unwrap();
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        assert!(!line.trim().is_empty(), "Xvfb ended: {:?}", process.wait());
        Some(Self { process, display: format!(":{}", line.trim()) })
    }

    fn window(&self, size: (u32, u32)) -> Window {
        Window::open_on(Some(&self.display), "a test", size.0, size.1).unwrap()
    }

    fn connect(&self) -> RustConnection {
        x11rb::connect(Some(&self.display)).unwrap().0
    }
}

impl Drop for Xvfb {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The visible contents of a window: four bytes per pixel.
fn grab(connection: &RustConnection, window: u32, (width, height): (u16, u16)) -> Vec<u8> {
    let format = ImageFormat::Z_PIXMAP;
    let image = connection.get_image(format, window, 0, 0, width, height, u32::MAX).unwrap();
    image.reply().unwrap().data
}

/// The number that is drawn in the visible pixels.
fn number(pixels: &[u8], (width, height): (u16, u16)) -> Option<u16> {
    let luma = pixels.chunks(4).map(|pixel| pixel[1]).collect();
    let (width, height) = (width.into(), height.into());
    counter::read(&Picture { luma, ..Picture::gray(width, height) })
}

/// A clip of a second with its decoder: real ones, where ffmpeg and the library are installed.
fn clip(name: &str) -> (Arc<Clip>, Box<dyn Decode>) {
    if let Some(clip) = real::made(name, &Making { seconds: 1, ..real::small() }) {
        let decoder = installed(&clip, 500_000).unwrap();
        return (clip, decoder);
    }
    let clip = Arc::new(Clip::parse(made::layered(12, 60)).unwrap());
    let costs = Costs::by_size(&clip, 500_000).unwrap();
    (clip, Box::new(Synthetic::new(costs, spin)))
}

const SIZE: (u16, u16) = (320, 192);

struct Grab {
    before_ns: u64,
    after_ns: u64,
    number: Option<u16>,
}

/// WINDOW-2: the numbers that may be visible in a grab; `None` stands for an empty window.
fn possible(log: &[Drawn], grab: &Grab) -> Vec<Option<u16>> {
    let last = log.iter().rposition(|drawn| drawn.done_ns <= grab.before_ns);
    let since = log[last.unwrap_or(0)..].iter().take_while(|drawn| drawn.begun_ns <= grab.after_ns);
    let nothing = last.is_none().then_some(None);
    nothing.into_iter().chain(since.map(|drawn| Some(drawn.number as u16))).collect()
}

#[test]
fn what_is_seen_is_the_frame_that_was_shown_last() {
    let Some(server) = Xvfb::start(&["640x480x24"]) else { return };
    let (clip, decoder) = clip("window");
    let window = server.window((SIZE.0.into(), SIZE.1.into()));
    let (id, eyes) = (window.number(), server.connect());
    let is_over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&is_over);
    let grabber = std::thread::spawn(move || {
        let mut grabs = Vec::new();
        while !until.load(Relaxed) {
            let before_ns = now_ns();
            let pixels = grab(&eyes, id, SIZE);
            let after_ns = now_ns();
            grabs.push(Grab { before_ns, after_ns, number: number(&pixels, SIZE) });
            std::thread::sleep(Duration::from_millis(7));
        }
        grabs
    });

    let mut events = Loop::new().unwrap();
    let options = Options { has_counter: true, ..Options::default() };
    let player = Hosted::start(&mut events, Player::new(clip, decoder, window, options));
    assert_eq!(events.run(), End::Done);

    let player = player.program();
    let report = player.report();
    let shown = report.total().shown;
    assert!(shown > 0 && report.screen_fault.is_none() && !report.is_closed, "{report}");
    let status = settled(player.screen(), shown);
    // The last picture stays visible.
    let before_ns = now_ns();
    let pixels = grab(&server.connect(), id, SIZE);
    let last = Grab { before_ns, after_ns: now_ns(), number: number(&pixels, SIZE) };
    is_over.store(true, Relaxed);
    let mut grabs = grabber.join().unwrap();
    grabs.push(last);

    let log: Vec<_> = status.log.iter().copied().collect();
    assert!(log.is_sorted_by(|a, b| a.number < b.number && a.done_ns <= b.begun_ns), "{log:?}");
    for grab in &grabs {
        let possible = possible(&log, grab);
        assert!(possible.contains(&grab.number), "{:?} of {possible:?}", grab.number);
    }
    let seen = grabs.iter().map(|grab| grab.number);
    assert!(seen.clone().is_sorted(), "{:?}", seen.collect::<Vec<_>>());
    let last = grabs.last().unwrap();
    assert_eq!(possible(&log, last), [Some(log.last().unwrap().number as u16)]);
}

/// A window's state when all pictures that were shown are drawn or skipped.
fn settled(window: &Window, shown: u64) -> Status {
    let begun = Instant::now();
    loop {
        let status = window.status();
        if status.drawn + status.skipped == shown {
            return status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{status:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Plays without end, and calls `look` every 20 ms with the player, until it returns true.
fn play(window: Window, mut look: impl FnMut(&Player<Box<dyn Decode>, Window>) -> bool + 'static) {
    let clip = Arc::new(Clip::parse(made::layered(12, 60)).unwrap());
    let costs = Costs::by_size(&clip, 500_000).unwrap();
    let decoder: Box<dyn Decode> = Box::new(Synthetic::new(costs, spin));
    let mut events = Loop::new().unwrap();
    let options = Options { passes: None, ..Options::default() };
    let player = Hosted::start(&mut events, Player::new(clip, decoder, window, options));
    let is_seen = Rc::new(Cell::new(false));
    let (seen, of_look) = (Rc::clone(&is_seen), player.clone());
    events.submit(Event::timer_in_steps(now_ns(), move |context| {
        if look(&of_look.program()) {
            seen.set(true);
            context.stop();
            return Step::Done;
        }
        Step::At(context.now_ns() + 20_000_000)
    }));
    let _ = events.run();
    assert!(is_seen.get());
}

#[test]
fn a_window_that_is_closed_stops_its_player() {
    let Some(server) = Xvfb::start(&["640x480x24"]) else { return };
    let window = server.window((SIZE.0.into(), SIZE.1.into()));
    let (id, manager) = (window.number(), server.connect());
    let atom = move |name: &str| {
        manager.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    };
    let (protocols, delete) = (atom("WM_PROTOCOLS"), atom("WM_DELETE_WINDOW"));
    let manager = server.connect();
    let mut is_asked = false;
    play(window, move |player| {
        if player.report().total().shown >= 5 && !is_asked {
            let message = ClientMessageEvent::new(32, id, protocols, [delete, 0, 0, 0, 0]);
            manager.send_event(false, id, EventMask::NO_EVENT, message).unwrap().check().unwrap();
            is_asked = true;
        }
        let report = player.report();
        assert_eq!(report.is_closed, player.is_over());
        report.is_closed && report.to_string().contains("closed")
    });
}

#[test]
fn a_server_that_goes_away_leaves_a_player_that_goes_on() {
    let Some(mut server) = Xvfb::start(&["640x480x24"]) else { return };
    let window = server.window((SIZE.0.into(), SIZE.1.into()));
    let mut shown_then = None;
    play(window, move |player| {
        let (report, status) = (player.report(), player.screen().status());
        if status.drawn >= 3 && shown_then.is_none() {
            server.process.kill().unwrap();
        }
        let shown = report.total().shown;
        match &report.screen_fault {
            None => false,
            Some(fault) => {
                assert!(fault.contains("gone away"), "{fault}");
                assert!(report.to_string().contains("gone away"));
                // The player goes on.
                shown > *shown_then.get_or_insert(shown)
            }
        }
    });
}

#[test]
fn each_pixel_arrives_in_however_many_requests() {
    // A request here has at most a megabyte, and the picture is longer.
    let Some(server) = Xvfb::start(&["700x700x24", "-maxbigreqsize", "1"]) else { return };
    let size: (u16, u16) = (640, 600);
    let (width, height) = (usize::from(size.0), usize::from(size.1));
    let mut picture = Picture::gray(width, height);
    for (place, luma) in picture.luma.iter_mut().enumerate() {
        *luma = 16 + (place / width + place % width) as u8 % 200;
    }
    let mut window = server.window((size.0.into(), size.1.into()));
    window.show(&picture, 7);
    let status = settled(&window, 1);
    assert_eq!((status.drawn, status.log[0].number, status.fault), (1, 7, None));
    let pixels = grab(&server.connect(), window.number(), size);
    let gray = |luma: u8| (298 * (u32::from(luma) - 16) + 128) >> 8;
    for (place, (pixel, &luma)) in pixels.chunks(4).zip(&picture.luma).enumerate() {
        let wanted = [gray(luma) as u8; 3];
        assert_eq!(pixel[..3], wanted, "{}, {}", place % width, place / width);
    }
}

#[test]
fn where_there_is_no_window_it_is_said_why() {
    let why = |opened: Result<Window, Error>| opened.err().map(|error| error.to_string());
    for display in [":4000", "no display"] {
        let said = why(Window::open_on(Some(display), "none", 320, 192)).unwrap();
        assert!(said.contains("no X server") && said.contains("DISPLAY"), "{said}");
    }
    for (width, height) in [(0, 100), (100, 0), (40_000, 100)] {
        let said = why(Window::open_on(Some(":4000"), "none", width, height)).unwrap();
        assert!(said.contains("1 to 32767"), "{said}");
    }
    let Some(server) = Xvfb::start(&["640x480x16"]) else { return };
    let said = why(Window::open_on(Some(&server.display), "none", 320, 192)).unwrap();
    assert!(said.contains("depth of 16"), "{said}");
}
