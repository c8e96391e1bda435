//! An X server that shows frames on time under a high load: figure 11 of Krasic, Saubhasik, Sinha
//! and Goel, "Fair and Timely Scheduling via Cooperative Polling" (EuroSys 2009).
//!
//! ```sh
//! cargo build --release -p antiphon-cli
//! cargo run --release -p antiphon-player --example x_server -- --rounds 6
//! ```
//!
//! Xvfb runs on one CPU, beside hogs. Clients on the other CPUs keep it busy with copies, which are
//! its best-effort work. One client makes it show 60 frames per second: by `XSyncAwait`, so that
//! the server keeps the time, or by the client's own timer, on the server's CPU.
//!
//! After each frame the client sets a counter of the server's. A thread with a separate connection,
//! on another CPU, with real-time priority if that is permitted, is notified when the server has
//! done so: how late that is, by the clock, is the frame's tardiness. It includes the server's work
//! on the frame, and the delivery of the event.
//!
//! | file | contents |
//! |---|---|
//! | `server` | Xvfb, with `antiphon run --coop` or without; hogs |
//! | `load` | clients that keep it busy |
//! | `frames` | the client that shows frames |
//! | `watch` | the thread that is notified |

mod frames;
mod load;
mod server;
mod watch;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_coop::{Domain, DomainOptions};
use serde_json::{Value, json};

use frames::{Way, display};
use server::{Hogs, Server};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The options of the example.
pub struct Options {
    /// How many seconds each scheme shows frames in a round.
    seconds: u64,
    /// Number of rounds.
    rounds: u64,
    /// Number of clients that keep the server busy.
    clients: usize,
    /// Number of programs that compete for the server's CPU.
    hogs: usize,
    /// The server's CPU.
    cpu: u32,
    /// A text that the name of a scheme must contain.
    scheme: String,
    /// Whether to print a JSON object instead of a table.
    json: bool,
}

const USAGE: &str = "x_server [--seconds S] [--rounds N] [--clients N] [--hogs N] [--cpu N] \
    [--scheme TEXT] [--json]";

/// Frames per second.
pub const RATE: u64 = 60;

/// The way in which the server and the client that shows frames are on time.
struct Scheme {
    name: &'static str,
    /// The tier of `antiphon run --coop`, if the server runs under that.
    server: Option<&'static str>,
    way: Way,
}

const SCHEMES: [Scheme; 5] = [
    Scheme { name: "plain, XSyncAwait", server: None, way: Way::Await },
    Scheme { name: "--coop t3, XSyncAwait", server: Some("t3"), way: Way::Await },
    Scheme { name: "--coop auto, XSyncAwait", server: Some("auto"), way: Way::Await },
    Scheme { name: "plain, client's timer", server: None, way: Way::Timer { joins: false } },
    Scheme {
        name: "--coop auto, client's timer",
        server: Some("auto"),
        way: Way::Timer { joins: true },
    },
];

/// The monotonic clock, in nanoseconds.
pub fn now() -> u64 {
    antiphon_coop::event_loop::now_ns()
}

fn options() -> Result<Options> {
    let cpu = *antiphon_linux::allowed().last().ok_or("no CPU may be used")?;
    let mut options = Options {
        seconds: 10,
        rounds: 3,
        clients: 2,
        hogs: 4,
        cpu,
        scheme: String::new(),
        json: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--json" {
            options.json = true;
            continue;
        }
        let value = words.next().unwrap_or_default();
        if word == "--scheme" {
            options.scheme = value;
            continue;
        }
        let number = value.parse::<u32>().ok();
        match (&*word, number) {
            ("--seconds", Some(seconds)) if seconds > 0 => options.seconds = seconds.into(),
            ("--rounds", Some(rounds)) if rounds > 0 => options.rounds = rounds.into(),
            ("--clients", Some(clients)) => options.clients = clients as usize,
            ("--hogs", Some(hogs)) => options.hogs = hogs as usize,
            ("--cpu", Some(cpu)) if antiphon_linux::allowed().contains(&cpu) => options.cpu = cpu,
            _ => return Err(format!("{word} {value}: {USAGE}").into()),
        }
    }
    if schemes(&options).is_empty() {
        let names = SCHEMES.map(|scheme| scheme.name).join("; ");
        return Err(
            format!("--scheme {}: none has that in its name: {names}", options.scheme).into()
        );
    }
    Ok(options)
}

/// The schemes that were requested.
fn schemes(options: &Options) -> Vec<&'static Scheme> {
    SCHEMES.iter().filter(|scheme| scheme.name.contains(&options.scheme)).collect()
}

/// Checks that the schemes can be measured here; the error names, in one line, what is missing.
fn check(schemes: &[&Scheme]) -> Result<()> {
    if antiphon_linux::allowed().len() < 2 {
        return Err("two CPUs are needed: one for the server, one for the watcher".into());
    }
    server::check(schemes)
}

/// The figures of a scheme, over all rounds.
#[derive(Default)]
struct Seen {
    /// Tardiness of the frames, in nanoseconds.
    late_ns: Vec<u64>,
    rounded_ns: u64,
    copies: u64,
    first: bool,
}

