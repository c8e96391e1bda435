//! Machine files: parsing, and the errors in them.
//!
//! The format is described in the crate's README, and shown by `machines/*.toml`. Only features
//! that a machine may lack have a default: a shared cache, hops, idle states, slower cores; and the
//! pause of a spinning waiter, if no source gives it.

mod bound;
mod doubts;
mod levels;
mod number;
mod table;
mod wrong;

use bound::Span::{self, Access, Period, System};
use doubts::doubts;
use number::Reader;
pub use number::{Kind, Number, Unit};
use table::{Table, Value};
pub use wrong::Wrong;

use super::{Delivery, Entry, Idle, Interrupt, Kernel, Link, Machine, Wakes};

/// A machine and the description in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The machine to simulate.
    pub machine: Machine,
    /// The real machine that it models, in a sentence.
    pub about: String,
    /// All numbers of the file, in the order of the file.
    pub numbers: Vec<Number>,
    /// Warnings about the file: values that are allowed but rarely intended, such as costs that are
    /// less further out.
    pub doubts: Vec<Wrong>,
    /// A hash of the file's bytes: it changes when the file does.
    pub hash: u64,
}

/// The longest name, in characters.
const LONGEST_NAME: usize = 32;

impl Description {
    /// The largest machine file, in bytes: the longest that is shipped has a few thousand.
    pub const MAX_BYTES: usize = 1 << 20;

    /// Parses the text of a machine file.
    ///
    /// # Errors
    ///
    /// The first error in the file.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        if text.len() > Self::MAX_BYTES {
            let (long, most) = (text.len(), Self::MAX_BYTES);
            let what = format!("{long} bytes: a machine file has {most} at most");
            return Err(Wrong { line: 1, what });
        }
        let mut file = Table::of_file(text)?;
        let mut reader = Reader::default();
        let name = name(file.required("name")?)?;
        let about = file.required("about")?.text()?;
        let machine = reader.machine(name, &mut file)?;
        file.end()?;
        let mut numbers = reader.numbers;
        numbers.sort_by_key(|number| number.line);
        let doubts = doubts(&numbers);
        Ok(Self { machine, about, numbers, doubts, hash: hash(text.as_bytes()) })
    }

    /// The number of the file's values of that kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.numbers.iter().filter(|number| number.kind == kind).count()
    }
}

