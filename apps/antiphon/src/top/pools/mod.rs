//! The pools of a live program, as the program reports them: [`antiphon::look`] has the protocol.
//!
//! | module | has |
//! |---|---|
//! | [`text`] | pools as they are printed |
//! | [`times`] | the tasks that were too long, and where the time of all tasks went |

mod text;
mod times;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use antiphon_linux::files::{peer, user};
use serde::Deserialize;
use serde_json::Value;

pub use text::Part;
use times::{Hog, Latency};

use antiphon_report::failure::Failure;

/// How long a program may take to answer: it may answer others first, and its threads may be in
/// tasks.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is read, in bytes.
const MOST: u64 = 64 << 20;
const VERSION: u32 = antiphon::look::VERSION;

/// A program that shows its pools.
pub struct Program {
    /// The id of its process.
    pub pid: u32,
    /// The previous look: its time, and each pool's name and number of tasks that had begun.
    before: Option<(Instant, Vec<(String, u64)>)>,
}

/// The result of one look.
pub struct Pools {
    /// The program's own answer.
    pub told: Value,
    pools: Vec<Pool>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    pools: Vec<Pool>,
}

#[derive(Deserialize)]
struct Pool {
    name: String,
    threads: usize,
    spares: usize,
    workers: Vec<Worker>,
    shared: u64,
    policy_has_tasks: bool,
    tasks: u64,
    steals: u64,
    hogs: u64,
    longest_ns: u64,
    fibers: bool,
    hosts: Vec<Host>,
    places: Vec<Place>,
    /// The latest first. Programs of an earlier version report neither this nor the latency.
    #[serde(default)]
    latest_hogs: Vec<Hog>,
    /// `Some(None)`: the pool records no latency.
    #[serde(default, deserialize_with = "times::said")]
    latency: Option<Option<Latency>>,
    /// Tasks per second after the previous look, if there was one.
    #[serde(skip)]
    tasks_per_s: Option<f64>,
}

#[derive(Deserialize)]
struct Worker {
    worker: usize,
    seat: usize,
    state: String,
    for_ms: Option<u64>,
    queued: u64,
}

#[derive(Deserialize)]
struct Host {
    thread: String,
    ready: Option<u64>,
    waiting: Option<u64>,
    with_deadline: Option<u64>,
    for_files: Option<u64>,
    /// The frames of a thread that does not answer, the innermost first, if the program reads them.
    #[serde(default)]
    busy: Option<Vec<Frame>>,
}

#[derive(Deserialize)]
struct Place {
    count: u64,
    has_deadline: bool,
    by: Option<Frame>,
    user: Option<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    name: String,
    place: Option<String>,
}

/// Why a look has failed.
pub enum Blind {
    /// The program shows no pools, or is gone.
    Shows(io::Error),
    /// The program has refused, or has sent something other than an answer.
    Says(Failure),
}

impl Program {
    /// A process that may show its pools.
    pub fn new(pid: u32) -> Self {
        Self { pid, before: None }
    }

