//! `sim memory`: the memory that the locks of ten million inodes take.
//!
//! A lock that has all it needs from the start, or that needs nothing per socket, takes its size
//! times the number of inodes. CST allocates a structure for each socket that uses the lock, so
//! their number is counted on a simulated machine, with fewer inodes, and scaled up.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use antiphon_linux::Linux;
use antiphon_platform::{Platform as _, Waiter};
use antiphon_rivals::cst::CstMutex;
use antiphon_rivals::numa::CTktMcs;
use antiphon_rivals::stock::LinuxMutex;
use antiphon_sim::{Machine, OwnLine, Sim, Simulation, work};
use antiphon_sync::lock::ShflMutex;
use clap::Args;
use serde_json::{Value, json};

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::machine;
use antiphon_report::page;
use antiphon_report::page::bars::{Bar, drawing};
use antiphon_report::page::escape;
use antiphon_report::table::{Cell as Field, Table, colour_stdout, count, si};
use antiphon_report::words::{noun, several};

use super::report::{heading, print};

/// Memory: compute the memory of the locks of many inodes, for a lock with a part for each socket,
/// CST, the kernel's mutex and ours
#[derive(Args)]
#[command(after_help = "\
All CPUs of a simulated machine create files in one directory, each with a lock, and take locks of
existing files. The sizes are those of the locks on Linux; the number of structures that CST makes
for sockets is counted in the simulation, with some thousand inodes, and scaled up to all.

Example:
  antiphon sim memory
  antiphon sim memory --visits 8 --html memory.html")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "8s-192c")]
    machine: String,
    /// Number of inodes, each with a lock
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    inodes: u64,
    /// Average number of acquisitions of each inode's lock after its creation, by any CPU; at most
    /// 64
    #[arg(long, value_name = "N", default_value_t = 0)]
    visits: u32,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also write the bars to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Memory of the application that owns these files. Source: `000_…`, "Locks performance: Memory
/// footprint".
const APPLICATION_BYTES: f64 = 32e9;
/// Number of structures that a simulation has nodes for, with a margin.
const STRUCTURES: usize = 20_000;
/// Simulated nanoseconds that no such run reaches.
const LIMIT_NS: u64 = 60_000_000_000;

/// Simulates, and prints the results.
///
/// # Errors
///
/// Bad arguments; a simulation that does not end; if the page or stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { inodes, visits, seed, .. } = *arguments;
    if inodes == 0 {
        return Err(Failure::arguments("--inodes takes a number from 1, such as 10000000"));
    }
    if visits > 64 {
        return Err(Failure::arguments("--visits takes a number up to 64, such as 8"));
    }
    let machine = machine::named(&arguments.machine)?.described.machine;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let counted = Counted::on(&machine, visits, seed)?;
    let rows = rows(&machine, inodes, &counted);
    let conditions = format!(
        "{} {}, {} to each, seed {seed};\nstructures counted with {} {}",
        count(inodes),
        noun(inodes, "inode"),
        several(visits.into(), "visit"),
        count(counted.inodes as u64),
        noun(counted.inodes as u64, "inode")
    );
    let heading = heading(&machine, &conditions);
    let body = || {
        json!({
            "simulated": {
                "machine": machine.name, "seed": seed, "visits": visits,
                "counted_inodes": counted.inodes,
            },
            "inodes": inodes, "rows": rows.iter().map(Row::object).collect::<Vec<_>>(),
        })
    };
    let text = || format!("{heading}\n\n{}", text(&rows, colour_stdout()));
    print(arguments.json, (html, || page(&heading, &rows)), body, text)
}

/// The counts of a simulation with CST.
pub struct Counted {
    /// Number of simulated inodes.
    pub inodes: usize,
    /// Number of structures for sockets that their locks had made at the end, in total.
    pub of_inodes: usize,
    /// Number of structures for sockets that the directory's lock had made.
    pub of_directory: usize,
}

impl Counted {
    /// Simulates all CPUs creating files in a directory, each under the directory's lock and then
    /// its own; then they take locks of random files, `visits` times as many as there are files.
    ///
    /// # Errors
    ///
    /// If that does not end, which is a defect.
    pub fn on(machine: &Machine, visits: u32, seed: u64) -> Result<Self, Failure> {
        let inodes = STRUCTURES / machine.topology.nodes() as usize;
        let cpus = machine.cores() as usize;
        let site = Rc::new(Site {
            directory: free(),
            inodes: (0..inodes).map(|_| free()).collect(),
            created: Cell::new(0),
            visits: Cell::new(inodes * visits as usize),
            over: Cell::new(0),
            counted: Cell::new((0, 0)),
        });
        let shared = Rc::clone(&site);
        let simulation = Simulation::new(machine.clone(), seed);
        let outcome = simulation.threads(cpus, move |_| shared.work(cpus)).run(LIMIT_NS);
        let _ = outcome.map_err(Failure::measured)?;
        let (of_inodes, of_directory) = site.counted.get();
        Ok(Self { inodes, of_inodes, of_directory })
    }

    /// Returns the average number of structures per inode.
    pub fn each(&self) -> f64 {
        self.of_inodes as f64 / self.inodes as f64
    }
}

