//! Introspection: shows the pools of a live program to `antiphon top PID`, or to any other program
//! that asks.
//!
//! When it is off, it costs only a list of the pools. When it is on, a thread sleeps until a
//! request arrives. It is on if the environment has `ANTIPHON_LOOK=1` when the first pool is built,
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
//! or does not read, is dropped after 2 s; other clients wait until then. To a version that the
//! program does not know, and for other errors, the answer is `{"antiphon_look":1,"error":"…"}`.
//!
//! | key | meaning |
//! |---|---|
//! | `antiphon_look`, `pid` | the version, which is the first key; the process |
//! | `pools[]` | the pools, in the order in which they were built |
//! | `name`, `threads`, `spares` | number of threads at a time, and of backup threads at most |
//! | `workers[]{worker, seat, state, for_ms, queued}` | the workers that exist |
//! | `state` | `rests`, `searches`, `runs`, or `away` from its seat, which another has taken |
//! | `for_ms` | how long the worker has been in one task; `null` if it is in none |
//! | `queued`, `shared` | tasks in the worker's queue; tasks from outside, or that had no room |
//! | `policy_has_tasks` | whether the policy's own queues have tasks |
//! | `tasks`, `refused`, `searches`, `steals`, … | [`Stats`](crate::pool::Stats) |
//! | `fibers` | whether tasks are fibers |
//! | `hosts[]{thread, ready, waiting, …}` | the states of each thread's fibers |
//! | `ready`, `waiting` | `null`, as the next two: the thread is in one task, without an answer |
//! | `with_deadline`, `for_files` | how many of the waiting fibers |
//! | `busy[]{name, place}` | frames of a thread that has not answered, if the pool names hogs |
//! | `places[]{count, has_deadline, …}` | where fibers wait, for up to 64 of each thread |
//! | `by`, `user` | the operation that waits, and the user's function that calls it; or `null` |
//! | `frames[]{name, place}` | all frames, down to the closure; they include `by` and `user` |
//! | `latest_hogs[]{thread, …}` | [`Pool::hogs`](crate::pool::Pool::hogs), the latest 32 first |
//! | `for_ms` | how long the thread was seen in that task |
//! | `ago_ms` | how long ago that was; `null` if the thread is still in that task |
//! | `user`, `frames[]` | the user's function and all frames; `null` if they are not known |
//! | `latency` | the parts of the time of the timed tasks; `null` if nothing is recorded |
//! | `recorded`, `tasks` | number of timed tasks, and of the tasks that they stand for |
//! | `live` | number of timed tasks that have not ended |
//! | `window_ms` | how long ago the first of the ended tasks ended; `null` if none has |
//! | `queued_ns{p50, p99, max}` | a part of their time; for live tasks, so far |
//! | `running_ns`, `waiting_ns`, … | the other parts; also `runnable_ns` and `hogged_ns` |
//! | `delayed_ns` | total of `queued_ns` and `runnable_ns` of all tasks that they stand for |
//! | `by_place[]{place, …}` | the same for the 32 spawning lines with the most delay, in order |
//! | `place` | `null` for closures |
//! | `others{places, …}` | the same for all other lines together, and their number; or `null` |
//! | `worst[]{number, place, …}` | the 16 tasks that were delayed for the longest |
//! | `queued_ns`, … | in `worst`: a number |
//! | `thread`, `is_fiber`, `is_over` | in `worst`: the task's thread, and whether it has ended |
//! | `age_ns` | in `worst`: from when the task was made ready until its end, or now |
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
//!   to 100 µs. Names are looked up in the process, in its symbols: the tables that Rust's library
//!   reads stay in memory, about ten megabytes for a large program with debug information.
//! - **The latency figures** are computed from the normal recording, in the thread that answers. A
//!   timed fiber that begins or ends waits while the list of timed fibers is copied; no other fiber
//!   does. It takes about 200 bytes for each live task, and a copy of the events of each worker.
//! - **A child of a fork** does not have this thread, and does not answer for its parent. It opens
//!   its own socket when it builds a pool or calls [`open`], and shows its own pools only.
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

/// The process that has opened the socket. A child of that process has not.
static OPENED: Mutex<Option<u32>> = Mutex::new(None);

/// Shows the pools of this process from now on. Starts a thread that sleeps until a request
/// arrives. Further calls do nothing.
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

/// Returns the address at which a process shows its pools, if it does.
///
/// # Errors
///
/// `NotFound` if there is no such process; or if `/proc` can't be read.
pub fn address(process: u32) -> io::Result<SocketAddr> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let start = start_of(&stat).ok_or(io::ErrorKind::InvalidData)?;
    SocketAddr::from_abstract_name(format!("antiphon-look-{process}-{start}"))
}

/// Returns the start time of a process from its `stat` line: the 22nd field. The second field is a
/// name that may contain any character.
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
