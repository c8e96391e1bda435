//! `locks`: every lock, its size, and what it is.
//!
//! Sizes are those of the types in this very program. What a lock *does* (how it scales, how fair
//! it is) is a matter of measurement and stands in `bench locks`, not here.

use std::process::ExitCode;

use antiphon_linux::Linux;
use antiphon_platform::Waiter;
use antiphon_sync::lock::classic::{Clh, Futex, Mcs, McsStp, Tas, Ticket, Ttas};
use antiphon_sync::lock::{ShflMutex, ShflSpin};
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::gdb;
use crate::output::table::{Cell, Table, Tone, colour_stdout};
use crate::output::{report, say};

/// Every lock: its size, alone and while somebody waits, and what it is
#[derive(Args)]
#[command(after_help = "\
Example:
  antiphon locks --json
  antiphon locks --gdb > antiphon.py; gdb -x antiphon.py -p PID")]
pub struct Arguments {
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Print a script by which gdb shows locks of a process, who holds them and who waits
    #[arg(long, conflicts_with = "json")]
    gdb: bool,
}

struct Lock {
    name: &'static str,
    ours: bool,
    /// In each place where the lock is.
    bytes: usize,
    /// For each thread while it waits, besides. `None`: the C library's or kernel's own business.
    context_bytes: Option<usize>,
    waits: &'static str,
    order: &'static str,
    /// Whether a wait may have a deadline.
    timed: bool,
}

const NODE: usize = size_of::<Waiter<Linux>>();
const SORTED: &str = "free for all; the queue by socket";
const BARGING: &str = "free for all";
const IN_ORDER: &str = "first come, first served";

const LOCKS: [Lock; 17] = [
    ours("shfl-mutex", size_of::<ShflMutex<Linux>>(), NODE, "spins, then sleeps", SORTED, true),
    ours(
        "shfl-mutex+light",
        size_of::<ShflMutex<Linux>>(),
        NODE,
        "spins, then sleeps",
        SORTED,
        true,
    ),
    ours(
        "shfl-mutex+published",
        size_of::<ShflMutex<Linux>>(),
        NODE,
        "the head spins, others sleep",
        SORTED,
        true,
    ),
    ours("shfl-spin", size_of::<ShflSpin<Linux>>(), NODE, "spins", "queue by socket", false),
    ours("tas", size_of::<Tas<Linux>>(), 0, "spins", BARGING, false),
    ours("ttas", size_of::<Ttas<Linux>>(), 0, "spins, backing off", BARGING, false),
    ours("ticket", size_of::<Ticket<Linux>>(), 0, "spins", IN_ORDER, false),
    ours("mcs", size_of::<Mcs<Linux>>(), NODE, "spins", IN_ORDER, false),
    ours("mcs-stp", size_of::<McsStp<Linux>>(), NODE, "spins, then sleeps", IN_ORDER, false),
    ours("clh", size_of::<Clh<Linux>>(), NODE, "spins", IN_ORDER, false),
    ours("futex", size_of::<Futex<Linux>>(), NODE, "sleeps", BARGING, false),
    peer("glibc", size_of::<libc::pthread_mutex_t>(), Some(0), "sleeps", BARGING, true),
    peer(
        "glibc-adaptive",
        size_of::<libc::pthread_mutex_t>(),
        Some(0),
        "spins, then sleeps",
        BARGING,
        true,
    ),
    peer("std", size_of::<std::sync::Mutex<()>>(), Some(0), "spins, then sleeps", BARGING, false),
    peer(
        "parking_lot",
        size_of::<parking_lot::RawMutex>(),
        None,
        "spins, then sleeps",
        BARGING,
        true,
    ),
    peer("nsync", 2 * size_of::<u64>(), None, "spins, then sleeps", BARGING, true),
    peer("absl", size_of::<u64>(), None, "spins, then sleeps", BARGING, true),
];

const fn ours(
    name: &'static str,
    bytes: usize,
    context: usize,
    waits: &'static str,
    order: &'static str,
    timed: bool,
) -> Lock {
    Lock { name, ours: true, bytes, context_bytes: Some(context), waits, order, timed }
}

const fn peer(
    name: &'static str,
    bytes: usize,
    context_bytes: Option<usize>,
    waits: &'static str,
    order: &'static str,
    timed: bool,
) -> Lock {
    Lock { name, ours: false, bytes, context_bytes, waits, order, timed }
}

/// Prints the locks.
///
/// # Errors
///
/// If stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.gdb {
        say(&gdb::script())?;
    } else if arguments.json {
        let locks: Vec<_> = LOCKS.iter().map(object).collect();
        report::print(json!({ "locks": locks }))?;
    } else {
        say(&text())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn object(lock: &Lock) -> serde_json::Value {
    json!({
        "name": lock.name, "ours": lock.ours, "bytes": lock.bytes,
        "context_bytes": lock.context_bytes, "waits": lock.waits, "order": lock.order,
        "timed": lock.timed,
    })
}

fn text() -> String {
    let mut table =
        Table::new(&["lock", ">bytes", ">waiter bytes", "a waiter", "order", "deadline"]);
    for lock in &LOCKS {
        let tone = if lock.ours { Tone::Plain } else { Tone::Faint };
        let context = lock.context_bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        table.row(vec![
            Cell::text(lock.name).tone(tone),
            Cell::number(lock.bytes.to_string()),
            Cell::number(context),
            Cell::text(lock.waits).tone(tone),
            Cell::text(lock.order).tone(tone),
            Cell::text(if lock.timed { "yes" } else { "no" }).tone(tone),
        ]);
    }
    format!(
        "{}\nEvery lock of ours is free when all its bytes are zero. A waiter's bytes are taken\n\
         while it waits only, from memory that all locks share; by mcs, mcs-stp and clh for\n\
         their owner too. -: not ours to measure.\n",
        table.render(colour_stdout())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_those_that_are_promised() {
        let bytes = |name| LOCKS.iter().find(|lock| lock.name == name).map(|lock| lock.bytes);
        assert_eq!(bytes("shfl-mutex"), Some(8));
        assert_eq!(bytes("shfl-spin"), Some(4));
        assert_eq!((bytes("tas"), bytes("ttas"), bytes("ticket")), (Some(1), Some(1), Some(4)));
        assert_eq!((bytes("mcs"), bytes("mcs-stp"), bytes("clh")), (Some(8), Some(8), Some(8)));
        assert_eq!(bytes("futex"), Some(8));
    }
}