/// Not dropped: what a lock has made belongs to the simulation, and is freed with it.
type Mutex = ManuallyDrop<OwnLine<CstMutex<Sim>>>;

fn free() -> Mutex {
    ManuallyDrop::new(OwnLine(CstMutex::NEW))
}

/// A directory and its files. What is in a [`Cell`] takes no simulated time.
struct Site {
    directory: Mutex,
    inodes: Vec<Mutex>,
    created: Cell<usize>,
    /// Number of visits that are left.
    visits: Cell<usize>,
    over: Cell<usize>,
    counted: Cell<(usize, usize)>,
}

impl Site {
    /// The work of each of `threads` threads.
    fn work(&self, threads: usize) {
        while let Some(inode) = self.inodes.get(self.created.replace(self.created.get() + 1)) {
            Self::takes(&self.directory, 1_500);
            Self::takes(inode, 200);
            work(500);
        }
        while let Some(left) = self.visits.get().checked_sub(1) {
            self.visits.set(left);
            let inode = &self.inodes[Sim::random() as usize % self.inodes.len()];
            Self::takes(inode, 200);
            work(500);
        }
        self.over.set(self.over.get() + 1);
        if self.over.get() == threads {
            // Inside the simulation, because the structures are part of it.
            let of_inodes = self.inodes.iter().map(|inode| inode.sockets()).sum();
            self.counted.set((of_inodes, self.directory.sockets()));
        }
    }

    /// Holds a lock for `ns` nanoseconds.
    fn takes(lock: &CstMutex<Sim>, ns: u64) {
        lock.lock();
        work(ns);
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    }
}

/// The figures of a lock, for all inodes and their directory.
pub struct Row {
    pub lock: &'static str,
    about: &'static str,
    /// Size of the lock in each inode, in bytes.
    size: usize,
    /// Bytes of structures made for sockets, per inode on average.
    structures: f64,
    /// Total memory in bytes.
    pub bytes: f64,
}

impl Row {
    /// Returns the memory as a share of the application's.
    fn share(&self) -> f64 {
        self.bytes / APPLICATION_BYTES
    }

    fn object(&self) -> Value {
        json!({
            "model": true, "lock": self.lock, "lock_bytes": self.size,
            "structures_per_lock": self.structures, "bytes": self.bytes.round(),
            "share": self.share(),
        })
    }
}

/// Returns the rows of the four locks, in the documents' order.
pub fn rows(machine: &Machine, inodes: u64, counted: &Counted) -> [Row; 4] {
    /// The two lines that CST makes for a socket.
    const STRUCTURE: usize = 2 * size_of::<Waiter<Linux>>();
    let sockets = machine.topology.nodes() as usize;
    let one = size_of::<CTktMcs<Linux, 1>>();
    let cohort = one + (sockets - 1) * (size_of::<CTktMcs<Linux, 2>>() - one);
    let fixed = |lock, about, size: usize| {
        let bytes = (inodes + 1) as f64 * size as f64;
        Row { lock, about, size, structures: 0.0, bytes }
    };
    let cst =
        fixed("cst-mutex", "a part for each socket that has come", size_of::<CstMutex<Linux>>());
    let made = inodes as f64 * counted.each() + counted.of_directory as f64;
    let cst = Row { structures: counted.each(), bytes: cst.bytes + made * STRUCTURE as f64, ..cst };
    [
        fixed("cohort-tkt-mcs", "a part for each socket from the start", cohort),
        cst,
        fixed("linux-mutex", "the kernel's", size_of::<LinuxMutex<Linux>>()),
        fixed("shfl-mutex", "ours", size_of::<ShflMutex<Linux>>()),
    ]
}

fn text(rows: &[Row], colour: bool) -> String {
    let mut table =
        Table::new(&["lock", ">bytes", ">structures", ">all, bytes", ">of 32 GB", "what it has"]);
    for row in rows {
        table.row(vec![
            Field::text(row.lock),
            Field::number(row.size.to_string()),
            Field::number(format!("{:.2}", row.structures)),
            Field::number(si(row.bytes)),
            Field::number(format!("{:.2} %", row.share() * 100.0)),
            Field::text(row.about),
        ]);
    }
    format!("{}\n{RULE}", table.render(colour))
}

const RULE: &str = "\
bytes        of a lock, in each inode
structures   made for sockets, 128 bytes each, for each inode on average
of 32 GB     the application's memory in the documents
A waiter's node, 64 bytes at most for each thread that waits, comes on top with all of them.
";

fn page(heading: &str, rows: &[Row]) -> String {
    let bar = |row: &Row| Bar {
        group: String::new(),
        name: row.lock.to_owned(),
        value: Some(row.bytes),
        about: format!("{}; {:.2} % of 32 GB", row.about, row.share() * 100.0),
    };
    let bars: Vec<_> = rows.iter().map(bar).collect();
    let share = |bytes: f64| format!("{}B, {:.2} %", si(bytes), bytes / APPLICATION_BYTES * 100.0);
    let body = format!(
        "<p>{}</p>\n<h2>Memory of locks</h2>\n<p class=faint>Bytes, and the share of an \
         application's 32 GB</p>\n{}",
        escape(heading),
        drawing(&bars, share),
    );
    page::with_tables("antiphon sim: memory of locks", &body, &text(rows, false))
}
