//! A serial driver without a kernel's: MIDI, clocked out byte by byte by the timers of an event
//! loop, on a pseudo-terminal, while the loop computes and others want its CPU; a reader on the
//! other end says how late each byte was.
//!
//! `cargo run --release -p antiphon-coop --example midi -- [SECONDS [HOGS [TIER [BAUD]]]]`: 10
//! seconds, 4 hogs (threads on the same CPU that do nothing but run), all tiers that there are,
//! 31250 baud, by which a byte takes 320 µs.
//!
//! | file | content |
//! |---|---|
//! | `wire` | messages as bytes |
//! | `line` | when each byte begins; a tune |
//! | `port` | the pseudo-terminal |

mod line;
mod port;
mod wire;

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use antiphon::fiber::STACK_BYTES;
use antiphon_coop::event_loop::{Event, Fibers, Loop, Step, now_ns};
use antiphon_coop::{
    Alone, Available, BoostOptions, Booster, Domain, DomainOptions, Group, Split, SplitOptions,
    Tier, WEIGHT, available,
};
use antiphon_linux::{allowed, pin, schedule};
use antiphon_platform::ThreadId;

use line::{BAUD, Line, tune};
use port::{Port, open_raw};
use wire::{Decoder, Message};

#[derive(Clone, Copy)]
struct Case {
    seconds: u64,
    hogs: usize,
    baud: u64,
    cpu: u32,
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let (case, tiers) = match asked(&words) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("midi: {why}; midi [SECONDS [HOGS [TIER [BAUD]]]]");
            return ExitCode::from(2);
        }
    };
    let here = available();
    if let [tier] = tiers[..]
        && let Err(why) = here.tier(tier)
    {
        eprintln!("midi: no {tier} here: {why}");
        return ExitCode::from(69);
    }
    if let Err(why) = all(case, &tiers, &here) {
        eprintln!("midi: {why}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn asked(words: &[String]) -> Result<(Case, Vec<Tier>), String> {
    let number = |at: usize, what: &str, or: u64, least: u64, most: u64| {
        let number = words.get(at).map_or(Ok(or), |word| word.parse());
        number
            .ok()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("{what}: a number from {least} to {most}, not `{}`", words[at]))
    };
    let seconds = number(0, "seconds", 10, 1, 3600)?;
    let hogs = number(1, "hogs", 4, 0, 1000)? as usize;
    let baud = number(3, "baud", 31_250, *BAUD.start(), *BAUD.end())?;
    let can = [Tier::None, Tier::Boost, Tier::RealTimeSplit, Tier::Split, Tier::Baton];
    let tiers = match words.get(2) {
        None => can.to_vec(),
        Some(word) => {
            let tier = can.iter().find(|tier| tier.name().eq_ignore_ascii_case(word));
            vec![*tier.ok_or_else(|| {
                format!("a tier is one of {}, not `{word}`", can.map(Tier::name).join(", "))
            })?]
        }
    };
    if let Some(word) = words.get(4) {
        return Err(format!("what is `{word}` for?"));
    }
    Ok((Case { seconds, hogs, baud, cpu: DomainOptions::default().cpu }, tiers))
}

fn all(case: Case, tiers: &[Tier], here: &Available) -> Result<(), Box<dyn Error>> {
    let Case { seconds, hogs, baud, cpu } = case;
    let byte_ns = Line::new(baud).byte_ns();
    println!("{baud} baud, {} µs a byte; {hogs} hogs, CPU {cpu}, {seconds} s", byte_ns / 1000);
    println!("how late each byte was written and read, in µs, beside a line that is never late");
    println!(
        "tier    bytes  messages  {:>9} {:>9} {:>9}   {:>9} {:>9} {:>9}",
        "p50", "p99", "longest", "p50", "p99", "longest"
    );
    for &tier in tiers {
        if let Err(why) = here.tier(tier) {
            println!("{tier:<5} no: {why}");
            continue;
        }
        let over = Arc::new(AtomicBool::new(false));
        let hogs: Vec<_> = (0..hogs).map(|_| hog(cpu, over.clone())).collect();
        // Tiers leave traces in their threads: the CPU that they are pinned to, say.
        let row = thread::spawn(move || play(tier, case).map_err(|error| error.to_string()));
        let row = row.join().map_err(|_| "the driver has panicked")??;
        over.store(true, Relaxed);
        hogs.into_iter().try_for_each(|hog| hog.join().map_err(|_| "a hog has panicked"))?;
        println!("{tier:<5} {row}");
    }
    Ok(())
}

