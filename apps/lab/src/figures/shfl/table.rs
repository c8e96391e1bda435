//! The table "Current blocking locks": four locks under four loads, and their sizes.

use antiphon_replay::locks::SimLock;
use antiphon_report::failure::Failure;
use antiphon_report::page::bars::Bar;

use super::{CREATE, MACHINE, SOCKET, TWICE};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;

pub static FIGURE: Figure = Figure {
    document: "000",
    name: "blocking-locks",
    title: "Current blocking locks",
    how: How::Simulated {
        published: "marks and sizes in the text; a mark is taken as 0.9 of the best of the four",
        draw,
    },
};

/// Our name, and the document's: good or not at low, medium and high contention and oversubscribed;
/// bytes.
struct Row {
    lock: &'static str,
    called: &'static str,
    good: [bool; 4],
    bytes: f64,
    size: &'static str,
}

const ROWS: [Row; 4] = [
    Row {
        lock: "linux-mutex",
        called: "mutex",
        good: [true, false, false, false],
        bytes: 40.0,
        size: "40 B",
    },
    Row {
        lock: "malthusian",
        called: "Malthusian",
        good: [true, true, false, true],
        bytes: 24.0,
        size: "24 B, and a context",
    },
    Row {
        lock: "cst-mutex",
        called: "CST",
        good: [false, true, true, true],
        bytes: 32.0,
        size: "32 B, and 512 B for sockets",
    },
    Row { lock: "shfl-mutex", called: "SHFLLOCK", good: [true; 4], bytes: 12.0, size: "12 B" },
];

/// The loads, as numbers of threads in `create`.
const LOADS: [(&str, usize); 4] =
    [("low", 1), ("medium", SOCKET), ("high", MACHINE), ("oversubscribed", TWICE)];
const GOOD: f64 = 0.9;

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let (mut bars, mut compared) = (Vec::new(), Vec::new());
    for (load, (name, threads)) in LOADS.into_iter().enumerate() {
        let mut work = Vec::new();
        for row in &ROWS {
            work.push(model.work(CREATE, row.lock, threads)?.ops_per_s);
        }
        let best = work.iter().copied().fold(0.0, f64::max);
        for (row, work) in ROWS.iter().zip(work) {
            let good = row.good[load];
            let document = if good { "✓" } else { "✗" };
            let bound = if good { Bound::AtLeast(GOOD) } else { Bound::AtMost(GOOD) };
            let what = format!("{}, {name}", row.called);
            compared.push(Compared::times(what, document, (work, best), bound));
            bars.push(Bar {
                group: threads.to_string(),
                name: row.called.to_owned(),
                value: Some(work / best),
                about: format!("{name}; the document: {document}"),
            });
        }
    }
    for row in &ROWS {
        let bytes = SimLock::named(row.lock).expect("a lock").bytes as f64;
        let what = format!("{}, size", row.called);
        compared.push(Compared::new(what, row.size, (bytes, "bytes"), Bound::Near(row.bytes)));
    }
    let picture = Picture::Bars { bars, words: |share| format!("{share:.2}") };
    let title = "work, to the best of the four, by the number of threads".to_owned();
    let panels = vec![Panel { title, picture }];
    Ok(Drawing { conditions: model.conditions(CREATE), panels, compared })
}
