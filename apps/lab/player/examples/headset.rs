//! A conference on an event loop: every 10 ms a chunk is captured, its echo cancelled, mixed and
//! put out, on time; beside it pictures are encoded in the time that is left. Voices and rooms are
//! synthetic ([`antiphon_player::conference`]).
//!
//! `cargo run --release -p antiphon-player --example headset -- [SECONDS [PEOPLE [HOGS [TIER]]]]`:
//! by default 10 seconds, 4 people, 4 hogs (threads on the same CPU that only spin), and all
//! available tiers. A chunk that is put out more than 10 ms after it was captured is an underrun.

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use antiphon::fiber::STACK_BYTES;
use antiphon_coop::event_loop::{Event, Fiber, Fibers, Loop, Step, now_ns};
use antiphon_coop::{
    Alone, Available, BoostOptions, Booster, Domain, DomainOptions, Group, Split, SplitOptions,
    Tier, WEIGHT, available,
};
use antiphon_linux::pin;
use antiphon_player::conference::{CHUNK_NS, Card, Conference};

#[derive(Clone, Copy)]
struct Case {
    seconds: u64,
    people: usize,
    hogs: usize,
    cpu: u32,
}

/// The filter length, in samples: 16 ms.
const TAPS: usize = 256;
/// Number of chunks that the card buffers.
const AHEAD: u64 = 1;
/// Blocks of a picture.
const BLOCKS: usize = 400;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let (case, tiers) = match asked(&words) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("headset: {why}");
            return ExitCode::from(2);
        }
    };
    let here = available();
    if let [tier] = tiers[..]
        && let Err(why) = here.tier(tier)
    {
        eprintln!("headset: no {tier} here: {why}");
        return ExitCode::from(69);
    }
    match all(case, &tiers, &here) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("headset: {why}");
            ExitCode::FAILURE
        }
    }
}

fn asked(words: &[String]) -> Result<(Case, Vec<Tier>), String> {
    const USAGE: &str = "[SECONDS [PEOPLE [HOGS [TIER]]]]";
    let number = |at: usize, what: &str, or: u64, least: u64, most: u64| {
        let number = words.get(at).map_or(Ok(or), |word| word.parse());
        number.ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            format!("{what}: a number from {least} to {most}, not `{}`; {USAGE}", words[at])
        })
    };
    let seconds = number(0, "seconds", 10, 1, 86_400)?;
    let people = number(1, "people", 4, 2, 1000)? as usize;
    let hogs = number(2, "hogs", 4, 0, 1000)? as usize;
    let can = [Tier::None, Tier::Boost, Tier::RealTimeSplit, Tier::Split, Tier::Baton];
    let tiers = match words.get(3) {
        None => can.to_vec(),
        Some(word) => {
            let tier = can.iter().find(|tier| tier.name().eq_ignore_ascii_case(word));
            vec![*tier.ok_or_else(|| {
                let names = can.map(Tier::name).join(", ");
                format!("a tier is one of {names}, not `{word}`; {USAGE}")
            })?]
        }
    };
    if let Some(word) = words.get(4) {
        return Err(format!("what is `{word}` for? {USAGE}"));
    }
    Ok((Case { seconds, people, hogs, cpu: DomainOptions::default().cpu }, tiers))
}

fn all(case: Case, tiers: &[Tier], here: &Available) -> Result<(), Box<dyn Error>> {
    let Case { seconds, people, hogs, cpu } = case;
    println!("{people} people, {hogs} hogs, CPU {cpu}, {seconds} s each; lateness in ms");
    println!("tier   chunks  underruns     p50     p99     max   echo  pictures/s");
    for &tier in tiers {
        if let Err(why) = here.tier(tier) {
            println!("{tier:<5} no: {why}");
            continue;
        }
        let (over, hogs) = (Arc::new(AtomicBool::new(false)), case.hogs);
        let hogs: Vec<_> = (0..hogs).map(|_| hog(cpu, over.clone())).collect();
        // Tiers change their threads, for example by pinning them to a CPU: each runs in a new
        // thread.
        let row = thread::spawn(move || confer(tier, case).map_err(|error| error.to_string()));
        let row = row.join().map_err(|_| "the conference has panicked")??;
        over.store(true, Relaxed);
        hogs.into_iter().try_for_each(|hog| hog.join().map_err(|_| "a hog has panicked"))?;
        println!("{tier:<5} {row}");
    }
    Ok(())
}

fn hog(cpu: u32, over: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        // On another CPU it would not compete: the row would be too good.
        pin(cpu).expect("the CPU that this program was on");
        while !over.load(Relaxed) {
            black_box(picture_block(0));
        }
    })
}

/// The sound, and its tardiness.
struct Desk {
    conference: Conference,
    card: Card,
    chunks: u64,
    late_ns: Vec<u64>,
}

impl Desk {
    fn new(case: Case) -> Result<Self, antiphon_player::Error> {
        let (conference, card) =
            (Conference::new(case.people, TAPS)?, Card::new(now_ns() + CHUNK_NS, AHEAD));
        Ok(Self { conference, card, chunks: case.seconds * 100, late_ns: Vec::new() })
    }