fn hog(cpu: u32, over: Arc<AtomicBool>) -> JoinHandle<()> {
    thread::spawn(move || {
        // On another CPU the hog would disturb no loop: the row would be too good.
        pin(cpu).expect("the CPU that this program was on");
        while !over.load(Relaxed) {
            compute();
        }
    })
}

/// Some microseconds of work.
fn compute() {
    black_box((0..2000_u32).fold(1_u32, |sum, n| black_box(sum.wrapping_mul(31).wrapping_add(n))));
}

/// The driver: the line, and the beginning of each byte.
struct Driver {
    line: Line,
    file: File,
    begun: mpsc::Sender<u64>,
}

impl Driver {
    /// Writes the byte that is due, and says when the next one is.
    fn step(&mut self) -> Option<u64> {
        let now_ns = now_ns();
        let byte = self.line.begin(now_ns)?;
        // The reader, which counts the bytes, misses one that was refused.
        self.file.write_all(&[byte]).ok()?;
        self.begun.send(now_ns).ok()?;
        self.line.next_ns()
    }
}

/// Starts the thread that reads the messages `sent`. It returns when each byte came, and whether
/// each message is as it was sent.
fn reader(mut port: File, sent: Vec<Message>, driver: u32) -> JoinHandle<std::io::Result<Heard>> {
    thread::spawn(move || {
        // Away from the hogs, and before others, where that is possible: it is the measure.
        if let Some(&other) = allowed().iter().find(|&&cpu| cpu != driver) {
            let _ = pin(other);
        }
        let _ = schedule::set_fifo(ThreadId(0), 50);
        let (mut decoder, mut heard, mut bytes) = (Decoder::default(), Heard::default(), [0; 64]);
        while heard.messages + heard.wrong < sent.len() {
            let count = port.read(&mut bytes)?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let now_ns = now_ns();
            for &byte in &bytes[..count] {
                heard.at_ns.push(now_ns);
                if let Some(message) = decoder.decode(byte) {
                    let right = sent.get(heard.messages + heard.wrong) == Some(&message);
                    *(if right { &mut heard.messages } else { &mut heard.wrong }) += 1;
                }
            }
        }
        Ok(heard)
    })
}

#[derive(Default)]
struct Heard {
    at_ns: Vec<u64>,
    messages: usize,
    wrong: usize,
}

/// Plays one tune, in a thread that ends with it; returns a row of the table.
fn play(tier: Tier, case: Case) -> Result<String, Box<dyn Error>> {
    pin(case.cpu).map_err(|_| format!("this program may not run on CPU {}", case.cpu))?;
    let port = Port::open()?;
    let other = open_raw(&port.path)?;
    let tune = tune(now_ns() + 20_000_000, case.seconds * 1_000_000_000);
    let due_ns = due(&mut on_line(&tune, case.baud));
    let line = on_line(&tune, case.baud);
    let sent = tune.into_iter().map(|(_, message)| message).collect();
    let reader = reader(other, sent, case.cpu);
    let (begun, times) = mpsc::channel();
    clock_out(tier, case, Driver { line, file: port.driver.try_clone()?, begun })?;
    let begun_ns: Vec<_> = times.iter().collect();
    if begun_ns.len() < due_ns.len() {
        // Otherwise the reader waits for the rest.
        drop(port);
        return Err(format!("of {} bytes {} were written", due_ns.len(), begun_ns.len()).into());
    }
    let heard = reader.join().map_err(|_| "the reader has panicked")??;
    if heard.wrong > 0 || heard.at_ns.len() != due_ns.len() {
        return Err(format!("{} messages were read wrong", heard.wrong).into());
    }
    let (written, read) = (late(&due_ns, &begun_ns), late(&due_ns, &heard.at_ns));
    Ok(format!("{:7}  {:8}  {written}   {read}", due_ns.len(), heard.messages))
}

