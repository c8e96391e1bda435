//! Figure 7.5: an extra 500 ns in each task.

use antiphon_report::failure::Failure;

use super::{LIFO, OURS, PACKETS, conditions, throughput};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How};
use crate::figures::model::Model;
use crate::sim::tasks::rows::Row;

pub static FIGURE: Figure = Figure {
    document: "002",
    name: "7.5",
    title: "each task with an additional 500 ns",
    how: How::Simulated {
        published: "§7.1.1: stable beyond 100 domains; the plot's values are not in the text",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let panel = throughput(model, "heavy", &[LIFO, OURS])?;
    let mut lifo = |workers| model.tasks("heavy", LIFO, workers, PACKETS).map(Row::ops_per_s);
    let stays = (lifo(115)?, lifo(20)?);
    let compared = vec![Compared::times(
        "115 workers, to 20",
        "stable beyond 100",
        stays,
        Bound::AtLeast(0.9),
    )];
    Ok(Drawing { conditions: conditions(model, "heavy"), panels: vec![panel], compared })
}
