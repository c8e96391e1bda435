//! `bench serve`: the cost of a request to servers that have a fiber, a task or a thread for each
//! connection.
//!
//! ```text
//!   bench ──► a repetition: the clients ──► the server, a process of its own
//!                 epoll, threads   ◄── TCP, loopback ──►   N connections
//! ```
//!
//! | module | does |
//! |---|---|
//! | [`cases`] | cases and conditions |
//! | [`servers`] | the servers |
//! | [`child`] | a server as a process: its port, its CPU time, its end |
//! | [`client`] | the sender of requests, and its schedule |
//! | [`wrk`] | requests by a well-known load generator |
//! | [`measure`] | one repetition |
//! | [`rows`] | the values of a row, and its columns |

mod cases;
mod child;
mod client;
mod measure;
mod rows;
mod servers;
mod wrk;

use std::process::ExitCode;

use clap::Args;

pub use measure::{Order, measure};
pub use servers::{Order as ServerOrder, serve};

use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;

use super::benchmark;
use super::pools::built::{Built, Language, program_of};
use super::repeat::repeat;
use super::rounds::{Measurement, Outcome, Repeated, Rounds};
use super::settings::{Settings, check_seconds};
use crate::every::every;
use crate::named::Cases;
use cases::{Case, Cell, Loader, Rates};
use measure::Figures;

/// Servers: measure the cost and the latency of requests over many connections
#[derive(Args)]
#[command(after_help = "\
Server and clients are separate processes on the same machine, connected by the loopback device; the
first repetition is discarded. A connection waits for each answer before it sends again; with
--rate, it sends at given times, from which latencies count. A ratio is the median of the ratios of
paired repetitions, with its 95 % interval.

Example:
  antiphon bench serve --connections 100 --workers 2 --against tokio,go")]
pub struct Arguments {
    /// Kinds of requests: echo (a message of --bytes, sent back), http (GET over a kept connection)
    #[arg(long, value_name = "LIST", default_value = "echo")]
    case: Cases<Case>,
    /// Numbers of connections, all open at once
    #[arg(long, value_name = "LIST", default_value = "1,100,1000")]
    connections: Counts,
    /// Requests per second over all connections; with 0, each connection sends when it has its
    /// answer
    #[arg(long, value_name = "LIST", default_value = "0")]
    rate: Rates,
    /// Numbers of server threads
    #[arg(long, value_name = "LIST", default_value = "2")]
    workers: Counts,
    /// Number of client threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    clients: usize,
    /// Program that sends the requests
    #[arg(long, value_name = "NAME", default_value = "own")]
    loader: Loader,
    /// Size of a message in bytes, in the case echo
    #[arg(long, value_name = "N", default_value_t = 64)]
    bytes: usize,
    /// Our servers: fibers (a fiber for each connection, by epoll), fibers-uring (by io_uring)
    #[arg(long, value_name = "LIST", default_value = "fibers")]
    subject: String,
    /// Peers to compare with; ratios are to the first. threads has a thread for each connection,
    /// whatever --workers says
    #[arg(long, value_name = "LIST", default_value = "tokio,go,may,threads")]
    against: String,
    /// Length of each repetition, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.5, allow_negative_numbers = true)]
    seconds: f64,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    seconds: f64,
    clients: usize,
    loader: Loader,
    bytes: usize,
    /// The Go server, or why it is missing; `None` if it does not take part.
    go: Option<Result<Built, String>>,
}

/// Maximal size of a message, and maximal number of client threads.
const MOST_BYTES: usize = 1 << 20;
const MOST_CLIENTS: usize = 64;

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments, or a server that does not answer.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    benchmark::run(&plan(arguments)?, &arguments.settings)
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let Arguments { case, connections, rate, workers, clients, bytes, .. } = arguments;
    let Arguments { subject, against, seconds, settings, .. } = arguments;
    check_seconds(*seconds)?;
    if !(1..=MOST_BYTES).contains(bytes) {
        let wanted = format!("--bytes takes a number from 1 to {MOST_BYTES}, such as 64");
        return Err(Failure::arguments(wanted));
    }
    if !(1..=MOST_CLIENTS).contains(clients) {
        let wanted = format!("--clients takes a number from 1 to {MOST_CLIENTS}, such as 1");
        return Err(Failure::arguments(wanted));
    }
    if arguments.loader == Loader::Wrk {
        check_wrk(arguments)?;
    }
    let (ours, peers) = (servers::OURS, servers::PEERS);
    let rounds = settings.rounds("server", (subject, ours), (against, peers))?;
    if rounds.subjects == [servers::URING]
        && let Some(missing) = servers::no_rings()
    {
        return Err(Failure::missing(missing));
    }
    let cells = every!(
        load in &settings.load, case in &case.0, rate in &rate.0,
        connections in &connections.0, workers in &workers.0
        => Cell { load, case, rate, connections, workers }
    );
    let go = rounds.peers.contains(&servers::GO);
    let go = go.then(|| Built::of("serve", Language::Go, &[servers::GO_SOURCE])).transpose()?;
    let (seconds, clients, bytes) = (*seconds, *clients, *bytes);
    Ok(Plan { cells, rounds, seconds, clients, loader: arguments.loader, bytes, go })
}

/// Refuses settings that `wrk` does not support.
fn check_wrk(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { case, connections, rate, clients, seconds, .. } = arguments;
    if case.0 != [Case::Http] {
        return Err(Failure::arguments("--loader wrk sends only HTTP requests: add --case http"));
    }
    if rate.0 != [None] {
        return Err(Failure::arguments("wrk has no rate: leave --rate out, or --loader"));
    }
    if *seconds < 1.0 || seconds.fract() != 0.0 {
        return Err(Failure::arguments("wrk runs for whole seconds: give --seconds 2, say"));
    }
    if connections.0.iter().any(|connections| connections < clients) {
        return Err(Failure::arguments("wrk has a connection for each of its threads (--clients)"));
    }
    wrk::is_there()
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        let program = match program_of(self.go.as_ref().filter(|_| subject == servers::GO)) {
            Ok(program) => program,
            Err(missing) => return Ok(Outcome::Missing(missing)),
        };
        if subject == servers::URING
            && let Some(missing) = servers::no_rings()
        {
            return Ok(Outcome::Missing(missing));
        }
        let order = Order {
            subject: subject.to_owned(),
            cell,
            bytes: self.bytes,
            clients: self.clients,
            loader: self.loader,
            seconds: self.seconds,
            program,
        };
        repeat(&super::Order::Serve(order), self.seconds)
    }
}
