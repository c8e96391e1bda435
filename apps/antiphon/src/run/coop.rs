//! `run --coop`: makes CMD's event loops share a CPU with other programs run so, on time and
//! fairly.
//!
//! CMD and its descendants are pinned to that CPU, and have the preload library for loops. This
//! process keeps the domain open for as long as CMD runs: its file remains even if CMD closes all
//! its own descriptors, and a missing resource is reported before CMD starts.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use antiphon_coop::{Available, Domain, DomainOptions, Tier, Unavailable};
use antiphon_record::coop::{
    CPU, Count, DOMAIN, LoopRow, OPTIONS, PAGE_BYTES, REPORT, Refusal, TIER, read, words_of,
};
use antiphon_report::failure::Failure;
use antiphon_report::schedule::{Schedule, Used};
use antiphon_report::table::{Cell, Table, count, duration};
use clap::Args;
use serde_json::{Value, json};

use super::child::{self, Child};
use crate::memory;

/// The arguments of `--coop`.
#[derive(Args)]
#[group(skip)]
pub struct CoopArguments {
    /// Make CMD's event loops pass on their CPU where they wait (epoll_wait, poll, select), so that
    /// programs which are run with --coop share it, on time and fairly. Locks stay glibc's unless
    /// --lock is given
    #[arg(long)]
    coop: bool,
    /// Name of the domain: programs that are run with the same name on the same CPU share that CPU
    #[arg(long, value_name = "NAME", requires = "coop", default_value = "default")]
    domain: String,
    /// Number of the CPU to which CMD and the programs that it starts are pinned [default: the
    /// first that may be used; with --tier t1 they are not pinned]
    #[arg(long, value_name = "N", requires = "coop")]
    cpu: Option<u32>,
    /// How loops get to run on time. t3: they hand the CPU to each other; t1: a loop is raised
    /// while it is late, which needs real-time rights; auto: both, if available
    #[arg(long, value_name = "T", requires = "coop", value_parser = ["auto", "t1", "t3"],
          default_value = "auto")]
    tier: String,
    /// Times of the schedule in milliseconds; t1 uses only slack and threshold. A domain that is in
    /// use keeps its options [default: period=20,min-slice=0.1,slack=1,threshold=20]
    #[arg(long, value_name = "LIST", requires = "coop")]
    options: Option<Schedule>,
}

/// The way in which CMD's loops share their CPU.
pub struct Coop {
    tier: String,
    name: String,
    cpu: Option<u32>,
    domain: Option<Domain>,
    schedule: Schedule,
    available: Available,
    page: File,
}

impl Coop {
    /// Opens the page through which CMD's loops communicate; `None` without `--coop`.
    ///
    /// # Errors
    ///
    /// If the CPU, the domain or the tier is not available.
    pub fn open(arguments: &CoopArguments) -> Result<Option<Self>, Failure> {
        if !arguments.coop {
            return Ok(None);
        }
        let (tier, available) = (arguments.tier.clone(), antiphon_coop::available());
        if tier == "t1"
            && let Err(why) = available.tier(Tier::Boost)
        {
            return Err(Failure::wrapper(format!("--tier t1: {why}")));
        }
        let shares = tier != "t1";
        let schedule = arguments.options.unwrap_or_default();
        let cpu = cpu(arguments.cpu, shares)?;
        let refused = |why| Failure::wrapper(format!("--domain {}: {why}", arguments.domain));
        let domain = cpu
            .filter(|_| shares)
            .map(|cpu| DomainOptions { cpu, schedule: schedule.0 })
            .map(|options| Domain::open(&arguments.domain, options).map_err(refused));
        Ok(Some(Self {
            tier,
            name: arguments.domain.clone(),
            cpu,
            domain: domain.transpose()?,
            schedule,
            available,
            page: page().map_err(|why| Failure::wrapper(format!("the report of loops: {why}")))?,
        }))
    }

    /// Passes the settings to the library, in variables of `command`.
    pub fn put(&self, command: &mut Command) {
        command.env(TIER, &self.tier).env(DOMAIN, &self.name);
        command.env(OPTIONS, words_of(self.schedule.into()));
        if let Some(cpu) = self.cpu {
            command.env(CPU, cpu.to_string());
        }
        command.env(REPORT, format!("/proc/{}/fd/{}", std::process::id(), self.page.as_raw_fd()));
    }

    /// Starts CMD on its CPU.
    ///
    /// # Errors
    ///
    /// Those of fork and exec.
    pub fn start(&self, command: &mut Command, program: &Path) -> io::Result<Child> {
        if let Some(cpu) = self.cpu {
            let pin = move || {
                let gone = |_| io::Error::from_raw_os_error(libc::EINVAL);
                antiphon_linux::pin(cpu).map_err(gone)
            };
            // SAFETY: between fork and exec the closure makes one system call, and nothing else.
            unsafe { command.pre_exec(pin) };
        }
        child::start(command, program)
    }

