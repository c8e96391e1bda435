//! Measures the cost of fiber stacks on this machine: making, touching and reusing them, and giving
//! them back to the kernel.
//!
//! ```sh
//! cargo run --release -p antiphon-linux --example stacks -- [STACKS] [KIB]
//! ```
//!
//! By default it makes a million stacks of 64 KiB and touches one page of each, which needs 5 GiB.
//! Times are wall-clock times per stack; the resident size is that of the whole process.

use std::process::ExitCode;
use std::time::Instant;

use antiphon_linux::stack::{Stack, Stacks};

fn main() -> ExitCode {
    let numbers: Result<Vec<usize>, _> =
        std::env::args().skip(1).map(|word| word.parse()).collect();
    let (count, kib) = match numbers.as_deref() {
        Ok([]) => (1_000_000, 64),
        Ok(&[count]) => (count, 64),
        Ok(&[count, kib]) => (count, kib),
        _ => {
            eprintln!("usage: stacks [STACKS] [KIB]");
            return ExitCode::from(2);
        }
    };
    match run(count, kib) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stacks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(count: usize, kib: usize) -> Result<(), Box<dyn std::error::Error>> {
    let stacks = Stacks::new(kib.saturating_mul(1 << 10))?;
    println!("{count} stacks of {kib} KiB");
    println!("{:<34} {:>10} {:>14}", "", "ns each", "resident MiB");
    let begin = Instant::now();
    let mut taken = (0..count).map(|_| stacks.take()).collect::<Result<Vec<_>, _>>()?;
    row("made", count, begin)?;
    let begin = Instant::now();
    taken.iter().for_each(touch);
    row("touched for the first time", count, begin)?;
    let begin = Instant::now();
    taken.iter().for_each(touch);
    row("touched again", count, begin)?;
    let begin = Instant::now();
    taken.clear();
    row("given back", count, begin)?;
    let begin = Instant::now();
    for _ in 0..count {
        touch(&stacks.take()?);
    }
    row("taken, touched and given, hot", count, begin)?;
    let begin = Instant::now();
    let cold = stacks.trim(0);
    row("given to the kernel", cold, begin)?;
    let begin = Instant::now();
    taken.extend((0..count).map(|_| stacks.take()).collect::<Result<Vec<_>, _>>()?);
    row("taken, cold", count, begin)?;
    let begin = Instant::now();
    drop((taken, stacks));
    row("unmapped", count, begin)
}

/// Writes the word where a fiber begins.
fn touch(stack: &Stack) {
    let top = core::ptr::with_exposed_provenance_mut::<u64>(stack.base().get() - 8);
    // SAFETY: the topmost word of a stack that the caller owns.
    unsafe { top.write_volatile(1) };
}

fn row(what: &str, count: usize, begin: Instant) -> Result<(), Box<dyn std::error::Error>> {
    let each = begin.elapsed().as_nanos() / count.max(1) as u128;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("?");
    let resident =
        resident.trim().trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib >> 10);
    println!("{what:<34} {each:>10} {resident:>14}");
    Ok(())
}
