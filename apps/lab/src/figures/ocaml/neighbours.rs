//! Figure 7.7: stealing from neighbours only.

use antiphon_report::failure::Failure;

use super::{LIFO, PACKETS, conditions, throughput};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How};
use crate::figures::model::Model;
use crate::sim::tasks::rows::Row;
use crate::sim::tasks::subjects::Form;

pub static FIGURE: Figure = Figure {
    document: "002",
    name: "7.7",
    title: "stealing from neighbours",
    how: How::Simulated {
        published: "§7.1.1: definite improvement, above all with many cores; the plot's values are \
                    not in the text",
        draw,
    },
};

const NEAR: super::Policy = ("lifo-near-13", Form::Published);
const FIFO_NEAR: super::Policy = ("fifo-near-20", Form::Published);

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let panel = throughput(model, "general", &[LIFO, NEAR, FIFO_NEAR])?;
    let mut gain = |workers| {
        let near = model.tasks("general", NEAR, workers, PACKETS).map(Row::ops_per_s)?;
        let plain = model.tasks("general", LIFO, workers, PACKETS).map(Row::ops_per_s)?;
        Ok((near, plain))
    };
    let ((few, plain_few), (most, plain_most)) = (gain(40)?, gain(115)?);
    let compared = vec![
        Compared::times(
            "13 neighbours to all, 115 workers",
            "definite improvement",
            (most, plain_most),
            Bound::AtLeast(1.1),
        ),
        Compared::times(
            "its gain there, to that on 40",
            "especially for high core counts",
            (most / plain_most, few / plain_few),
            Bound::AtLeast(1.0),
        ),
    ];
    Ok(Drawing { conditions: conditions(model, "general"), panels: vec![panel], compared })
}
