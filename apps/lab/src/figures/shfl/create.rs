//! "Locks performance: Throughput": each thread creates a file in a directory that all share. The
//! slides show it three times, each time with one lock more.

use antiphon_report::failure::Failure;
use antiphon_report::page::curves::Curve;
use antiphon_report::table::si;
use antiphon_report::words::several;

use super::{CREATE, LOST, MACHINE, SOCKET, THREADS, TWICE};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, at};

const fn figure(
    name: &'static str,
    title: &'static str,
    draw: crate::figures::figure::Draw,
) -> Figure {
    Figure { document: "000", name, title, how: How::Simulated { published: LOST, draw } }
}

pub static STOCK: Figure =
    figure("create-stock", "Locks performance: Throughput, stock", draw_stock);
pub static CST: Figure =
    figure("create-cst", "Locks performance: Throughput, stock and CST", draw_cst);
pub static ALL: Figure = figure("create", "Locks performance: Throughput, all", draw_all);

const KERNEL: &str = "linux-mutex";
const HIERARCHY: &str = "cst-mutex";
const SHUFFLED: &str = "shfl-mutex";

fn draw_stock(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = model.curves(CREATE, &[KERNEL, "qspinlock"], &THREADS)?;
    let of = |count| at(&curves, KERNEL, count);
    let compared = vec![
        Compared::times(
            "the kernel's mutex, 192 threads to 24",
            "collapses after one socket",
            (of(MACHINE), of(SOCKET)),
            Bound::AtMost(0.5),
        ),
        Compared::times(
            "the same, 384 threads to 24",
            "NUMA also affects oversubscription",
            (of(TWICE), of(SOCKET)),
            Bound::AtMost(0.9),
        ),
    ];
    Ok(drawing(model, curves, compared))
}

fn draw_cst(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = model.curves(CREATE, &[KERNEL, HIERARCHY], &THREADS)?;
    let of = |count| at(&curves, HIERARCHY, count);
    let compared = vec![
        Compared::times(
            "CST, 192 threads to 24",
            "maintains throughput beyond one socket",
            (of(MACHINE), of(SOCKET)),
            Bound::AtLeast(0.9),
        ),
        Compared::times(
            "CST, 384 threads to 24",
            "maintains throughput when oversubscribed",
            (of(TWICE), of(SOCKET)),
            Bound::AtLeast(0.9),
        ),
        Compared::times(
            "CST to the kernel's mutex, one thread",
            "poor single thread throughput",
            (of(1), at(&curves, KERNEL, 1)),
            Bound::AtMost(0.99),
        ),
    ];
    Ok(drawing(model, curves, compared))
}

fn draw_all(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = model.curves(CREATE, &[KERNEL, HIERARCHY, SHUFFLED], &THREADS)?;
    let to_best = |count| {
        let best = at(&curves, KERNEL, count).max(at(&curves, HIERARCHY, count));
        (at(&curves, SHUFFLED, count), best)
    };
    let best = |count, document| {
        Compared::times(
            format!("ShflLock to the best of both, {}", several(count as u64, "thread")),
            document,
            to_best(count),
            Bound::AtLeast(0.95),
        )
    };
    let compared = vec![
        best(1, "maintains performance: single thread"),
        best(SOCKET, "maintains performance"),
        best(MACHINE, "maintains performance: beyond one socket"),
        best(TWICE, "maintains performance: core oversubscription"),
    ];
    Ok(drawing(model, curves, compared))
}

fn drawing(model: &Model, curves: Vec<Curve>, compared: Vec<Compared>) -> Drawing {
    let picture = Picture::Curves { over: "thread", curves, words: si };
    let panels = vec![Panel { title: "files a second".to_owned(), picture }];
    Drawing { conditions: model.conditions(CREATE), panels, compared }
}