/// Runs one round of a scheme.
fn measure(options: &Options, scheme: &Scheme, seen: &mut Seen) -> Result<()> {
    let domain = Domain::private(DomainOptions::on(options.cpu))?;
    let name = domain.private_name().ok_or("it is private")?;
    let server = Server::start(options.cpu, scheme.server, &name)?;
    let _hogs = Hogs::start(options.hogs, options.cpu)?;
    let allowed = antiphon_linux::allowed();
    let aside = allowed.into_iter().find(|&cpu| cpu != options.cpu).ok_or("no other CPU")?;
    let stop = Arc::new(AtomicBool::new(false));
    let loads: Vec<_> = (0..options.clients)
        .map(|at| load::start(server.display.clone(), at, aside, Arc::clone(&stop)))
        .collect();
    let shown = display(&server.display, options, scheme.way, &name, aside);
    stop.store(true, Relaxed);
    seen.copies += loads.into_iter().map(|load| load.join().unwrap_or(0)).sum::<u64>();
    let shown = shown?;
    seen.late_ns.extend(shown.late_ns);
    seen.rounded_ns = shown.rounded_ns;
    seen.first = shown.first;
    Ok(())
}

/// The row of a scheme.
fn row(options: &Options, scheme: &Scheme, mut seen: Seen) -> Value {
    let late_ns = &mut seen.late_ns;
    late_ns.sort_unstable();
    let at = |part: f64| {
        let rank = (late_ns.len() as f64 * part).ceil() as usize;
        late_ns.get(rank.max(1) - 1).map(|&ns| ns as f64 / 1e6)
    };
    let within = late_ns.iter().filter(|&&ns| ns <= 1_000_000).count();
    json!({
        "scheme": scheme.name,
        "frames": late_ns.len(),
        "tardiness_ms": { "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0) },
        "within_1_ms": within as f64 / late_ns.len().max(1) as f64,
        "whole_ms_add_ms": seen.rounded_ns as f64 / 1e6,
        "copies_per_s": seen.copies / (options.seconds * options.rounds),
        "watcher_first": seen.first,
    })
}

fn table(options: &Options, rows: &[Value]) {
    let Options { seconds, rounds, clients, hogs, cpu, .. } = options;
    println!(
        "{rounds} rounds of {seconds} s each, {clients} clients, {hogs} hogs, CPU {cpu}, {RATE} \
         Hz; tardiness in ms"
    );
    println!(
        "{:<28} {:>7} {:>7} {:>7} {:>7} {:>8} {:>9} {:>7} {:>8}",
        "server, release by", "frames", "p50", "p90", "p99", "max", "≤ 1 ms", "+", "copies/s"
    );
    for row in rows {
        let ms = |key: &str| row["tardiness_ms"][key].as_f64().unwrap_or(f64::NAN);
        println!(
            "{:<28} {:>7} {:>7.2} {:>7.2} {:>7.2} {:>8.2} {:>7.1} % {:>7.2} {:>8}",
            row["scheme"].as_str().unwrap_or_default(),
            row["frames"].to_string(),
            ms("p50"),
            ms("p90"),
            ms("p99"),
            ms("max"),
            row["within_1_ms"].as_f64().unwrap_or(0.0) * 100.0,
            row["whole_ms_add_ms"].as_f64().unwrap_or(0.0),
            row["copies_per_s"].to_string()
        );
    }
    println!("+ is what a frame waits longer on average because XSyncAwait knows whole ms only");
    if rows.iter().any(|row| row["watcher_first"] == false) {
        println!("the watcher was not first in line: no real-time rights");
    }
}

fn run(options: &Options, schemes: &[&Scheme]) -> Result<()> {
    let mut seen: Vec<_> = schemes.iter().map(|_| Seen::default()).collect();
    // Schemes alternate, because the other load of the machine changes.
    for round in 0..options.rounds {
        for (scheme, seen) in schemes.iter().zip(&mut seen) {
            eprintln!("round {}: {}", round + 1, scheme.name);
            measure(options, scheme, seen)?;
        }
    }
    let rows: Vec<_> =
        schemes.iter().zip(seen).map(|(scheme, seen)| row(options, scheme, seen)).collect();
    if options.json {
        let report = json!({
            "rows": rows, "rounds": options.rounds, "seconds": options.seconds,
            "clients": options.clients, "hogs": options.hogs, "cpu": options.cpu, "hz": RATE,
        });
        println!("{report:#}");
    } else {
        table(options, &rows);
    }
    Ok(())
}

fn main() -> ExitCode {
    if server::is_hog() {
        server::hog();
    }
    let fails = |code: u8, why| {
        eprintln!("x_server: {why}");
        ExitCode::from(code)
    };
    let options = match options() {
        Ok(options) => options,
        Err(why) => return fails(2, why),
    };
    let schemes = schemes(&options);
    if let Err(why) = check(&schemes) {
        return fails(69, why);
    }
    match run(&options, &schemes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fails(1, why),
    }
}
