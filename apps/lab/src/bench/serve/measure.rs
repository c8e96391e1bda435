//! One repetition: starts a server, and measures its clients.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use serde::{Deserialize, Serialize};

use super::cases::{Cell, Loader};
use super::child::Server;
use super::client::{Client, Exchange, Schedule, Seen};
use super::{servers, wrk};
use crate::bench::rounds::Outcome;
use crate::compete::work::{now_ns, sleep_until};
use crate::named::Named as _;

/// The order for one repetition.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// Name of the server.
    pub subject: String,
    /// The conditions.
    pub cell: Cell,
    /// Size of a message, in bytes.
    pub bytes: usize,
    /// Number of client threads.
    pub clients: usize,
    /// The program that sends requests.
    pub loader: Loader,
    /// Measured time, in seconds.
    pub seconds: f64,
    /// Path of the server, if it is another program.
    pub program: PathBuf,
}

/// The figures of a repetition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// Answers per second.
    pub ops_per_s: f64,
    /// Median of the latencies.
    pub p50_ns: f64,
    /// 99th percentile of the latencies.
    pub p99_ns: f64,
    /// CPU time of all threads of the server per answer, including kernel time.
    pub server_cpu_ns_per_op: f64,
}

/// Warm-up, which is not measured: at most this many seconds, and this share of the measured time.
const WARM_S: f64 = 0.2;
const WARM: f64 = 0.25;
/// Time from when all connections are open to the first request, in nanoseconds.
const BEGIN_NS: u64 = 2_000_000;

/// Runs one repetition.
///
/// # Errors
///
/// If the server is unknown.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    more_files();
    Ok(figures(order).map_or_else(Outcome::Violation, Outcome::Figures))
}

fn figures(order: &Order) -> Result<Figures, String> {
    let Order { cell, bytes, seconds, .. } = order;
    let server = Server::start(command(order)?)?;
    if order.loader == Loader::Wrk {
        return by_wrk(order, &server);
    }
    // A thread without a connection would have nothing to do.
    let threads = order.clients.min(cell.connections);
    let clients: Result<Vec<_>, _> = (0..threads)
        .map(|thread| {
            let exchange = Exchange::of(cell.case, *bytes, server.address)?;
            let count = (cell.connections + thread) / threads;
            let opened = Client::open(exchange, count, server.address);
            opened.map_err(|error| format!("can't open {count} connections: {error}"))
        })
        .collect();
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    let begin_ns = now_ns() + BEGIN_NS;
    let count_ns = begin_ns + ns((seconds * WARM).min(WARM_S));
    let end_ns = count_ns + ns(*seconds);
    // The rate is divided among the threads, whose requests alternate regularly.
    let gap_ns = cell.rate.map(|rate| 1e9 * threads as f64 / f64::from(rate));
    let schedule = |thread: usize| {
        let part = gap_ns.map_or(0.0, |gap_ns| gap_ns * thread as f64 / threads as f64);
        Schedule { begin_ns: begin_ns + part as u64, count_ns, end_ns, gap_ns }
    };
    let (cpu_ns, seen) = thread::scope(|scope| {
        let clients = clients?
            .into_iter()
            .enumerate()
            .map(|(thread, mut client)| scope.spawn(move || client.run(schedule(thread))));
        let clients: Vec<_> = clients.collect();
        sleep_until(count_ns);
        let before = server.cpu_ns()?;
        sleep_until(end_ns);
        let cpu_ns = server.cpu_ns()? - before;
        let mut all = Seen::default();
        for client in clients {
            let seen = client.join().expect("no client panics");
            let seen = seen.map_err(|error| format!("a connection: {error}"))?;
            all.answers += seen.answers;
            all.latencies.merge(&seen.latencies);
        }
        Ok::<_, String>((cpu_ns, all))
    })?;
    if seen.answers == 0 {
        return Err("no answer in that time; give it more --seconds".to_owned());
    }
    Ok(Figures {
        ops_per_s: seen.answers as f64 / seconds,
        p50_ns: seen.latencies.quantile(0.5),
        p99_ns: seen.latencies.quantile(0.99),
        server_cpu_ns_per_op: cpu_ns as f64 / seen.answers as f64,
    })
}

/// Measures by `wrk`, which counts from the first request on.
fn by_wrk(order: &Order, server: &Server) -> Result<Figures, String> {
    let Order { cell, clients, seconds, .. } = order;
    let before = server.cpu_ns()?;
    let said = wrk::ask(server.address, *clients, cell.connections, *seconds as u64)?;
    let cpu_ns = server.cpu_ns()? - before;
    if said.answers == 0.0 {
        return Err("no answer in that time; give it more --seconds".to_owned());
    }
    Ok(Figures {
        ops_per_s: said.ops_per_s,
        p50_ns: said.p50_ns,
        p99_ns: said.p99_ns,
        server_cpu_ns_per_op: cpu_ns as f64 / said.answers,
    })
}

/// Returns the command that starts the server.
fn command(order: &Order) -> Result<Command, String> {
    let Order { subject, cell, program, .. } = order;
    if subject == servers::GO {
        let mut command = Command::new(program);
        command.args([cell.case.name(), cell.workers.to_string()]);
        return Ok(command);
    }
    let rings = if subject == servers::URING { "1" } else { "0" };
    let (subject, case, workers) = (subject.clone(), cell.case, cell.workers);
    let order = crate::bench::Order::Server(servers::Order { subject, case, workers });
    let order = serde_json::to_string(&order).map_err(|error| error.to_string())?;
    let mut command = Command::new("/proc/self/exe");
    command.args([crate::bench::REPETITION, &order]).env("ANTIPHON_IO_URING", rings);
    Ok(command)
}

/// Raises this process's limit of open files, and so the server's, as far as permitted.
fn more_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a local variable.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is a local variable. If the call is refused, the limit stays as it was.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}
