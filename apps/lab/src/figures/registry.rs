//! The figures and tables of the five documents, in their order: those that are drawn from a model,
//! those that another command draws, and those that are not drawn.

use antiphon_report::failure::Failure;
use antiphon_report::list::near;

use super::figure::{Figure, How};
use super::{coop, cst, ocaml, shfl};

const fn by(
    document: &'static str,
    name: &'static str,
    title: &'static str,
    (command, about): (&'static str, &'static str),
) -> Figure {
    Figure { document, name, title, how: How::By { command, about } }
}

const fn not(
    document: &'static str,
    name: &'static str,
    title: &'static str,
    why: &'static str,
) -> Figure {
    Figure { document, name, title, how: How::Not(why) }
}

/// Figures of document 001, all of which one command draws.
const fn nemo(name: &'static str, title: &'static str) -> Figure {
    by("001", name, title, ("antiphon sim events --figures --html F", "simulated"))
}

const DIAGRAM: &str = "a diagram without values";

static GROWTH: Figure = not(
    "000",
    "lock-growth",
    "Locks: most widely used primitive",
    "counts locks over the source trees of a kernel, which are not here",
);

static EVENTS: [Figure; 20] = [
    not("001", "1", "Hybrid runtimes", DIAGRAM),
    not("001", "2", "Structure of Aerokernel", DIAGRAM),
    nemo("3", "Unicast wake-ups"),
    nemo("4", "Broadcast wake-ups"),
    nemo("5", "Spread of a broadcast on x64"),
    nemo("6", "Spread of a broadcast on phi"),
    nemo("7", "Interrupts to all cores"),
    nemo("8", "A kernel's wake-ups on x64"),
    nemo("9", "A kernel's wake-ups on phi"),
    nemo("10", "A kernel's broadcasts on x64"),
    nemo("11", "A kernel's broadcasts on phi"),
    nemo("12", "Their spread on x64"),
    nemo("13", "Their spread on phi"),
    nemo("14", "Control flow of a message"),
    nemo("15", "Latency of messages"),
    nemo("16", "Latency of broadcast messages"),
    nemo("17", "Synchrony of broadcast messages"),
    nemo("18", "Polling against interrupts"),
    not(
        "001",
        "19",
        "Parts of an interrupt",
        "the machine's file takes its numbers from this table: a model can't confirm them",
    ),
    nemo("20", "Projected remote system call"),
];

static GRAPH: Figure = not("002", "2.1", "A graph of tasks", DIAGRAM);
static STALLS: Figure = not(
    "002",
    "7.3",
    "FIFO: stalls per instruction",
    "takes performance counters of 128 cores; the simulator counts no instructions",
);
static TAILS: Figure =
    not("002", "head-tail", "Reads of head and tail", "the draft has a placeholder in its place");

static API: [Figure; 4] = [
    not("003", "1", "Application scheduler API", "code: `antiphon_coop::EventLoop`"),
    not("003", "2", "Event type definition", "code: `antiphon_coop::Event`"),
    not("003", "3", "Adaptive video player", "code: `apps/lab/player`"),
    not("003", "4", "Hierarchical architecture", DIAGRAM),
];

static BITRATES: Figure = by(
    "003",
    "9",
    "Video bitrates",
    ("antiphon lab play --generate bursty --html F", "measured; clips are generated"),
);
static DISPLAY: Figure = by(
    "003",
    "11",
    "Tardiness of X11",
    ("cargo run --release -p antiphon-player --example x_server", "measured; a table, no picture"),
);

static YEARS: Figure = by(
    "004",
    "timeline",
    "Locks' research efforts",
    ("antiphon sim locks --timeline --case create,lock2 --html F", "simulated"),
);

/// Returns all figures, in the documents' order.
pub fn all() -> Vec<&'static Figure> {
    let mut all = vec![
        &shfl::scaling::FIGURE,
        &GROWTH,
        &shfl::create::STOCK,
        &shfl::create::CST,
        &shfl::memory::CST,
        &shfl::in_action::FIGURE,
        &shfl::blocking_in_action::FIGURE,
        &shfl::table::FIGURE,
        &shfl::create::ALL,
        &shfl::memory::ALL,
        &shfl::enumerate::FIGURE,
        &shfl::mail::FIGURE,
    ];
    all.extend(&EVENTS);
    all.extend([
        &GRAPH,
        &TAILS,
        &ocaml::general::FIGURE,
        &ocaml::steals::FIGURE,
        &STALLS,
        &ocaml::large::FIGURE,
        &ocaml::heavy::FIGURE,
        &ocaml::spawners::FIGURE,
        &ocaml::neighbours::FIGURE,
    ]);
    all.extend(&API);
    all.extend([
        &coop::tardiness::ONE,
        &coop::tardiness::MANY,
        &coop::fairness::FIGURE,
        &coop::frames::FIGURE,
        &BITRATES,
        &coop::one_group::FIGURE,
        &DISPLAY,
        &coop::misbehaves::FIGURE,
        &coop::overhead::FIGURE,
        &coop::periodic::FIGURE,
        &cst::numa::FIGURE,
        &YEARS,
        &cst::blocking::FIGURE,
        &cst::snodes::FIGURE,
        &cst::phases::FIGURE,
        &cst::psearchy::FIGURE,
        &cst::parking::FIGURE,
    ]);
    all
}

/// Returns the figures of these names, each once and in the documents' order: `000:create`, or
/// `000` for all that are drawn of a document. Without names, all that are drawn.
///
/// # Errors
///
/// If a name is unknown, or that figure is drawn by another command or not at all.
pub fn named(names: &[String]) -> Result<Vec<&'static Figure>, Failure> {
    let all = all();
    for name in names {
        let of_document = all.iter().any(|figure| figure.document == name);
        let figure = all.iter().find(|figure| figure.id() == *name);
        match figure.map(|figure| &figure.how) {
            Some(How::Simulated { .. }) => {}
            Some(How::By { command, .. }) => {
                return Err(Failure::arguments(format!("{name} is drawn by `{command}`")));
            }
            Some(How::Not(why)) => {
                return Err(Failure::arguments(format!("{name} is not drawn: {why}")));
            }
            None if of_document => {}
            None => {
                let ids: Vec<_> = all.iter().map(|figure| figure.id()).collect();
                let known: Vec<_> = ids.iter().map(String::as_str).collect();
                let tip = near(name, &known);
                let what =
                    format!("no figure '{name}'{tip}; `antiphon lab figures --list` has all");
                return Err(Failure::arguments(what));
            }
        }
    }
    let mut wanted = all;
    wanted.retain(|figure| {
        let asked = |name: &String| *name == figure.id() || name == figure.document;
        matches!(figure.how, How::Simulated { .. }) && (names.is_empty() || names.iter().any(asked))
    });
    match wanted.is_empty() {
        true => Err(Failure::arguments("none of these figures is drawn from a model; see --list")),
        false => Ok(wanted),
    }
}
