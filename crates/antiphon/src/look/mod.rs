//! A live program that shows its pools: to `antiphon top PID`, or to whoever asks.
//!
//! Off, nothing is there but a list of the pools. On, a thread sleeps until somebody asks: where
//! the environment has `ANTIPHON_LOOK=1` when the first pool is built, or the program has called
//! [`open`].
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
//! A Unix stream socket in the abstract namespace, `antiphon-look-PID-START`: the process, and when
//! that began, as `/proc/PID/stat` has it. A looker writes a line, `antiphon-look 1`, and reads one
//! JSON object and the end. Only the user who the program runs as gets an answer, or root: the
//! kernel says who asks. A looker that writes nothing, or does not read, is left after 2 s; others
//! wait for that. Of a version that the program does not know, and of other errors:
//! `{"antiphon_look":1,"error":"…"}`.
//!
//! | key | what it is |
//! |---|---|
//! | `antiphon_look`, `pid` | the version, which is the first key; the process |
//! | `pools[]` | as they were built |
//! | `name`, `threads`, `spares` | so many threads at a time, so many more at most |
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
//! | `thread`, `is_fiber`, `is_over` | of one of these: who runs it, and whether it has ended |
//! | `age_ns` | of one of these: from when it was made ready until its end, or now |
//!
//! Keys may be added: skip those that you don't know. An older program has no `latest_hogs` and no
//! `latency`.
//!
//! `for_ms` of a worker is right to within a millisecond or so where the pool
//! [records](crate::pool::Recording), and else the time in which it was seen there: so it may be
//! longer.
//!
//! # What to know
//!
//! - **A look is not free**: each fiber that says where it waits keeps its thread for 10 to 100 µs;
//!   and names are looked up in the process, in its symbols: what the library of Rust has read of
//!   these stays in memory, some ten megabytes for a large program with debug information.
//! - **The account of time** is made of what is recorded anyway, in this thread: a fiber that is
//!   timed and begins or ends waits while their list is copied, and no other. It takes some 200
//!   bytes for each that lives, and a copy of the events of each worker.
//! - **A child of a fork** has no such thread, and does not answer for its parent. It opens a
//!   socket of its own when it builds a pool, or calls [`open`]. It shows its own pools only.
//! - **A looker needs the same PID and network namespace**: for a container, run it in there.

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

/// The version of the protocol that is spoken here.
pub const VERSION: u32 = 1;
/// Has a program that builds a pool call [`open`], unless it is empty or `0`.
pub const VARIABLE: &str = "ANTIPHON_LOOK";

/// The process that has opened it; a child of that has not.
static OPENED: Mutex<Option<u32>> = Mutex::new(None);

/// Has this process show its pools from now on, by a thread that sleeps until somebody asks. Once
/// it does, this does nothing.
///
/// # Errors
///
/// If there can't be a socket, or a thread.
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

/// Where a process shows its pools, if it does.
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