fn on_line(tune: &[(u64, Message)], baud: u64) -> Line {
    let mut line = Line::new(baud);
    tune.iter().for_each(|&(at_ns, message)| line.put(at_ns, message));
    line
}

/// The times when each byte begins on a line that is never late.
fn due(line: &mut Line) -> Vec<u64> {
    let next = || line.next_ns().inspect(|&at_ns| _ = line.begin(at_ns));
    std::iter::from_fn(next).collect()
}

/// The lateness of bytes, in µs: of half of them, of 99 %, and of all.
fn late(due_ns: &[u64], at_ns: &[u64]) -> String {
    let late = at_ns.iter().zip(due_ns).map(|(at_ns, due_ns)| at_ns.saturating_sub(*due_ns));
    let mut late: Vec<_> = late.collect();
    late.sort_unstable();
    let us = |part: f64| {
        let at = (late.len() as f64 * part) as usize;
        late.get(at.min(late.len() - 1)).map_or(0.0, |ns| *ns as f64 / 1e3)
    };
    format!("{:9.1} {:9.1} {:9.1}", us(0.5), us(0.99), us(1.0))
}

/// Runs the driver until nothing is left, by that tier, on a loop that computes.
fn clock_out(tier: Tier, case: Case, mut driver: Driver) -> Result<(), Box<dyn Error>> {
    let mut events = Loop::new()?;
    // SAFETY: no fiber waits while it makes a thread-local.
    let fibers = unsafe { Fibers::new(STACK_BYTES) }?;
    let synthesizes = fibers.event(0, |fiber| {
        loop {
            compute();
            fiber.checkpoint();
        }
    });
    events.submit(synthesizes.named("compute"));
    let first_ns = driver.line.next_ns().unwrap_or(0);
    let handle = events.handle();
    if tier.isolated() {
        let priority = (tier == Tier::RealTimeSplit).then_some(SplitOptions::PRIORITY);
        let timers = Split::start(SplitOptions { priority, ..SplitOptions::default() })?;
        let _slice = timers.worker()?;
        let stop = move || handle.stop().is_ok();
        beside(&timers, first_ns, driver, stop);
        let _ = events.run();
        return Ok(());
    }
    // Dropped at the end, after the loop's turns.
    let _booster;
    match tier {
        Tier::Boost => {
            let booster = Booster::start(BoostOptions::default())?;
            events.cooperate_by(Box::new(booster.boost(Alone)));
            _booster = booster;
        }
        Tier::Baton => {
            let domain = Domain::open("midi", DomainOptions::on(case.cpu))?;
            events.cooperate_by(Box::new(domain.join(Group::Own, WEIGHT)?));
        }
        _ => {}
    }
    let byte = Event::timer_in_steps(first_ns, move |context| match driver.step() {
        Some(at_ns) => Step::At(at_ns),
        None => {
            context.stop();
            Step::Done
        }
    });
    events.submit(byte.named("byte"));
    let _ = events.run();
    Ok(())
}

/// Bytes as timers beside the loop, which is stopped behind the last one.
fn beside(
    timers: &Split,
    at_ns: u64,
    mut driver: Driver,
    stop: impl FnOnce() -> bool + Send + 'static,
) {
    let again = timers.clone();
    timers.submit(at_ns, move |_| match driver.step() {
        Some(at_ns) => beside(&again, at_ns, driver, stop),
        None => _ = stop(),
    });
}
