//! Figure 7.4: many more packets. The model simulates 50 000, of which it is known to do as many a
//! second as of 200 000.

use antiphon_report::failure::Failure;

use super::{LIFO, OURS, PACKETS, conditions, throughput};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How};
use crate::figures::model::Model;
use crate::sim::tasks::rows::Row;

pub static FIGURE: Figure = Figure {
    document: "002",
    name: "7.4",
    title: "10 million tasks",
    how: How::Simulated {
        published: "§7.1.1: about 0.2 M packets/s, stable beyond 30 domains (the text has 10 \
                    million tasks, the plot's title 2 million)",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let panel = throughput(model, "large", &[LIFO, OURS])?;
    let mut lifo = |workers| model.tasks("large", LIFO, workers, PACKETS).map(Row::ops_per_s);
    let (few, most) = (lifo(40)?, lifo(115)?);
    let compared = vec![
        Compared::times("115 workers, to 40", "stable", (most, few), Bound::AtLeast(0.9)),
        Compared::new("on 115", "0.2", (most / 1e6, "M packets/s"), Bound::Near(0.2)),
    ];
    Ok(Drawing { conditions: conditions(model, "large"), panels: vec![panel], compared })
}