    /// The report about CMD's loops.
    ///
    /// # Errors
    ///
    /// If the page can't be read.
    pub fn report(&self) -> io::Result<CoopReport> {
        let (loops, lost) = read(&self.page)?;
        let boost = self.tier != "t3" && self.available.tier(Tier::Boost).is_ok();
        let tiers = [(self.domain.is_some(), Tier::Baton), (boost, Tier::Boost)];
        let tiers = tiers.into_iter().filter_map(|(there, tier)| there.then_some(tier));
        Ok(CoopReport {
            tier: self.tier.clone(),
            tiers: tiers.collect(),
            domain: self.domain.as_ref().map(|domain| (self.name.clone(), domain.options())),
            boost: boost.then_some(self.schedule),
            asked: self.schedule,
            cpu: self.cpu,
            level: self.available.level().to_string(),
            weaker: self.available.weaker().filter(|_| self.domain.is_some()),
            unraised: self.available.tier(Tier::Boost).err(),
            loops,
            lost,
        })
    }
}

/// The requested CPU, or the first allowed one.
fn cpu(asked: Option<u32>, needed: bool) -> Result<Option<u32>, Failure> {
    let allowed = antiphon_linux::allowed();
    match asked {
        Some(cpu) if !allowed.contains(&cpu) => {
            let list: Vec<_> = allowed.iter().map(u32::to_string).collect();
            let list = list.join(", ");
            let what = format!("--cpu {cpu} may not be used: this process may run on CPU {list}");
            Err(Failure::wrapper(what))
        }
        Some(cpu) => Ok(Some(cpu)),
        None => Ok(allowed.first().copied().filter(|_| needed)),
    }
}

/// Memory without a name, in which loops are counted.
fn page() -> io::Result<File> {
    let file = memory::file(c"antiphon-loops", 0)?;
    file.set_len(PAGE_BYTES as u64)?;
    Ok(file)
}

/// The state of CMD's loops when the report was made.
pub struct CoopReport {
    tier: String,
    tiers: Vec<Tier>,
    domain: Option<(String, antiphon_coop::Options)>,
    /// The schedule of loops that are raised.
    boost: Option<Schedule>,
    asked: Schedule,
    cpu: Option<u32>,
    level: String,
    weaker: Option<&'static str>,
    /// Why loops can't be raised here.
    unraised: Option<Unavailable>,
    loops: Vec<LoopRow>,
    lost: u64,
}

/// Waits with a timeout of 0 are noted if they are at least one in this many.
const HIDES: u64 = 10;

impl CoopReport {
    /// The body of `coop` in the JSON report.
    pub fn json(&self) -> Value {
        json!({
            "tier": self.tier,
            "tiers": self.tiers.iter().map(|tier| tier.name()).collect::<Vec<_>>(),
            "domain": self.domain.as_ref().map(|(name, _)| name),
            "schedule": self.domain.as_ref().map(|(_, of)| Schedule(*of).json(Used::All)),
            "boost_schedule": self.boost.map(|of| of.json(Used::Boost)),
            "cpu": self.cpu,
            "level": self.level,
            "loops": self.loops.iter().map(loop_object).collect::<Vec<_>>(),
            "loops_lost": self.lost,
            "notes": self.notes(),
        })
    }

