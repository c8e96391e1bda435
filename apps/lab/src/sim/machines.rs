//! `sim machines`: the machines that can be simulated, and what is known of them.

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_sim::{Class, Description, Kind, Number, PRESETS, Topology, Unit, known};
use clap::Args;
use serde_json::{Value, json};

use antiphon_report::failure::Failure;
use antiphon_report::machine::{self, Found};
use antiphon_report::table::{Cell, Table, Tone, colour_stdout, duration, printable};
use antiphon_report::words::several;
use antiphon_report::{report, say};

/// List the simulated machines, with their shapes, the costs of cache lines, and the sources of
/// these
#[derive(Args)]
#[command(after_help = "\
A machine is a TOML file: see crates/sim/README.md. `host` is this machine; its topology is read
from /sys, and its costs are those of a machine like it.

Example:
  antiphon sim machines
  antiphon sim machines 8s-192c
  antiphon sim machines xeon-2s --toml > mine.toml; antiphon sim machines --check mine.toml")]
pub struct Arguments {
    /// Machine to show in full, each number with its source: a name, the path of a file, or `host`
    #[arg(value_name = "MACHINE")]
    machine: Option<String>,
    /// Check a machine file, and report its errors
    #[arg(long, value_name = "FILE", conflicts_with_all = ["machine", "toml", "json"])]
    check: Option<PathBuf>,
    /// Print the machine's file, as a start for your own
    #[arg(long, requires = "machine", conflicts_with = "json")]
    toml: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Prints the machines, or one of them.
///
/// # Errors
///
/// If no such machine exists, or its file is invalid; if stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(path) = &arguments.check {
        let Found { described, .. } = machine::file(path)?;
        let path = printable(&path.display().to_string());
        say(&format!("{path}: {}\n", summary(&described)))?;
        return Ok(ExitCode::SUCCESS);
    }
    match &arguments.machine {
        Some(name) => {
            let found = machine::named(name)?;
            if arguments.toml {
                say(&found.text)?;
            } else if arguments.json {
                report::print(json!({ "machines": [object(&found.described, true)] }))?;
            } else {
                say(&whole(&found.described, colour_stdout()))?;
            }
        }
        None if arguments.json => {
            let machines: Vec<_> = shipped().map(|described| object(described, false)).collect();
            report::print(json!({ "machines": machines }))?;
        }
        None => say(&list(colour_stdout()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn shipped() -> impl Iterator<Item = &'static Description> {
    PRESETS.iter().filter_map(|preset| known(preset.name))
}

/// Formats as in `8 × 24`, with `× 2` if cores have two hardware threads.
fn shape(topology: &Topology) -> String {
    let (sockets, cores) = (topology.nodes(), cores(topology));
    let threads = smt(topology);
    let threads = if threads > 1 { format!(" × {threads}") } else { String::new() };
    format!("{sockets} × {}{threads}", cores / sockets)
}

/// Returns the number of hardware threads of the first core.
fn smt(topology: &Topology) -> usize {
    topology.siblings(0).count() + 1
}

fn cores(topology: &Topology) -> u32 {
    let units = &topology.levels()[0].units;
    match topology.crowded_permille() {
        Some(_) => units.iter().max().map_or(0, |&last| last + 1),
        None => topology.cpus(),
    }
}

/// Returns the name of a distance, such as `socket` or `machine, 2 hops`.
fn class_name(topology: &Topology, class: &Class) -> String {
    let name = &topology.levels()[class.level].name;
    match class.hops {
        hops if topology.hops().is_empty() || class.level + 1 < topology.levels().len() => {
            debug_assert_eq!(hops, 1, "hops are counted on the last level");
            name.clone()
        }
        1 => format!("{name}, 1 hop"),
        hops => format!("{name}, {hops} hops"),
    }
}

fn distances(topology: &Topology) -> String {
    let of = |class: &Class| format!("{} {}", class_name(topology, class), class.transfer_ns);
    // A file may name levels by any text.
    printable(&topology.classes().iter().map(of).collect::<Vec<_>>().join(" · "))
}

fn summary(described: &Description) -> String {
    let topology = &described.machine.topology;
    let kinds: Vec<_> =
        Kind::ALL.map(|kind| format!("{} {}", described.count(kind), kind.name())).into();
    let count = described.numbers.len();
    let name = &described.machine.name;
    format!(
        "{name}, {}, {}: {}",
        several(topology.cpus().into(), "CPU"),
        several(count as u64, "number"),
        kinds.join(", ")
    )
}

fn list(colour: bool) -> String {
    let known = |of: &Description, kind| Cell::number(of.count(kind).to_string());
    let table = Table::of(
        shipped(),
        &[
            ("machine", &|of| Cell::text(&of.machine.name)),
            ("sockets × cores", &|of| Cell::text(shape(&of.machine.topology))),
            (">CPUs", &|of| Cell::number(of.machine.topology.cpus().to_string())),
            (">measured", &|of| known(of, Kind::Measured)),
            (">published", &|of| known(of, Kind::Published)),
            (">recalled", &|of| known(of, Kind::Recalled)),
            (">estimated", &|of| known(of, Kind::Estimated)),
            ("a line from another core of the same …, ns", &|of| {
                Cell::text(distances(&of.machine.topology))
            }),
        ],
    );
    format!(
        "{}\nSockets are NUMA nodes; × 2 are hardware threads. Figures in the middle: how many \
         numbers of the\nmachine's file are known so well. `host` is this machine.\n",
        table.render(colour)
    )
}

fn whole(described: &Description, colour: bool) -> String {
    let topology = &described.machine.topology;
    let mut table = Table::new(&["number", ">value", "known", "from"]);
    for number in &described.numbers {
        let kind = Cell::text(number.kind.name());
        let tone = if number.kind == Kind::Estimated { Tone::Faint } else { Tone::Plain };
        table.row(vec![
            Cell::text(&number.name),
            Cell::number(value(number)),
            kind.tone(tone),
            Cell::text(&number.source).tone(tone),
        ]);
    }
    let caches = several(topology.caches().into(), "shared cache");
    let cache = match (topology.cache_ns(), topology.inclusive()) {
        (None, _) => "no shared cache".to_owned(),
        (Some(_), true) => format!("{caches}, inclusive"),
        (Some(_), false) => format!("{caches}, not inclusive"),
    };
    format!(
        "{}\n{}\n{} sockets × cores; {cache}; file {:016x}\nA line from another core of the same \
         …, ns: {}\n\n{}",
        printable(&described.about),
        summary(described),
        shape(topology),
        described.hash,
        distances(topology),
        table.render(colour)
    )
}

fn value(number: &Number) -> String {
    match number.unit {
        Unit::Ns => duration(number.value),
        Unit::Times => format!("{} ×", number.value),
        Unit::Count => number.value.to_string(),
    }
}

fn object(described: &Description, numbers: bool) -> Value {
    let machine = &described.machine;
    let topology = &machine.topology;
    let levels = topology.levels().iter().map(|level| {
        json!({
            "name": level.name,
            "units": level.units.iter().max().map_or(0, |&last| last + 1),
            "transfer_ns": level.transfer_ns,
            "memory_ns": level.memory_ns,
            "cache_ns": level.cache_ns,
        })
    });
    let mut object = json!({
        "name": machine.name, "about": described.about, "sockets": topology.nodes(),
        "cores": cores(topology), "smt": smt(topology), "cpus": topology.cpus(),
        "caches": topology.caches(), "inclusive": topology.inclusive(),
        "levels": levels.collect::<Vec<_>>(),
        "sources": Kind::ALL.map(|kind| (kind.name().to_owned(), json!(described.count(kind))))
            .into_iter().collect::<serde_json::Map<_, _>>(),
        "hash": format!("{:016x}", described.hash),
    });
    if numbers {
        let numbers = described.numbers.iter().map(|number| {
            let unit = match number.unit {
                Unit::Ns => "value_ns",
                Unit::Times => "value_times",
                Unit::Count => "value_count",
            };
            json!({
                "name": number.name, unit: number.value, "kind": number.kind.name(),
                "source": number.source, "line": number.line,
            })
        });
        object["numbers"] = numbers.collect();
    }
    object
}