impl Reader {
    fn machine(&mut self, name: String, file: &mut Table<'_>) -> Result<Machine, Wrong> {
        let topology = self.topology(file)?;
        let mut core = file.required("core")?.table()?;
        let mut line = file.required("line")?.table()?;
        let mut clock = file.required("clock")?.table()?;
        let mut interrupt = file.required("interrupt")?.table()?;
        let mut os = file.required("os")?.table()?;
        let (clock_offset_ns, clock_offsets_ns) = self.offsets(&mut clock, topology.nodes())?;
        let (hit_ns, hit_rest_ps) = self.time_and_rest(core.required("load")?, Access)?;
        let (rmw_ns, rmw_rest_ps) = self.time_and_rest(core.required("atomic")?, Access)?;
        let instruction_ps = self.instruction(&mut core)?;
        let machine = Machine {
            name,
            topology,
            hit_ns,
            hit_rest_ps,
            look_ns: self.time_or_nothing(core.optional("look"), Access)?,
            rmw_ns,
            rmw_rest_ps,
            fence_ns: self.time(core.required("fence")?, Access)?,
            invalidate_ns: self.time_or_none(line.required("invalidate")?, Access)?,
            occupancy_ns: self.time_or_none(line.required("occupancy")?, Access)?,
            link: self.link(file)?,
            shared_write_ns: self.time_or_nothing(line.optional("shared_write"), Access)?,
            clock_ns: self.time(clock.required("read")?, System)?,
            clock_offset_ns,
            clock_offsets_ns,
            clock_tick_ns: self.time_or_nothing(clock.optional("tick"), System)?,
            interrupt: Interrupt {
                send_ns: self.time(interrupt.required("send")?, System)?,
                deliver_ns: self.time(interrupt.required("deliver")?, System)?,
                handle_ns: self.time(interrupt.required("handle")?, System)?,
                wakes: interrupt.optional("wakes").map_or(Ok(Wakes::Contained), wakes)?,
            },
            entries: self.entries(file)?,
            instruction_ps,
            wake_lines: 0,
            sleep_cost_ns: None,
            heavy_fence_ns_per_cpu: self.time(interrupt.required("membarrier")?, System)?,
            kernel: self.kernel(file)?,
            idle: self.idle(file)?,
            slice_ns: self.time(os.required("slice")?, Period)?,
            switch_ns: self.time_or_none(os.required("switch")?, System)?,
            yield_ns: self.time_or_nothing(os.optional("yield"), System)?,
            call_ns: self.time_or_nothing(os.optional("call"), System)?,
            park_ns: self.time_or_none(os.required("park")?, System)?,
            wake_ns: self.time_or_none(os.required("wake")?, System)?,
            wake_latency_ns: self.time_or_none(os.required("wake_latency")?, System)?,
            wake_jitter_ns: self.time_or_none(os.required("wake_jitter")?, System)?,
            start_jitter_ns: self.time_or_none(os.required("start_jitter")?, System)?,
            migrate_ns: self.time_or_none(os.required("migrate")?, System)?,
            balance_ns: self.time(os.required("balance")?, Period)?,
            light: os.required("light")?.truth()?,
        };
        let (call_ns, place) = (machine.call_ns, os.place);
        if call_ns > machine.park_ns.min(machine.wake_ns) {
            return Err(place.wrong(format!(
                "os.call is {call_ns} ns, more than os.park or os.wake, which contain it"
            )));
        }
        for table in [core, line, clock, interrupt, os] {
            table.end()?;
        }
        Ok(machine)
    }

    /// A time in whole nanoseconds, and the remainder in picoseconds.
    fn time_and_rest(&mut self, value: Value<'_>, span: Span) -> Result<(u64, i64), Wrong> {
        let ns = self.time(value, span)?;
        let exact_ns = self.numbers.last().map_or(ns as f64, |number| number.value);
        Ok((ns, ((exact_ns - ns as f64) * 1e3).round() as i64))
    }

    /// The largest difference between counters of nodes, and the offset of each, if the file has
    /// them.
    fn offsets(&mut self, clock: &mut Table<'_>, nodes: u32) -> Result<(u64, Vec<u64>), Wrong> {
        let most_ns = self.time_or_none(clock.required("offset")?, System)?;
        let Some(listed) = clock.optional("offsets") else { return Ok((most_ns, Vec::new())) };
        let place = listed.place;
        let offsets_ns = listed.array()?.into_iter().map(|value| self.time_or_none(value, System));
        let offsets_ns = offsets_ns.collect::<Result<Vec<_>, _>>()?;
        if offsets_ns.len() != nodes as usize {
            let found = offsets_ns.len();
            let what = format!("clock.offsets lists {found}, and needs {nodes}: one a node");
            return Err(place.wrong(what));
        }
        let (least, last) = (offsets_ns.iter().min(), offsets_ns.iter().max());
        let apart_ns = last.zip(least).map_or(0, |(last, least)| last - least);
        if apart_ns > most_ns {
            let what = format!(
                "clock.offsets are up to {apart_ns} ns apart: clock.offset says {most_ns} at most"
            );
            return Err(place.wrong(what));
        }
        Ok((most_ns, offsets_ns))
    }

    /// An optional time; 0 if missing.
    fn time_or_nothing(&mut self, value: Option<Value<'_>>, span: Span) -> Result<u64, Wrong> {
        value.map_or(Ok(0), |value| self.time(value, span))
    }

