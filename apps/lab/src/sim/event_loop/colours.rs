//! `--case colours`: one program whose events have several colours, with a loop on each core.
//!
//! Each colour is a chain: an event that computes, and is called again. All chains begin on the
//! first loop; other loops steal whole colours from it. Each loop also has a timer.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_report::failure::Failure;
use antiphon_report::stats::jain;
use antiphon_report::table::{Cell, Table, si};
use antiphon_runtime::event_loop::{Colours, Event, EventLoop, Options, Step};
use antiphon_sim::{Machine, Simulation, Stuck, now, work};
use serde_json::{Value, json};

use super::bed::Bed;
use crate::compete::tardiness::Tardiness;
use crate::sim::report::{row, trace};

/// Name of the case in its rows.
pub const NAME: &str = "colours";
pub const ABOUT: &str =
    "one program: chains of events of 20 µs, each of a colour, on loops with a timer each ms";

/// Work of an event and of a timer, and the period of timers.
const EVENT_NS: u64 = 20_000;
const TIMER_NS: u64 = 5_000;
const PERIOD_NS: u64 = 1_000_000;
/// Time at the beginning that does not count.
const WARM_NS: u64 = 5_000_000;
/// Simulated time that no run reaches.
const LONG_NS: u64 = 1_000_000_000_000;

/// The setting of a run: a number of colours on a number of cores.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    pub machine: &'a Machine,
    pub seed: u64,
    pub cores: usize,
    pub colours: usize,
    pub counted_ns: u64,
}

/// The result of a run. All times are simulated.
pub struct Row {
    pub cores: usize,
    pub colours: usize,
    pub ops_per_s: f64,
    pub tardiness: Tardiness,
    /// Jain's index of events over colours.
    pub jain: f64,
    pub remote_per_op: f64,
    trace: u64,
}

/// The counts that events keep. They take no simulated time.
struct Tally {
    called: Vec<AtomicU64>,
    open: AtomicU64,
    count_ns: u64,
    end_ns: u64,
}

impl Tally {
    /// Submits the chain of a colour; when the last chain ends, it stops all loops.
    fn submit(tally: &Arc<Self>, all: &Colours<Bed>, number: usize, loops: usize) {
        let (tally, events) = (tally.clone(), all.clone());
        // A multiple, so that all chains begin on the first loop.
        let colour = (number * loops) as u64;
        all.submit_in_steps(colour, 0, move |_| {
            work(EVENT_NS);
            let now_ns = now();
            if (tally.count_ns..tally.end_ns).contains(&now_ns) {
                tally.called[number].fetch_add(1, Relaxed);
            }
            if now_ns < tally.end_ns {
                return Some(0);
            }
            if tally.open.fetch_sub(1, Relaxed) == 1 {
                events.stop();
            }
            None
        });
    }
}

/// Runs the loop of a core. Returns the tardiness of its timers.
fn serve(tally: &Arc<Tally>, all: &Colours<Bed>, number: usize, loops: usize) -> Vec<u64> {
    let mut events = EventLoop::new(Bed::new(), Options::default());
    all.join(number, &mut events);
    let late = Rc::new(RefCell::new(Vec::new()));
    let (noted, count_ns) = (late.clone(), tally.count_ns);
    // The timers of different loops are out of phase.
    let first_ns = PERIOD_NS * (number as u64 + 1) / loops as u64;
    events.submit(Event::timer_in_steps(first_ns, move |context| {
        let release_ns = context.release_ns().unwrap_or_default();
        if release_ns >= count_ns {
            noted.borrow_mut().extend(context.tardiness_ns());
        }
        work(TIMER_NS);
        Step::At(release_ns + PERIOD_NS)
    }));
    if number == 0 {
        (0..tally.called.len()).for_each(|colour| Tally::submit(tally, all, colour, loops));
    }
    // The loop ends because it is stopped.
    let _ = events.run();
    drop(events);
    late.take()
}

impl Row {
    /// Simulates this setting.
    ///
    /// # Errors
    ///
    /// If the threads deadlock.
    pub fn of(setting: &Setting<'_>) -> Result<Self, Failure> {
        simulate(setting).map_err(|stuck| Failure::measured(format!("{NAME}: {stuck}")))
    }

    /// Returns the object for scripts.
    pub fn object(&self, machine: &Machine) -> Value {
        let keys = json!({
            "case": NAME, "colours": self.colours, "ops_per_s": self.ops_per_s,
            "tardiness_us": self.tardiness.json(), "jain_colours": self.jain,
            "remote_transfers_per_op": self.remote_per_op, "trace": trace(self.trace),
        });
        row(machine, NAME, self.cores, keys)
    }
}

fn simulate(setting: &Setting<'_>) -> Result<Row, Stuck> {
    let &Setting { machine, seed, cores, colours, counted_ns } = setting;
    let tally = Arc::new(Tally {
        called: (0..colours).map(|_| AtomicU64::new(0)).collect(),
        open: AtomicU64::new(colours as u64),
        count_ns: WARM_NS,
        end_ns: WARM_NS + counted_ns,
    });
    let (all, late) = (Colours::<Bed>::new(cores), Rc::new(RefCell::new(Vec::new())));
    let mut simulation = Simulation::new(machine.clone(), seed).grace_ns(LONG_NS);
    for number in 0..cores {
        let (tally, all, late) = (tally.clone(), all.clone(), late.clone());
        simulation = simulation.thread_on(number as u32, move || {
            let mine = serve(&tally, &all, number, cores);
            late.borrow_mut().extend(mine);
        });
    }
    let outcome = simulation.run(0)?;
    let called = || tally.called.iter().map(|count| count.load(Relaxed));
    let ops = called().sum::<u64>() as f64;
    Ok(Row {
        cores,
        colours,
        ops_per_s: ops * 1e9 / counted_ns as f64,
        tardiness: Tardiness::of(&late.take()),
        jain: jain(called()).unwrap_or(0.0),
        remote_per_op: outcome.counts.remote_transfers as f64 / ops.max(1.0),
        trace: outcome.trace_hash,
    })
}

const RULE: &str = "\
events/s   called; the rest is as above: of timers, and Jain's index of events over colours
far        lines from another socket, an event
";

/// Returns the table for people.
pub fn text(rows: &[Row], colour: bool) -> String {
    let us = |us: f64| Cell::number(format!("{us:.0}"));
    let table = Table::of(
        rows,
        &[
            (">cores", &|row| Cell::number(row.cores.to_string())),
            (">colours", &|row| Cell::number(row.colours.to_string())),
            (">events/s", &|row| Cell::number(si(row.ops_per_s))),
            (">p50", &|row| us(row.tardiness.p50_us)),
            (">p99", &|row| us(row.tardiness.p99_us)),
            (">max", &|row| us(row.tardiness.max_us)),
            (">jain", &|row| Cell::number(format!("{:.3}", row.jain))),
            (">far", &|row| Cell::number(format!("{:.2}", row.remote_per_op))),
        ],
    );
    format!("{NAME}: {ABOUT}\n{}\n{RULE}", table.render(colour))
}
