//! Measures the cost of observation: a program under `antiphon run`, with and without `--profile`,
//! compared to the same program with the same locks and no observer.
//!
//! ```sh
//! cargo build --release
//! cargo run --release -p antiphon-cli --example overhead -- [--pairs N] [CMD…]
//! ```
//!
//! Rounds of three runs in random order, the first round rejected; the ratios are within a round,
//! and the interval is that of `antiphon try`. Time is CMD's own, from its start to its end; CPU
//! time is that of CMD and, where CMD is observed, of the observer and the report.
//! Without CMD, this program runs its own contended case: four threads and one mutex, which each
//! thread holds for 5 µs and leaves alone for 5 µs.

use std::cell::UnsafeCell;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_report::stats::{Interval, Random, median};

/// The argument that makes this program run the contended case.
const CONTEND: &str = "--contend";
const THREADS: usize = 4;
const SECTIONS: usize = 25_000;
const SECTION: Duration = Duration::from_micros(5);

#[derive(Clone, Copy)]
enum Look {
    Nobody,
    Waits,
    All,
}

/// The command to run, and its environment.
struct Setting {
    antiphon: PathBuf,
    /// `LD_PRELOAD` as `antiphon run` sets it.
    preload: String,
    report: PathBuf,
    program: Vec<String>,
}

impl Setting {
    fn new(program: Vec<String>) -> Result<Self, Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let folder = own.parent().and_then(Path::parent).ok_or("where is this program?")?;
        let antiphon = folder.join("antiphon");
        if !antiphon.exists() {
            return Err(format!("{}: not built; cargo build --release", antiphon.display()).into());
        }
        let asked = Command::new(&antiphon).args(["run", "printenv", "LD_PRELOAD"]).output()?;
        let preload = String::from_utf8(asked.stdout)?.trim().to_owned();
        let report = std::env::temp_dir().join(format!("overhead-{}.json", std::process::id()));
        Ok(Self { antiphon, preload, report, program })
    }

    /// Seconds of one run, and of CPU time in it.
    fn time(&self, look: Look) -> Result<[f64; 2], Box<dyn Error>> {
        let mut command = match look {
            Look::Nobody => {
                let mut command = Command::new(&self.program[0]);
                command.args(&self.program[1..]).env("LD_PRELOAD", &self.preload);
                command
            }
            Look::Waits | Look::All => {
                let mut command = Command::new(&self.antiphon);
                command.args(["run", "--report"]).arg(&self.report);
                command.args(matches!(look, Look::All).then_some("--profile"));
                command.arg("--").args(&self.program);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (begun, cpu_before) = (Instant::now(), cpu_of_children());
        let status = command.status()?;
        let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_of_children() - cpu_before);
        if !status.success() {
            return Err(format!("{command:?} ended with {status}").into());
        }
        match look {
            Look::Nobody => Ok([seconds, cpu]),
            // The report's own time excludes the making of the report.
            Look::Waits | Look::All => {
                let report: serde_json::Value =
                    serde_json::from_slice(&std::fs::read(&self.report)?)?;
                let wall = report["wall_s"].as_f64().ok_or("a report without wall_s")?;
                Ok([wall, cpu])
            }
        }
    }
}

/// CPU time of children that have ended, in seconds.
fn cpu_of_children() -> f64 {
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: writes to our own memory. The call can't fail.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == CONTEND) {
        contend();
        return Ok(());
    }
    let mut pairs = 15;
    if arguments.first().is_some_and(|first| first == "--pairs") {
        pairs = arguments
            .get(1)
            .and_then(|n| n.parse().ok())
            .filter(|&n| n >= 6)
            .ok_or("--pairs N, from 6")?;
        arguments.drain(..2);
    }
    if arguments.is_empty() {
        arguments = vec![std::env::current_exe()?.display().to_string(), CONTEND.to_owned()];
    }
    let setting = Setting::new(arguments)?;
    let mut random = Random(1);
    let mut times: [Vec<[f64; 2]>; 3] = Default::default();
    for round in 0..=pairs {
        let mut order = [(0, Look::Nobody), (1, Look::Waits), (2, Look::All)];
        random.shuffle(&mut order);
        for (at, look) in order {
            let time = setting.time(look)?;
            if round > 0 {
                times[at].push(time);
            }
        }
    }
    // The file may be missing.
    let _ = std::fs::remove_file(&setting.report);
    let names = ["locks of ours, unobserved", "run", "run --profile"];
    for (what, of) in ["time", "CPU time"].iter().zip(0..) {
        println!("{what}");
        for (name, own) in names.iter().zip(&times) {
            print(name, own.iter().zip(&times[0]).map(|(own, base)| (own[of], base[of])).collect());
        }
    }
    Ok(())
}

/// Prints a line: the median of the first numbers, and of their ratios to the second.
fn print(name: &str, times: Vec<(f64, f64)>) {
    let middle = median(times.iter().map(|(own, _)| *own).collect()).unwrap_or(f64::NAN);
    let ratios = times.iter().map(|(own, base)| own / base).collect();
    if let Some(Interval { low95, median, high95 }) = Interval::of(ratios) {
        println!("{name:<26} {middle:8.3} s   {median:.3}×  (95 %: {low95:.3} to {high95:.3})");
    }
}

/// A mutex of the C library, shared by reference.
struct Shared(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only passed to `pthread_mutex_lock` and `_unlock`, which all threads may call.
unsafe impl Sync for Shared {}

/// Runs threads that hold one mutex for most of the time.
fn contend() {
    static MUTEX: Shared = Shared(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..SECTIONS {
                    // SAFETY: an initialised mutex that lives forever.
                    unsafe { libc::pthread_mutex_lock(MUTEX.0.get()) };
                    stay(SECTION);
                    // SAFETY: locked above.
                    unsafe { libc::pthread_mutex_unlock(MUTEX.0.get()) };
                    stay(SECTION);
                }
            });
        }
    });
}

fn stay(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}
