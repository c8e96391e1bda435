//! Figure 7.1, six panels over domains: throughput, time, three percentiles of latency, and retries
//! of the spawner.

use antiphon_report::failure::Failure;
use antiphon_report::table::{duration, si};

use super::{DOMAINS, FIFO, LIFO, OURS, PACKETS, conditions, curves, throughput};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture, Words};
use crate::figures::model::Model;
use crate::sim::tasks::rows::Row;

pub static FIGURE: Figure = Figure {
    document: "002",
    name: "7.1",
    title: "50k: throughput, time, latency, retries",
    how: How::Simulated {
        published: "§7.1.1: LIFO 0.33, 1.5 and 0.9 M packets/s on 5, 20 and 115 domains, FIFO 1.45 \
                    M at its peak on 80; no retries beyond 45",
        draw,
    },
};

const POLICIES: [super::Policy; 3] = [FIFO, LIFO, OURS];

/// A panel: its title, the figure of a row, and the format.
type Curves = (&'static str, fn(&Row) -> f64, Words);

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let mut panels = vec![throughput(model, "general", &POLICIES)?];
    let more: [Curves; 5] = [
        ("time", |row| f64::from(row.packets) * 1e9 / row.ops_per_s(), duration),
        ("half of the tasks end within", |row| row.quantile_ns(0.5), duration),
        ("99 % of the tasks end within", |row| row.quantile_ns(0.99), duration),
        ("99.99 % of the tasks end within", |row| row.quantile_ns(0.9999), duration),
        ("retries of the spawner", Row::retries, si),
    ];
    for (title, figure, words) in more {
        let curves = curves(model, "general", (&POLICIES, &DOMAINS), figure)?;
        let picture = Picture::Curves { over: "worker", curves, words };
        panels.push(Panel { title: title.to_owned(), picture });
    }
    let mut lifo = |workers| model.tasks("general", LIFO, workers, PACKETS).map(Row::ops_per_s);
    let [five, peak, most] = [lifo(5)?, lifo(20)?, lifo(115)?];
    let mega = |ops: f64| (ops / 1e6, "M packets/s");
    let mut compared = vec![
        Compared::new("LIFO on 5", "0.33 (fitted)", mega(five), Bound::Near(0.33)),
        Compared::new("LIFO on 20", "1.5", mega(peak), Bound::Near(1.5)),
        Compared::new("LIFO on 115", "0.9 (fitted)", mega(most), Bound::Near(0.9)),
    ];
    let fifo = model.tasks("general", FIFO, 80, PACKETS)?.ops_per_s();
    compared.push(Compared::new("FIFO on 80", "1.45, its peak", mega(fifo), Bound::Near(1.45)));
    let fifo_20 = model.tasks("general", FIFO, 20, PACKETS)?.ops_per_s();
    let rises = (fifo, fifo_20);
    compared.push(Compared::times("FIFO on 80, to 20", "peaks at 80", rises, Bound::AtLeast(1.0)));
    let retries = model.tasks("general", LIFO, 80, PACKETS)?.retries();
    let few = Compared::new(
        "LIFO on 80, retries",
        "none beyond 45",
        (retries, "retries"),
        Bound::AtMost(0.0),
    );
    compared.push(few);
    Ok(Drawing { conditions: conditions(model, "general"), panels, compared })
}
