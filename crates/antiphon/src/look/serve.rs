//! The thread that answers introspection requests.
//!
//! It answers one client at a time, within a few seconds whatever the client does; and it survives
//! panics during an answer.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::mem::forget;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_linux::files::{peer, user};
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::sched::{Look, State, Working};

use super::pools::{Looked, pools};
use super::{VERSION, text};

/// How long a client may take to send its request, and then to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a client of another user, which is refused, may take to send its request.
const STRANGERS: Duration = Duration::from_millis(50);
/// Maximum length of a request, in bytes.
const REQUEST: usize = 64;
/// Longest wait for the answers of the threads of all pools about their fibers.
const ANSWERS: Duration = Duration::from_millis(100);
/// Least wait for the answers of one pool's threads.
const ANSWER: Duration = Duration::from_millis(20);
/// Maximum number of fibers of a thread that are asked where they wait.
const MOST: usize = 64;
/// Least time for which a worker is reported to be in one task.
const APART: Duration = Duration::from_millis(20);
/// Time between two tries to accept after a failure, for example if too many files are open.
const NAP: Duration = Duration::from_millis(100);

/// By the numbers of a pool and of its worker: the worker's turn, and when it was first seen in
/// that turn.
type Turns = HashMap<(u64, usize), (u64, Instant)>;

/// The parts of an answer about a pool.
pub(super) struct Known {
    pub(super) look: Look,
    /// Of each worker of `look`, how long it was in one task.
    pub(super) times: Vec<Option<Duration>>,
    pub(super) seen: super::Seen,
}

/// Answers requests for ever.
pub(super) fn serve(listener: &UnixListener) {
    let mut turns = Turns::new();
    loop {
        match listener.accept() {
            Ok((mut socket, _)) => {
                let answer = AssertUnwindSafe(|| answer(&mut socket, &mut turns));
                // A client that is gone needs no answer. The panic of a policy is reported by the
                // panic hook; its payload is leaked, because its drop may panic, too.
                if let Err(panic) = catch_unwind(answer) {
                    forget(panic);
                }
            }
            Err(_) => thread::sleep(NAP),
        }
    }
}

fn answer(socket: &mut UnixStream, turns: &mut Turns) -> io::Result<()> {
    let who = peer(socket.as_fd())?.user;
    if who != user() && who != 0 {
        // If the socket is closed with an unread request in it, the client does not receive the
        // answer.
        let _: io::Result<String> = ask(socket, STRANGERS);
        return say(socket, &text::error("this program belongs to another user"));
    }
    let request = ask(socket, PATIENCE)?;
    let version = request.strip_prefix("antiphon-look ").map(str::trim);
    let answer = match version.and_then(|version| version.parse::<u32>().ok()) {
        Some(VERSION) => text::pools(&look(turns)),
        Some(_) => text::error(&format!("this program speaks version {VERSION} of the protocol")),
        None => text::error(&format!("a request is a line: antiphon-look {VERSION}")),
    };
    say(socket, &answer)
}

/// Reads the first line of a request.
fn ask(socket: &mut UnixStream, patience: Duration) -> io::Result<String> {
    let until = Instant::now() + patience;
    let (mut bytes, mut count) = ([0; REQUEST], 0);
    while count < REQUEST && !bytes[..count].contains(&b'\n') {
        socket.set_read_timeout(Some(left(until)?))?;
        match socket.read(&mut bytes[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

fn say(socket: &mut UnixStream, answer: &str) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut rest = answer.as_bytes();
    while !rest.is_empty() {
        socket.set_write_timeout(Some(left(until)?))?;
        match socket.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Looks at all pools.
fn look(turns: &mut Turns) -> Vec<Known> {
    let (began, pools) = (Instant::now(), pools());
    turns.retain(|&(id, _), _| pools.iter().any(|(pool, _)| *pool == id));
    for (id, pool) in &pools {
        notice(turns, *id, &pool.workers(), began);
    }
    let seen: Vec<_> = pools
        .iter()
        .map(|(_, pool)| pool.seen(MOST, (began + ANSWERS).max(Instant::now() + ANSWER)))
        .collect();
    // Idle threads have answered at once, so less than `APART` may have passed.
    let keeps = |(id, pool): &(u64, _)| is_any_kept(turns, *id, pool);
    if pools.iter().any(keeps) {
        thread::sleep(APART.saturating_sub(began.elapsed()));
    }
    let known = |((id, pool), seen): (&(u64, std::sync::Arc<dyn Looked>), _)| {
        let (now, look) = (Instant::now(), pool.workers());
        notice(turns, *id, &look, now);
        let (now_ns, since_ns) = (Linux::now(Clock::Monotonic), pool.since_ns());
        let time = |worker: &Working| {
            let seen = now - turns.get(&(*id, worker.number))?.1;
            // The seat's record is that of its last worker, even if that worker is away.
            let since_ns = since_ns.get(worker.seat).copied().flatten();
            let since_ns = match worker.state {
                State::Runs => since_ns,
                _ => worker.since_ns,
            };
            let known = since_ns.map(|ns| Duration::from_nanos(now_ns.saturating_sub(ns)));
            is_in_task(worker).then(|| known.unwrap_or(seen).max(seen)).filter(|it| *it >= APART)
        };
        let times = look.workers.iter().map(time).collect();
        Known { look, times, seen }
    };
    pools.iter().zip(seen).map(known).collect()
}

fn is_in_task(worker: &Working) -> bool {
    matches!(worker.state, State::Runs | State::Away)
}

/// Returns whether a worker of that pool is still in the turn that it was seen in.
fn is_any_kept(turns: &Turns, id: u64, pool: &std::sync::Arc<dyn Looked>) -> bool {
    pool.workers().workers.iter().any(|worker| {
        let turn = turns.get(&(id, worker.number)).map(|&(turn, _)| turn);
        is_in_task(worker) && turn == Some(worker.turn)
    })
}

/// Records the turns of the pool's workers, and when they were first seen in these.
fn notice(turns: &mut Turns, id: u64, look: &Look, now: Instant) {
    for worker in &look.workers {
        let seen = turns.entry((id, worker.number)).or_insert((worker.turn, now));
        if seen.0 != worker.turn {
            *seen = (worker.turn, now);
        }
    }
}
