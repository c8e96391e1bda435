//! A bridge for telephone conferences: each caller sends it a tone over UDP, a frame every 20 ms,
//! receives the sum of all others, and checks it, sample by sample.
//!
//! ```text
//!  callers                 the bridge                                        callers
//!  0: a tone ── UDP ─► leg 0: receives ── channel ─┐                  ┌── UDP ─► 0: hears 1 and 2
//!  1: a tone ────────► leg 1: receives ────────────┼─► mixer: others' ┼────────► 1: hears 0 and 2
//!  2: a tone ────────► leg 2: receives ────────────┘   sum, for each  └────────► 2: hears 0 and 1
//! ```
//!
//! Each box is a fiber with sequential code. The mixer waits for no leg longer than 10 ms: a late
//! leg is left out, and the frame lists the legs in it.
//!
//! `cargo run --release -p antiphon --example conference -- 100 3 4 2`: the number of conferences,
//! callers in each, seconds, and threads. Each argument may be left out, with those after it.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, io, process};

use antiphon::channel::{Receiver, Sender, bounded};
use antiphon::net::UdpSocket;
use antiphon::{fiber, fiber::STACK_BYTES, pool::Pool};

const PERIOD: Duration = Duration::from_millis(20);
/// Longest time from when a frame was spoken until it is mixed.
const WINDOW: Duration = Duration::from_millis(10);
/// Time until the first frame, in which all legs start.
const LEAD: Duration = Duration::from_millis(100);
/// A leg that has heard nothing for this long stops listening.
const SILENCE: Duration = Duration::from_secs(2);
/// Samples in a frame; there are 8000 in a second.
const SAMPLES: usize = 160;
/// The number of bits in a frame for the legs in it. The sum of this many tones still fits in a
/// sample.
const MOST_LEGS: u32 = 32;
const LOUD: f64 = 1000.0;
const HEADER: usize = 12;
const BYTES: usize = HEADER + 2 * SAMPLES;

type Samples = [i32; SAMPLES];

/// A frame. Its bytes follow RTP (RFC 3550, section 5.1), with samples of 16 bits:
///
/// | bytes | |
/// |---|---|
/// | 0, 1 | version 2; payload type 96, whose meaning the parties agree upon |
/// | 2, 3 | the lower half of the number |
/// | 4 to 7 | the timestamp: the number of samples before |
/// | 8 to 11 | the source; here a bit for each leg in the frame, for which RTP has a list |
struct Frame {
    number: u32,
    legs: u32,
    samples: Samples,
}

impl Frame {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0x80, 96];
        bytes.extend((self.number as u16).to_be_bytes());
        bytes.extend((self.number * SAMPLES as u32).to_be_bytes());
        bytes.extend(self.legs.to_be_bytes());
        bytes.extend(self.samples.iter().flat_map(|&sample| (sample as i16).to_be_bytes()));
        bytes
    }

    /// Parses a frame; returns `None` if the bytes are not a frame.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (header, samples) = bytes.split_first_chunk::<HEADER>()?;
        let word = |at: usize| header[at..].first_chunk().map(|word| u32::from_be_bytes(*word));
        let (number, legs) = (word(4)? / SAMPLES as u32, word(8)?);
        let all: Vec<_> = samples.as_chunks().0.iter().map(|it| i16::from_be_bytes(*it)).collect();
        let samples = all.try_into().map(|all: [i16; SAMPLES]| all.map(i32::from)).ok()?;
        header.starts_with(&[0x80, 96]).then_some(Self { number, legs, samples })
    }
}

/// Returns the samples of a leg in a frame. Each leg has a different tone.
fn tone(leg: u32, number: u32) -> Samples {
    let step = TAU * f64::from(301 + 97 * leg) / 8000.0;
    let first = number * SAMPLES as u32;
    std::array::from_fn(|at| (LOUD * (step * f64::from(first + at as u32)).sin()) as i32)
}

