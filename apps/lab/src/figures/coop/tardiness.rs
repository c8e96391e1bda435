//! Figures 5 and 6: the distribution of tardiness of one adaptive thread, and of eight.

use antiphon_report::failure::Failure;
use antiphon_report::page::curves::Curve;
use antiphon_report::table::duration;

use super::{EIGHT, GROUP, SECONDS, SYSTEM, below, conditions, late};
use crate::figures::figure::{Bound, Compared, Draw, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, Players, shares};
use crate::sim::event_loop::subjects::Subject;

const fn figure(
    name: &'static str,
    title: &'static str,
    published: &'static str,
    draw: Draw,
) -> Figure {
    Figure { document: "003", name, title, how: How::Simulated { published, draw } }
}

pub static ONE: Figure = figure(
    "5",
    "Cumulative distribution of tardiness with a single adaptive thread",
    "§5.1: at worst about 1 ms when cooperative, many events over 20 ms under CFS",
    draw_one,
);
pub static MANY: Figure = figure(
    "6",
    "Tardiness with multiple adaptive threads",
    "§5.2: about 1 ms in groups of their own and in one; under CFS almost all over 20 ms, at worst \
     over 100",
    draw_many,
);

const BOOSTED: Players = Players { subject: Subject::T1, ..EIGHT };

/// The lateness of timers under each scheme, in microseconds.
fn run(
    model: &Model,
    schemes: &[(&'static str, Players)],
) -> Result<(Vec<Curve>, Vec<Vec<f64>>), Failure> {
    let (mut curves, mut all) = (Vec::new(), Vec::new());
    for &(name, players) in schemes {
        let late = late(&model.players(players, SECONDS)?);
        curves.push(shares(name, &late));
        all.push(late);
    }
    Ok((curves, all))
}

fn panels(curves: Vec<Curve>) -> Vec<Panel> {
    let words = |us: f64| duration(us * 1e3);
    let title = "tardiness that a share of timers does not exceed".to_owned();
    vec![Panel { title, picture: Picture::Shares { curves, words } }]
}

fn ms(late: &[f64], share: f64) -> (f64, &'static str) {
    (below(late, share) / 1e3, "ms")
}

fn draw_one(model: &mut Model) -> Result<Drawing, Failure> {
    let one = |subject| Players { case: "alone-on-core", subject, ..EIGHT };
    let schemes = [
        ("cooperative, in the kernel", one(Subject::Coop)),
        ("helper with a higher rank (t1)", one(Subject::T1)),
        ("system alone", one(Subject::Alone)),
    ];
    let (curves, late) = run(model, &schemes)?;
    let compared = vec![
        Compared::new("cooperative, at worst", "1 ms", ms(&late[0], 1.0), Bound::AtMost(1.5)),
        Compared::new("system alone, p99", "over 20 ms", ms(&late[2], 0.99), Bound::Near(20.0)),
    ];
    let what = "one player that wants 0.6 of it, beside 4 threads that compute, 20 s";
    Ok(Drawing { conditions: conditions(model, what), panels: panels(curves), compared })
}

fn draw_many(model: &mut Model) -> Result<Drawing, Failure> {
    let schemes = [
        ("cooperative, a group each", EIGHT),
        ("cooperative, one group", GROUP),
        ("helper with a higher rank (t1)", BOOSTED),
        ("system alone", SYSTEM),
    ];
    let (curves, late) = run(model, &schemes)?;
    let compared = vec![
        Compared::new("a group each, p99.9", "1 ms", ms(&late[0], 0.999), Bound::AtMost(1.5)),
        Compared::new("one group, p99.9", "1 ms", ms(&late[1], 0.999), Bound::AtMost(1.5)),
        Compared::new("system alone, median", "over 20 ms", ms(&late[3], 0.5), Bound::Near(20.0)),
        Compared::new("system alone, worst", "over 100 ms", ms(&late[3], 1.0), Bound::Near(100.0)),
    ];
    let what = "8 players beside 4 threads that compute, 20 s";
    Ok(Drawing { conditions: conditions(model, what), panels: panels(curves), compared })
}