    fn link(&mut self, file: &mut Table<'_>) -> Result<Option<Link>, Wrong> {
        let Some(link) = file.optional("link") else { return Ok(None) };
        let mut link = link.table()?;
        let line_ns = self.time(link.required("line")?, Access)?;
        let transfers = self.count(link.required("transfers")?)?;
        link.end()?;
        Ok(Some(Link { line_ns, transfers }))
    }

    fn kernel(&mut self, file: &mut Table<'_>) -> Result<Option<Kernel>, Wrong> {
        let Some(kernel) = file.optional("kernel") else { return Ok(None) };
        let mut kernel = kernel.table()?;
        let wake_ns = self.time(kernel.required("wake")?, System)?;
        let switch_ns = self.time(kernel.required("switch")?, System)?;
        let background_ns = self.time(kernel.required("background")?, System)?;
        kernel.end()?;
        Ok(Some(Kernel { wake_ns, switch_ns, background_ns, lines: 0, sleep_cost_ns: None }))
    }

    /// The time of an instruction, in picoseconds.
    fn instruction(&mut self, core: &mut Table<'_>) -> Result<Option<u64>, Wrong> {
        let Some(value) = core.optional("instruction") else { return Ok(None) };
        let (ns, rest_ps) = self.time_and_rest(value, Access)?;
        Ok(Some((ns * 1_000).saturating_add_signed(rest_ps)))
    }

    /// The delivery modes of interrupts beside that of `[interrupt]`.
    fn entries(&mut self, file: &mut Table<'_>) -> Result<Vec<Entry>, Wrong> {
        let Some(table) = file.optional("delivery") else { return Ok(Vec::new()) };
        let mut table = table.table()?;
        let mut entries = Vec::new();
        for delivery in Delivery::ALL.into_iter().filter(|&one| one != Delivery::Kernel) {
            let Some(entry) = table.optional(delivery.name()) else { continue };
            let mut entry = entry.table()?;
            let send = entry.optional("send");
            let send_ns = send.map(|value| self.time(value, System)).transpose()?;
            let handle_ns = self.time(entry.required("handle")?, System)?;
            entry.end()?;
            entries.push(Entry { delivery, send_ns, handle_ns });
        }
        table.end()?;
        Ok(entries)
    }

    fn idle(&mut self, file: &mut Table<'_>) -> Result<Vec<Idle>, Wrong> {
        let Some(states) = file.optional("idle") else { return Ok(Vec::new()) };
        let mut idle: Vec<Idle> = Vec::new();
        for state in states.array()? {
            let mut state = state.table()?;
            let after_ns = self.time_or_none(state.required("after")?, Period)?;
            let exit_ns = self.time(state.required("exit")?, System)?;
            let deeper = |before: &Idle| before.after_ns < after_ns && before.exit_ns < exit_ns;
            if !idle.last().is_none_or(deeper) {
                let what =
                    "an idle state comes later and takes longer to leave than the one before";
                return Err(state.place.wrong(what));
            }
            idle.push(Idle { after_ns, exit_ns });
            state.end()?;
        }
        Ok(idle)
    }
}

fn wakes(value: Value<'_>) -> Result<Wakes, Wrong> {
    let place = value.place;
    match value.text()?.as_str() {
        "busy" => Ok(Wakes::Busy),
        "all" => Ok(Wakes::All),
        other => {
            let what =
                format!("interrupt.wakes is \"busy\" or \"all\", not {other:?}; left out, none");
            Err(place.wrong(what))
        }
    }
}

/// Checks the name of a machine, which is typed on command lines and printed in tables.
fn name(value: Value<'_>) -> Result<String, Wrong> {
    let place = value.place;
    let name = value.text()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > LONGEST_NAME || !name.chars().all(fits) {
        let what =
            format!("name {name:?}: a to z, 0 to 9 and -, {LONGEST_NAME} characters at most");
        return Err(place.wrong(what));
    }
    Ok(name)
}

/// FNV-1a, 64 bits: detects accidental changes of a file, not deliberate ones.
#[must_use]
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