fn add(sum: &mut Samples, times: i32, samples: &Samples) {
    sum.iter_mut().zip(samples).for_each(|(sum, sample)| *sum += times * sample);
}

/// The time of the first frame, and the number of frames.
#[derive(Clone, Copy)]
struct Times {
    start: Instant,
    frames: u32,
}

impl Times {
    fn of(self, number: u32) -> Instant {
        self.start + PERIOD * number
    }
}

/// A caller's sending side.
fn speak(socket: &UdpSocket, leg: u32, times: Times) -> io::Result<()> {
    for number in 0..times.frames {
        fiber::sleep(times.of(number).saturating_duration_since(Instant::now()));
        let frame = Frame { number, legs: 1 << leg, samples: tone(leg, number) };
        socket.send(&frame.to_bytes())?;
    }
    Ok(())
}

/// The bridge's receiving side of a leg. It waits if the mixer is behind.
fn receive(socket: &UdpSocket, mixer: &Sender<Frame>, times: Times) -> io::Result<()> {
    while let Some(frame) = next(socket)? {
        let last = frame.number + 1 == times.frames;
        if mixer.send(frame).is_err() || last {
            break;
        }
    }
    Ok(())
}

/// Receives the next frame; returns `None` after a long silence. Another packet is an error.
fn next(socket: &UdpSocket) -> io::Result<Option<Frame>> {
    let mut bytes = [0; BYTES + 1];
    match socket.recv(&mut bytes) {
        Ok(length) => match Frame::of(&bytes[..length]) {
            None => Err(io::Error::other("a datagram that is no frame")),
            frame => Ok(frame),
        },
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn mix(legs: &[(Arc<UdpSocket>, Receiver<Frame>)], times: Times) -> io::Result<()> {
    let mut early: Vec<Option<Frame>> = legs.iter().map(|_| None).collect();
    for number in 0..times.frames {
        let mut all = Frame { number, legs: 0, samples: [0; SAMPLES] };
        let until = times.of(number) + WINDOW;
        let slots = legs.iter().zip(&mut early);
        let said: Vec<_> =
            slots.map(|((_, slot), early)| take(slot, early, number, until)).collect();
        for frame in said.iter().flatten() {
            all.legs |= frame.legs;
            add(&mut all.samples, 1, &frame.samples);
        }
        for ((socket, _), own) in legs.iter().zip(&said) {
            let mut others = Frame { ..all };
            if let Some(own) = own {
                others.legs &= !own.legs;
                add(&mut others.samples, -1, &own.samples);
            }
            socket.send(&others.to_bytes())?;
        }
    }
    Ok(())
}

/// Takes the frame `number` of a leg, if it arrives in time. If frames were lost, the next frame is
/// early, and is kept in `early`.
fn take(
    slot: &Receiver<Frame>,
    early: &mut Option<Frame>,
    number: u32,
    until: Instant,
) -> Option<Frame> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let frame = early.take().or_else(|| slot.recv_timeout(left).ok())?;
        if frame.number == number {
            return Some(frame);
        } else if frame.number > number {
            *early = Some(frame);
            return None;
        }
    }
}

/// The counts of a caller that listens.
#[derive(Default)]
struct Heard {
    /// Times from when frames were spoken until they were heard.
    latencies: Vec<Duration>,
    /// Number of frames in which a leg is missing.
    without: usize,
    /// Number of frames that are not the sum of the legs that they list.
    wrong: usize,
}

/// A caller's receiving side.
fn listen(socket: &UdpSocket, leg: u32, legs: u32, times: Times) -> io::Result<Heard> {
    let mut heard = Heard::default();
    while let Some(frame) = next(socket)? {
        heard.latencies.push(times.of(frame.number).elapsed());
        heard.without += usize::from(frame.legs.count_ones() + 1 < legs);
        let mut sum = [0; SAMPLES];
        let is_in = |other: &u32| frame.legs >> other & 1 == 1;
        (0..legs).filter(is_in).for_each(|other| add(&mut sum, 1, &tone(other, frame.number)));
        heard.wrong += usize::from(is_in(&leg) || sum != frame.samples);
        if frame.number + 1 == times.frames {
            break;
        }
    }
    Ok(heard)
}

