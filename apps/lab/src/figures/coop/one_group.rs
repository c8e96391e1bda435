//! Figure 10: the CPU time of eight adaptive threads in one group, whose frame rates are even.

use antiphon_report::failure::Failure;

use super::{GROUP, SECONDS, bars, conditions, fairness};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;

pub static FIGURE: Figure = Figure {
    document: "003",
    name: "10",
    title: "CPU fairness with multiple adaptive threads in a single thread group",
    how: How::Simulated { published: "§5.3: Jain's index 0.92", draw },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let heard = model.players(GROUP, SECONDS)?;
    let (cpu, frames) = (heard.cpu(), heard.frames());
    let index = (fairness(&cpu), "of 1");
    let compared = vec![
        Compared::new("Jain's index of CPU time", "0.92", index, Bound::AtMost(0.97)),
        Compared::times(
            "to that of frame rates",
            "0.92 to 0.97: uneven time for even quality",
            (fairness(&cpu), fairness(&frames)),
            Bound::AtMost(1.0),
        ),
    ];
    let shares = bars("one", &cpu, "one group");
    let words = |share: f64| format!("{:.1} %", share * 100.0);
    let picture = Picture::Bars { bars: shares, words };
    let panels = vec![Panel { title: "share of the CPU".to_owned(), picture }];
    let what = "8 players of one group beside 4 threads that compute, 20 s";
    Ok(Drawing { conditions: conditions(model, what), panels, compared })
}
