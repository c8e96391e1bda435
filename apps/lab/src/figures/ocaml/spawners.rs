//! Figure 7.6: four spawners.

use antiphon_report::failure::Failure;

use super::{LIFO, OURS, PACKETS, conditions, throughput};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How};
use crate::figures::model::Model;
use crate::sim::tasks::rows::Row;

pub static FIGURE: Figure = Figure {
    document: "002",
    name: "7.6",
    title: "four spawners",
    how: How::Simulated {
        published: "§7.1.1: better throughput; the plot's values are not in the text",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let panel = throughput(model, "spawners", &[LIFO, OURS])?;
    let mut gains = |workers| {
        let four = model.tasks("spawners", LIFO, workers, PACKETS).map(Row::ops_per_s)?;
        let one = model.tasks("general", LIFO, workers, PACKETS).map(Row::ops_per_s)?;
        let what = format!("to one spawner, {workers} workers");
        Ok(Compared::times(what, "better", (four, one), Bound::AtLeast(1.0)))
    };
    let compared = vec![gains(20)?, gains(40)?, gains(115)?];
    Ok(Drawing { conditions: conditions(model, "spawners"), panels: vec![panel], compared })
}
