//! Exactly once under load: `all_to_all [MILLIONS [THREADS]]`, by default a hundred million
//! messages among four threads, each to each.

use std::process::ExitCode;
use std::time::Instant;

#[path = "../tests/common/mod.rs"]
mod common;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let (Ok(millions), Ok(threads)) =
        (arguments.next().unwrap_or(Ok(100)), arguments.next().unwrap_or(Ok(4)))
    else {
        eprintln!("two numbers are wanted: millions of messages, and threads");
        return ExitCode::from(2);
    };
    let each = (millions * 1_000_000).div_ceil(threads * threads);
    let begin = Instant::now();
    let tally = common::all_to_all(threads as usize, each, 256);
    let seconds = begin.elapsed().as_secs_f64();
    let wanted = each * threads * threads;
    println!("{tally:?} of {wanted} in {seconds:.1} s");
    let right = tally.delivered == wanted && tally.out_of_order == 0;
    if right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