    /// The time when the next chunk is captured; `None` after the last one.
    fn next_ns(&self) -> Option<u64> {
        let number = self.card.written;
        (number < self.chunks).then(|| self.card.captured_ns(number))
    }

    /// Processes the chunk that is due, from capture to output.
    fn chunk(&mut self) {
        let due_ns = self.card.captured_ns(self.card.written);
        self.late_ns.push(now_ns().saturating_sub(due_ns));
        if self.card.written == self.chunks / 2 {
            // Discards the attenuation of the first half, while the filters learn.
            let _ = self.conference.attenuation_db();
        }
        self.conference.chunk();
        self.card.write(now_ns());
    }

    fn row(&mut self, pictures: f64) -> String {
        self.late_ns.sort_unstable();
        let ms = |part: f64| {
            let at = (self.late_ns.len() as f64 * part) as usize;
            self.late_ns.get(at.min(self.late_ns.len() - 1)).map_or(0.0, |ns| *ns as f64 / 1e6)
        };
        format!(
            "{:7}  {:9} {:7.3} {:7.3} {:7.3}  {:2.0} dB  {pictures:10.1}",
            self.card.written,
            self.card.underruns,
            ms(0.5),
            ms(0.99),
            ms(1.0),
            self.conference.attenuation_db(),
        )
    }
}

/// Runs one conference, in a thread that ends with it; returns a row of the table.
fn confer(tier: Tier, case: Case) -> Result<String, Box<dyn Error>> {
    pin(case.cpu).map_err(|_| format!("this program may not run on CPU {}", case.cpu))?;
    let mut events = Loop::new()?;
    let desk = Arc::new(Mutex::new(Desk::new(case)?));
    let pictures = Rc::new(Cell::new(0_u64));
    let encoded = pictures.clone();
    // SAFETY: no thread-local is made by what waits.
    let fibers = unsafe { Fibers::new(STACK_BYTES) }?;
    events.submit(fibers.event(0, move |fiber| encode(fiber, &encoded)).named("picture"));
    // Dropped at the end, after the loop.
    let _booster;
    match tier {
        Tier::Boost => {
            let booster = Booster::start(BoostOptions::default())?;
            events.cooperate_by(Box::new(booster.boost(Alone)));
            _booster = booster;
        }
        Tier::Baton => {
            let domain = Domain::open("headset", DomainOptions::on(case.cpu))?;
            events.cooperate_by(Box::new(domain.join(Group::Own, WEIGHT)?));
        }
        _ => {}
    }
    if tier.isolated() {
        let priority = (tier == Tier::RealTimeSplit).then_some(SplitOptions::PRIORITY);
        let timers = Split::start(SplitOptions { priority, ..SplitOptions::default() })?;
        let _slice = timers.worker()?;
        let (handle, (over, is_over)) = (events.handle(), mpsc::channel());
        beside(&timers, desk.clone(), move || {
            // An event stops the loop in which it runs.
            let _ = (handle.stop(), over.send(()));
        });
        let _ = events.run();
        is_over.recv()?;
    } else {
        on_loop(&mut events, desk.clone());
        let _ = events.run();
    }
    let mut desk = desk.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(desk.row(pictures.get() as f64 / case.seconds as f64))
}

/// Runs the sound in timers of the loop.
fn on_loop(events: &mut Loop, desk: Arc<Mutex<Desk>>) {
    let first_ns = desk.lock().expect("nobody else has it").next_ns().unwrap_or(0);
    let chunk = Event::timer_in_steps(first_ns, move |context| {
        let mut desk = desk.lock().expect("nobody else has it");
        desk.chunk();
        desk.next_ns().map_or_else(
            || {
                context.stop();
                Step::Done
            },
            Step::At,
        )
    });
    events.submit(chunk.named("chunk"));
}

/// Runs the sound in timers beside the loop; `over` is called after the last chunk.
fn beside(timers: &Split, desk: Arc<Mutex<Desk>>, over: impl FnOnce() + Send + 'static) {
    let Some(at_ns) = desk.lock().expect("no chunk has panicked").next_ns() else { return over() };
    let again = timers.clone();
    timers.submit(at_ns, move |_| {
        desk.lock().expect("no chunk has panicked").chunk();
        beside(&again, desk, over);
    });
}

/// Encodes one picture after the other: each is more important than the next.
fn encode(fiber: &Fiber, pictures: &Cell<u64>) {
    loop {
        for block in 0..BLOCKS {
            black_box(picture_block(block as u32));
            fiber.checkpoint();
        }
        pictures.set(pictures.get() + 1);
        fiber.more(pictures.get());
    }
}

/// Some 20 µs of work.
fn picture_block(seed: u32) -> u32 {
    (0..8000).fold(seed, |sum, n| black_box(sum.wrapping_mul(31).wrapping_add(n)))
}