/// Runs all conferences, and returns the counts of each caller.
fn hold(conferences: u32, legs: u32, frames: u32, threads: usize) -> io::Result<Vec<Heard>> {
    let lines = (0..conferences * legs).map(|_| line()).collect::<io::Result<Vec<_>>>()?;
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }.build()?;
    let began = Instant::now() + LEAD;
    let (mut ears, mut parts) = (Vec::new(), Vec::new());
    for (conference, lines) in (0..).zip(lines.chunks(legs as usize)) {
        let times = Times { start: began + PERIOD * conference / conferences, frames };
        let mut slots = Vec::new();
        for (leg, [caller, bridge]) in (0..).zip(lines.iter().cloned()) {
            let (sender, slot) = bounded(4);
            slots.push((bridge.clone(), slot));
            let ear = caller.clone();
            ears.push(pool.spawn(move || listen(&ear, leg, legs, times)));
            parts.push(pool.spawn(move || receive(&bridge, &sender, times)));
            parts.push(pool.spawn(move || speak(&caller, leg, times)));
        }
        parts.push(pool.spawn(move || mix(&slots, times)));
    }
    parts.into_iter().try_for_each(|part| part.join().expect("no panic"))?;
    ears.into_iter().map(|ear| ear.join().expect("no panic")).collect()
}

/// Creates two sockets that send to each other: a caller's and the bridge's.
fn line() -> io::Result<[Arc<UdpSocket>; 2]> {
    let ends = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    for (one, other) in [(0, 1), (1, 0)] {
        ends[one].connect(ends[other].local_addr()?)?;
        ends[one].set_read_timeout(Some(SILENCE))?;
    }
    Ok(ends.map(Arc::new))
}

/// Prints the results, and returns whether all frames were right.
fn report(heard: &[Heard], sent: usize) -> bool {
    let mut latencies: Vec<_> = heard.iter().flat_map(|it| &it.latencies).copied().collect();
    latencies.sort_unstable();
    let count = |of: fn(&Heard) -> usize| heard.iter().map(of).sum::<usize>();
    let (without, wrong) = (count(|it| it.without), count(|it| it.wrong));
    let late = latencies.iter().filter(|&&latency| latency > WINDOW).count();
    let lost = sent.saturating_sub(latencies.len());
    println!("{sent} frames sent to listeners: {late} late (> {WINDOW:?}), {lost} lost");
    println!(
        "{without} without a late participant, {wrong} not the sum of the participants in them"
    );
    let Some(&max) = latencies.last() else { return false };
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(at);
    println!("from mouth to ear: p50 {p50:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}, max {max:.1?}");
    wrong == 0
}

fn main() {
    let mut arguments = env::args().skip(1);
    let mut number = |name, usual, least, most| match arguments.next().map(|it| it.parse()) {
        None => usual,
        Some(Ok(number)) if (least..=most).contains(&number) => number,
        Some(_) => fail(&format!("{name} is a number from {least} to {most}")),
    };
    let conferences = number("CONFERENCES", 10, 1, 1000);
    let legs = number("LEGS", 3, 2, MOST_LEGS);
    let frames = number("SECONDS", 4, 1, 3600) * 50;
    let threads = number("THREADS", 2, 1, 1024);
    if arguments.next().is_some() {
        fail("there are CONFERENCES, LEGS, SECONDS and THREADS");
    }
    let heard = hold(conferences, legs, frames, threads as usize)
        .unwrap_or_else(|error| fail(&error.to_string()));
    if !report(&heard, conferences as usize * legs as usize * frames as usize) {
        process::exit(1);
    }
}

fn fail(why: &str) -> ! {
    eprintln!("conference: {why}");
    process::exit(2)
}
