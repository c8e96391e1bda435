//! The watcher, which is notified when the server has shown a frame.

use std::thread::{self, JoinHandle};

use antiphon_linux::Linux;
use antiphon_linux::schedule::set_fifo;
use antiphon_platform::Platform as _;
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::sync::{
    ConnectionExt as _, Counter, CreateAlarmAux, Int64, TESTTYPE, VALUETYPE,
};

use crate::{Result, now};

/// A real-time priority, above all time-sharing threads.
const PRIORITY: u8 = 50;

/// A number in the protocol's form.
pub fn int64(number: u64) -> Int64 {
    Int64 { hi: (number >> 32) as i32, lo: number as u32 }
}

/// The times at which the server has set the counter to 1, 2, 3 and so on.
pub struct Seen {
    /// Times of the monotonic clock, in nanoseconds; steps that happened at once have equal times.
    pub at_ns: Vec<u64>,
    /// Whether the thread had real-time priority on its CPU.
    pub first: bool,
}

/// Watches, from that CPU, until the counter is `last`. The watching has begun when this returns.
pub fn start(
    display: &str,
    cpu: u32,
    counter: Counter,
    last: u64,
) -> Result<JoinHandle<std::result::Result<Seen, String>>> {
    let (server, _) = x11rb::connect(Some(display))?;
    server.sync_initialize(3, 1)?.reply()?;
    let alarm = server.generate_id()?;
    // Notifies once at each step: the awaited value increases by one each time.
    let asked = CreateAlarmAux::new()
        .counter(counter)
        .value_type(VALUETYPE::ABSOLUTE)
        .value(int64(1))
        .test_type(TESTTYPE::POSITIVE_COMPARISON)
        .delta(int64(1))
        .events(1);
    server.sync_create_alarm(alarm, &asked)?.check()?;
    let watch = move || {
        antiphon_linux::pin(cpu).map_err(|_| "the CPU may not be used".to_owned())?;
        let first = set_fifo(Linux::thread(), PRIORITY).is_ok();
        let mut seen = Seen { at_ns: Vec::new(), first };
        while (seen.at_ns.len() as u64) < last {
            let event = server.wait_for_event().map_err(|why| why.to_string())?;
            if let Event::SyncAlarmNotify(told) = event {
                let value = (told.counter_value.hi as u64) << 32 | u64::from(told.counter_value.lo);
                let now = now();
                while (seen.at_ns.len() as u64) < value {
                    seen.at_ns.push(now);
                }
            }
        }
        Ok(seen)
    };
    Ok(thread::spawn(watch))
}
