//! Shows the pools of a live program to `antiphon top PID`, or to any other program that asks.
//!
//! When it is off, it costs only a list of the pools. When it is on, a thread sleeps until a
//! request comes. It is on if the environment has `ANTIPHON_LOOK=1` when the first pool is built,
//! or if the program has called [`open`].
//!
//! ```
//! use antiphon::{look, pool::Pool};
//! use std::io::{Read, Write};
//! use std::os::unix::net::UnixStream;
//!
//! look::open()?;
//! let pool = Pool::builder().name("crew").threads(2).build()?;
//! // What `antiphon top` does:
//! let mut socket = UnixStream::connect_addr(&look::address(std::process::id())?)?;
//! socket.write_all(b"antiphon-look 1\n")?;
//! let mut answer = String::new();
//! socket.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("{\"antiphon_look\":1,") && answer.contains("\"name\":\"crew\""));
//! # drop(pool);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The protocol, version 1
//!
//! The socket is a Unix stream socket in the abstract namespace, `antiphon-look-PID-START`: the
//! process, and its start time as in `/proc/PID/stat`. A client writes a line, `antiphon-look 1`,
//! and reads one JSON object and the end of the stream. Only the user that the program runs as, and
//! root, get an answer: the kernel tells the program which user asks. A client that does not write,
//! or does not read, is dropped after 2 s; other clients wait for that. To a version that the
//! program does not know, and for other errors, the answer is `{"antiphon_look":1,"error":"…"}`.
//!
//! | key | what it is |
//! |---|---|
//! | `antiphon_look`, `pid` | the version, which is the first key; the process |
//! | `pools[]` | as they were built |
//! | `name`, `threads`, `spares` | the number of threads at a time, and of spare threads at most |
//! | `workers[]{worker, seat, state, for_ms, queued}` | each that is there |
//! | `state` | `rests`, `searches`, `runs`, or is `away` from its seat, which another has |
//! | `for_ms` | for how long it is in one task, `null` if it is in none |
//! | `queued`, `shared` | tasks in its queue; tasks from outside, or that had no room |
//! | `policy_has_tasks` | whether queues of the policy's own have some |
//! | `tasks`, `refused`, `searches`, `steals`, … | [`Stats`](crate::pool::Stats) |
//! | `fibers` | whether its tasks are |
//! | `hosts[]{thread, ready, waiting, …}` | its threads, by what their fibers do |
//! | `ready`, `waiting` | `null`, and so the next: it has not answered, but is in one task |
//! | `with_deadline`, `for_files` | how many of those that wait |
//! | `busy[]{name, place}` | of one that has not answered, where it is, if the pool names hogs |
//! | `places[]{count, has_deadline, …}` | where they wait, of 64 of each thread |
//! | `by`, `user` | what they wait by, and the user's function that does; or `null` |
//! | `frames[]{name, place}` | all, down to the closure; `by` and `user` are two of them |
//! | `latest_hogs[]{thread, …}` | [`Pool::hogs`](crate::pool::Pool::hogs), the latest 32 first |
//! | `for_ms` | for how long it was seen in that task |
//! | `ago_ms` | how long ago that was; `null`: it is in it still |
//! | `user`, `frames[]` | where it was, the user's function and all; `null`: it has no name |
//! | `latency` | what time went to, of the tasks that are timed; `null`: nothing is recorded |
//! | `recorded`, `tasks` | how many are timed, and for how many they stand |
//! | `live` | how many of those that are timed have not ended |
//! | `window_ms` | how long ago the first of those ended that have, `null` if there is none |
//! | `queued_ns{p50, p99, max}` | what their time went to; of those that live, so far |
//! | `running_ns`, `waiting_ns`, … | the same; and `runnable_ns` and `hogged_ns` |
//! | `delayed_ns` | `queued_ns` and `runnable_ns` of all for which they stand, summed up |
//! | `by_place[]{place, …}` | the same of 32 lines that have spawned them, the most delayed first |
//! | `place` | `null`: they are closures |
//! | `others{places, …}` | the same of all other lines, and how many these are; or `null` |
//! | `worst[]{number, place, …}` | the 16 tasks that were delayed for the longest |
//! | `queued_ns`, … | of one of these: a number |
//! | `thread`, `is_fiber`, `is_over` | of one of these: its thread, and whether it has ended |
//! | `age_ns` | of one of these: from when it was made ready until its end, or now |
//!
//! Keys may be added: skip keys that you do not know. An older program has no `latest_hogs` and no
//! `latency`.
//!
//! `for_ms` of a worker is exact to about a millisecond if the pool
//! [records](crate::pool::recording). Otherwise it is the time for which the worker was seen in
//! that task, so the true time may be longer.
//!
//! # What to know
//!
//! - **A request is not free**: each fiber that reports where it waits keeps its thread busy for 10
//!   to 100 µs. Names are looked up in the process, in its symbols: what Rust's library has read of
//!   these stays in memory, about ten megabytes for a large program with debug information.
//! - **The latency figures** are made from what is recorded anyway, in the thread that answers. A
//!   fiber that is timed and begins or ends waits while their list is copied; no other fiber does.
//!   It takes about 200 bytes for each live task, and a copy of the events of each worker.
//! - **A child of a fork** does not have this thread, and does not answer for its parent. It opens
//!   a socket of its own when it builds a pool or calls [`open`], and shows its own pools only.
//! - **A client needs the same PID and network namespace**: for a container, run it inside.

mod pools;
mod serve;
mod text;
mod times;

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process;
use std::sync::Mutex;
use std::thread;

use crate::unpoisoned::lock;

pub(crate) use pools::{Looked, Seen, enter, leave};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The environment variable that makes a program call [`open`] when it builds a pool, unless it is
/// empty or `0`.
pub const VARIABLE: &str = "ANTIPHON_LOOK";

/// The process that has opened it; a child of that has not.
static OPENED: Mutex<Option<u32>> = Mutex::new(None);

/// Shows the pools of this process from now on, by a thread that sleeps until a request comes.
/// Further calls do nothing.
///
/// # Errors
///
/// If the socket or the thread cannot be made.
pub fn open() -> io::Result<()> {
    let mut opened = lock(&OPENED);
    let process = process::id();
    if *opened != Some(process) {
        let listener = UnixListener::bind_addr(&address(process)?)?;
        let name = "antiphon-look".to_owned();
        thread::Builder::new().name(name).spawn(move || serve::serve(&listener))?;
        *opened = Some(process);
    }
    Ok(())
}

/// The address at which a process shows its pools, if it does.
///
/// # Errors
///
/// `NotFound` if there is no such process; or if `/proc` can't be read.
pub fn address(process: u32) -> io::Result<SocketAddr> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let start = start_of(&stat).ok_or(io::ErrorKind::InvalidData)?;
    SocketAddr::from_abstract_name(format!("antiphon-look-{process}-{start}"))
}

/// When a process began, by its line: the 22nd field. The second is a name that may have anything.
fn start_of(stat: &str) -> Option<u64> {
    let behind = stat.rsplit_once(')')?.1;
    behind.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_of_its_number() {
        let stat = format!("7 (a) b (c) S{} 12345 8 9", " 0".repeat(18));
        assert_eq!(start_of(&stat), Some(12345));
        assert_eq!(start_of("7 (a) S 1 2"), None);
        assert!(address(process::id()).is_ok());
        let nobody = address(u32::MAX).expect_err("no such process");
        assert_eq!(nobody.kind(), io::ErrorKind::NotFound);
    }
}