    /// The table of the loops.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "loop",
            ">thread",
            "by",
            ">waits",
            ">timeout 0",
            ">endless",
            ">due",
            ">late p50",
            ">p99",
            ">longest",
            ">overrun",
            ">slept",
            ">share",
            ">raised",
        ]);
        for row in &self.loops {
            let number = |what| Cell::number(count(row.count(what)));
            let late = |ns: Option<u64>| {
                Cell::number(ns.map_or_else(|| "–".to_owned(), |ns| duration(ns as f64)))
            };
            let most = Some(row.tardiness.max_ns).filter(|_| row.count(Count::Due) > 0);
            table.row(vec![
                Cell::text(row.name.clone()),
                Cell::number(format!("{}", row.thread)),
                Cell::text(tiers_of(row).join("+")),
                number(Count::Waits),
                number(Count::Zero),
                number(Count::Endless),
                number(Count::Due),
                late(row.tardiness.p50()),
                late(row.tardiness.p99()),
                late(most),
                number(Count::Overrun),
                number(Count::Slept),
                number(Count::Share),
                number(Count::Raises),
            ]);
        }
        table
    }

    /// The report as text, with colours or without.
    pub fn text(&self, colour: bool) -> String {
        let mut out = format!("\nEvent loops, {}\n", self.how());
        if !self.loops.is_empty() {
            out += &self.table().render(colour);
        }
        for note in self.notes() {
            // Writing to a string does not fail.
            let _ = writeln!(out, "{note}");
        }
        out
    }

    /// The tiers by which the loops were on time, in a few words.
    pub fn how(&self) -> String {
        let names: Vec<_> = self.tiers.iter().map(|tier| tier.name()).collect();
        let mut how = format!("tier {}: {}", self.tier, names.join(" and "));
        if let (Some((name, schedule)), Some(cpu)) = (&self.domain, self.cpu) {
            // Writing to a string does not fail.
            let _ = write!(how, "; domain {name} on CPU {cpu}: {schedule}");
        }
        if let Some(said) = self.boost.and_then(|schedule| schedule.said(Used::Boost)) {
            let _ = write!(how, "; raised while late: {said}");
        }
        how
    }

    /// The notes beside the table, of one or two sentences each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!("CMD was {}.", self.level)];
        notes.extend(self.weaker.map(|weaker| format!("{weaker}.")));
        if let Some((name, options)) = self.domain.as_ref().filter(|of| of.1 != self.asked.0) {
            notes.push(format!(
                "Domain {name} was there already, and has its own options: {options}."
            ));
        }
        if self.loops.is_empty() {
            notes.push(
                "No loop was found: no thread waited in epoll_wait, poll, select or their like, by \
                 way of the C library, often enough. Static programs, Go and io_uring wait past it."
                    .to_owned(),
            );
        }
        notes.extend(self.loops.iter().filter_map(hides));
        notes.extend(Refusal::ALL.into_iter().filter_map(|why| {
            let loops = self.loops.iter().filter(|row| row.refusal == Some(why)).count();
            let of = self.unraised.filter(|_| why == Refusal::RealTime);
            let of = of.map_or_else(String::new, |why| format!(": {why}"));
            let all = self.loops.len();
            (loops > 0).then(|| format!("{loops} of {all} loops: {}{of}.", words(why)))
        }));
        notes.extend(self.loops.iter().filter_map(unhelped));
        if self.lost > 0 {
            notes.push(format!("{} more loops found no room in this report.", self.lost));
        }
        notes
    }
}

/// A note about a loop that hides its next release time.
fn hides(row: &LoopRow) -> Option<String> {
    let (waits, zero) = (row.count(Count::Waits), row.count(Count::Zero));
    let hidden = zero.saturating_sub(row.count(Count::Told));
    (hidden * HIDES >= waits && hidden > 0).then(|| {
        format!(
            "{} ({}): {hidden} of {waits} waits had timeout 0: the next timer is hidden then. A \
             loop that can call a C function tells it by antiphon_coop_release; JavaScript of Node \
             can't (docs/retrofit.md).",
            row.name, row.thread
        )
    })
}

/// A note about a loop that should have been raised and could not be.
fn unhelped(row: &LoopRow) -> Option<String> {
    let refusals = row.count(Count::Refusals);
    (refusals > 0).then(|| {
        format!(
            "{} ({}): could not be raised, {refusals} times: it is real-time by itself, or the \
             program has changed to a user without the right to that.",
            row.name, row.thread
        )
    })
}

fn words(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Domain => {
            "the domain can't be opened from there (another user, container or XDG_RUNTIME_DIR)"
        }
        Refusal::Full => "the domain is full",
        Refusal::Cpu => "the thread may not run on the domain's CPU",
        Refusal::RealTime => "not raised while late: no real-time rights",
        Refusal::KeptFromRunning => "other threads kept it from running while it joined",
    }
}

fn tiers_of(row: &LoopRow) -> Vec<&'static str> {
    let tiers = [(row.baton, Tier::Baton), (row.boost, Tier::Boost)];
    let there = tiers.into_iter().filter(|(there, _)| *there);
    let names: Vec<_> = there.map(|(_, tier)| tier.name()).collect();
    if names.is_empty() { vec![Tier::None.name()] } else { names }
}

fn loop_object(row: &LoopRow) -> Value {
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
    let most = Some(row.tardiness.max_ns).filter(|_| row.count(Count::Due) > 0);
    json!({
        "name": row.name, "pid": row.process, "tid": row.thread, "tiers": tiers_of(row),
        "refusal": row.refusal.map(words),
        "waits": row.count(Count::Waits), "zero_timeouts": row.count(Count::Zero),
        "told": row.count(Count::Told), "endless": row.count(Count::Endless),
        "due": row.count(Count::Due),
        "tardiness_us": {
            "p50": us(row.tardiness.p50()), "p99": us(row.tardiness.p99()), "max": us(most),
        },
        "demotions": {
            "overrun": row.count(Count::Overrun), "slept": row.count(Count::Slept),
            "share": row.count(Count::Share),
        },
        "raises": row.count(Count::Raises), "refusals": row.count(Count::Refusals),
    })
}