    /// The processes of this user (of all users for root) that show their pools, by the kernel's
    /// list of sockets.
    pub fn all() -> Vec<u32> {
        let listed = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let named = |line: &str| {
            let name = line.rsplit_once("@antiphon-look-")?.1.trim();
            let pid = name.split('-').next()?.parse::<u32>().ok()?;
            // If that process has ended, a child may still have a copy of the socket.
            let address = antiphon::look::address(pid).ok()?;
            let name = format!("antiphon-look-{name}");
            let lives = name_of(&address).is_some_and(|it| it == name.as_bytes());
            let is_ours = || user() == 0 || owner(pid) == Some(user());
            (lives && is_ours()).then_some(pid)
        };
        let mut all: Vec<_> = listed.lines().filter_map(named).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Asks the program for its pools.
    ///
    /// # Errors
    ///
    /// If it shows none, or if it sends something other than its pools.
    pub fn look(&mut self) -> Result<Pools, Blind> {
        let text = self.ask().map_err(Blind::Shows)?;
        let mut pools = parsed(self.pid, &text).map_err(Blind::Says)?;
        let now = Instant::now();
        if let Some((then, before)) = &self.before {
            let span = (now - *then).as_secs_f64().max(1e-3);
            for (pool, (name, tasks)) in pools.pools.iter_mut().zip(before) {
                let is_same = pool.name == *name && pool.tasks >= *tasks;
                pool.tasks_per_s = is_same.then(|| (pool.tasks - tasks) as f64 / span);
            }
        }
        let counts = pools.pools.iter().map(|pool| (pool.name.clone(), pool.tasks)).collect();
        self.before = Some((now, counts));
        Ok(pools)
    }

    fn ask(&self) -> io::Result<String> {
        let mut socket = UnixStream::connect_addr(&antiphon::look::address(self.pid)?)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        // Any program may have taken the name.
        if peer(socket.as_fd())?.pid != self.pid {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        socket.write_all(format!("antiphon-look {VERSION}\n").as_bytes())?;
        let mut answer = Vec::new();
        socket.take(MOST).read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

fn name_of(address: &std::os::unix::net::SocketAddr) -> Option<&[u8]> {
    std::os::linux::net::SocketAddrExt::as_abstract_name(address)
}

fn owner(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|about| about.uid())
}

/// The pools in a program's answer.
fn parsed(pid: u32, text: &str) -> Result<Pools, Failure> {
    let garbled =
        || Failure::measured(format!("process {pid} shows its pools, but its answer is garbled"));
    let told: Value = serde_json::from_str(text).map_err(|_| garbled())?;
    let version = told["antiphon_look"].as_u64().ok_or_else(garbled)?;
    if version != u64::from(VERSION) {
        return Err(Failure::missing(format!(
            "process {pid} shows its pools by version {version} of the protocol, and this antiphon \
             reads version {VERSION}; use the one that the program was built with"
        )));
    }
    let answer = Answer::deserialize(&told).map_err(|_| garbled())?;
    match answer.error {
        Some(error) if error.contains("another user") => Err(Failure::missing(format!(
            "process {pid} belongs to another user; as root: sudo antiphon top {pid}"
        ))),
        Some(error) => Err(Failure::measured(format!("process {pid} says: {error}"))),
        None => Ok(Pools { told: told["pools"].clone(), pools: answer.pools }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_refused() {
        let newer = r#"{"antiphon_look":2,"pools":[]}"#;
        let denied = r#"{"antiphon_look":1,"error":"this program belongs to another user"}"#;
        for (text, words) in [
            ("", "garbled"),
            ("[]", "garbled"),
            ("{\"antiphon_look\":1,\"pools\":[{}]}", "garbled"),
            (newer, "version 2"),
            (denied, "sudo antiphon top 7"),
            (r#"{"antiphon_look":1,"error":"no"}"#, "says: no"),
        ] {
            let said = parsed(7, text).err().expect("no look").into_message();
            assert!(said.contains(words), "{text}: {said}");
        }
        assert!(parsed(7, r#"{"antiphon_look":1,"pid":7,"pools":[]}"#).is_ok());
    }

    /// A program of an earlier version reports less, and a pool may record nothing.
    #[test]
    fn what_is_not_told_is_no_error() {
        let pool = |more: &str| {
            let text = format!(
                r#"{{"antiphon_look":1,"pid":7,"pools":[{{"name":"old","threads":1,"spares":0,
                "workers":[],"shared":0,"policy_has_tasks":false,"tasks":0,"steals":0,"hogs":0,
                "longest_ns":0,"fibers":false,"hosts":[],"places":[]{more}}}]}}"#
            );
            let mut pools = parsed(7, &text).map_err(Failure::into_message).expect("a pool").pools;
            pools.remove(0)
        };
        assert!(pool("").latency.is_none());
        let off = pool(r#","latest_hogs":[],"latency":null"#);
        assert!(matches!(off.latency, Some(None)));
    }
}
