//! `channel`: files, lines and the time of day, by the host.
//!
//! | figure | meaning |
//! |---|---|
//! | `wall_ns` | the host's clock, in nanoseconds since 1970 |
//! | `bytes` | number of bytes that were written to a file and read back |
//! | `call_ask` | the image's part of a call before it waits; with `--exact`, in instructions |
//! | `call_take` | its part after the host has answered |
//! | `call_wall_ns` | time from one answer to the next, by the host's clock |

use alloc::vec::Vec;

use antiphon_metal::channel::{DATA, Operation, Request};
use antiphon_metal::kernel::channel::{self, Call, Error, File};
use antiphon_metal::println;
use antiphon_metal::statistics::Summary;
use antiphon_metal::x86::cpu::tsc_unordered;
use antiphon_metal::x86::power::Outcome;

/// Number of calls that are measured.
const CALLS: usize = 100;
/// The file that is written, and not removed.
const PATH: &str = "antiphon-channel";

pub fn run() -> Outcome {
    match check().and_then(|right| measure().map(|()| right)) {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::Failed,
        Err(error) => {
            println!("channel: {error}");
            Outcome::Failed
        }
    }
}

/// Returns whether all calls did what they should.
fn check() -> Result<bool, Error> {
    println!("wall_ns={}", channel::wall_ns()?);
    // The length needs more than one call, and is not a multiple of a word.
    let text: Vec<u8> = (0..3 * DATA + 5).map(|at| (at * 7) as u8).collect();
    let file = File::create(PATH)?;
    file.write_at(&text, 0)?;
    let mut back = alloc::vec![0; text.len() + 10];
    let length = file.read_at(&mut back, 0)?;
    file.close()?;
    println!("bytes={length}");
    let file = File::open(PATH)?;
    let mut end = [0; 9];
    let rest = file.read_at(&mut end, text.len() as u64 - 4)?;
    let is_same = back[..length] == text[..] && end[..rest] == text[text.len() - 4..];
    let refused = file.write_at(b"x", 0) == Err(Error::NotOpen)
        && File::open("../antiphon-channel").map(drop) == Err(Error::Outside)
        && File::open("no-such-file").map(drop) == Err(Error::NotFound);
    channel::print_line("a line by the channel")?;
    Ok(is_same && refused)
}

/// Measures the calls that do least: those for the time of day.
fn measure() -> Result<(), Error> {
    let request = Request { operation: Operation::Clock as u64, file: 0, offset: 0, count: 0 };
    let (mut asks, mut takes, mut walls) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = channel::wall_ns()?;
    for _ in 0..CALLS {
        let began = tsc_unordered();
        let call = Call::ask(&request, &[])?;
        let asked = tsc_unordered();
        call.wait();
        let answered = tsc_unordered();
        let now = call.answer(&mut [])?;
        takes.push(tsc_unordered() - answered);
        asks.push(asked - began);
        walls.push(now.saturating_sub(before));
        before = now;
    }
    for (name, samples) in [("call_ask", asks), ("call_take", takes), ("call_wall_ns", walls)] {
        let mut samples = samples;
        if let Some(Summary { min, median, max, .. }) = Summary::of(&mut samples) {
            println!("{name}={median}");
            println!("{name}.min={min}");
            println!("{name}.max={max}");
        }
    }
    Ok(())
}
