//! "Locks performance: Memory footprint": the locks of ten million inodes. The slides show it
//! without and with ShflLock.

use antiphon_report::failure::Failure;
use antiphon_report::page::bars::Bar;
use antiphon_report::table::si;

use super::LOST;
use crate::figures::figure::{Bound, Compared, Draw, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, machine};
use crate::sim::memory::{self, Counted};

const fn figure(name: &'static str, title: &'static str, draw: Draw) -> Figure {
    Figure { document: "000", name, title, how: How::Simulated { published: LOST, draw } }
}

pub static CST: Figure = figure("memory-cst", "Locks performance: Memory footprint, CST", draw_cst);
pub static ALL: Figure = figure("memory", "Locks performance: Memory footprint, all", draw_all);

const INODES: u64 = 10_000_000;

/// A lock and the bytes that all of it take.
type Bytes = Vec<(&'static str, f64)>;

fn bytes(model: &Model) -> Result<Bytes, Failure> {
    let machine = machine("8s-192c");
    let counted = Counted::on(machine, 0, model.seed())?;
    let rows = memory::rows(machine, INODES, &counted);
    Ok(rows.iter().map(|row| (row.lock, row.bytes)).collect())
}

fn of(all: &Bytes, lock: &str) -> f64 {
    all.iter().find(|(name, _)| *name == lock).map_or(f64::NAN, |(_, bytes)| *bytes)
}

fn draw_cst(model: &mut Model) -> Result<Drawing, Failure> {
    let mut all = bytes(model)?;
    all.retain(|(name, _)| *name != "shfl-mutex");
    let gigabytes = (of(&all, "cst-mutex") / 1e9, "GB");
    let compared = vec![
        Compared::new("CST", "about 1 GB of 32 GB", gigabytes, Bound::Near(1.0)),
        Compared::times(
            "a lock with all sockets' parts, to CST",
            "allocated in advance: more",
            (of(&all, "cohort-tkt-mcs"), of(&all, "cst-mutex")),
            Bound::AtLeast(1.0),
        ),
    ];
    Ok(drawing(model, &all, compared))
}

fn draw_all(model: &mut Model) -> Result<Drawing, Failure> {
    let all = bytes(model)?;
    let less = |what, one, other| {
        let order = "ShflLock < stock < CST";
        Compared::times(what, order, (of(&all, one), of(&all, other)), Bound::AtMost(1.0))
    };
    let compared = vec![
        less("ShflLock to the kernel's mutex", "shfl-mutex", "linux-mutex"),
        less("the kernel's mutex to CST", "linux-mutex", "cst-mutex"),
    ];
    Ok(drawing(model, &all, compared))
}

fn drawing(model: &Model, all: &Bytes, compared: Vec<Compared>) -> Drawing {
    let bar = |&(lock, bytes): &(&str, f64)| Bar {
        group: String::new(),
        name: lock.to_owned(),
        value: Some(bytes),
        about: lock.to_owned(),
    };
    let picture = Picture::Bars { bars: all.iter().map(bar).collect(), words: si };
    let conditions = format!(
        "8s-192c, 10 million inodes with a lock each; sizes are those on Linux, CST's structures \
         are counted in a simulation and scaled up, seed {}",
        model.seed()
    );
    let panels = vec![Panel { title: "bytes of all locks".to_owned(), picture }];
    Drawing { conditions, panels, compared }
}
