//! Figure 7.2: stealing attempts of LIFO over domains.

use antiphon_report::failure::Failure;

use super::{DOMAINS, LIFO, OURS, PACKETS, conditions, curves};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;
use crate::sim::tasks::rows::Row;

pub static FIGURE: Figure = Figure {
    document: "002",
    name: "7.2",
    title: "LIFO: stealing attempts",
    how: How::Simulated {
        published: "§7.1.1: attempts rise, and above 80 domains they do not",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = curves(model, "general", (&[LIFO, OURS], &DOMAINS), Row::attempts_per_task)?;
    let mut tries =
        |workers| model.tasks("general", LIFO, workers, PACKETS).map(Row::attempts_per_task);
    let compared = vec![
        Compared::times(
            "tries a task on 80, to 20",
            "more with each worker",
            (tries(80)?, tries(20)?),
            Bound::AtLeast(4.0),
        ),
        Compared::times(
            "tries a task on 115, to 80",
            "no increase above 80",
            (tries(115)?, tries(80)?),
            Bound::AtMost(1.1),
        ),
    ];
    let words = |value| format!("{value:.1}");
    let picture = Picture::Curves { over: "worker", curves, words };
    let panels = vec![Panel { title: "looks into others' queues, a task".to_owned(), picture }];
    Ok(Drawing { conditions: conditions(model, "general"), panels, compared })
}
