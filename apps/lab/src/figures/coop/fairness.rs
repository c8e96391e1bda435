//! Figure 7: the CPU time of eight adaptive threads, by the system and cooperatively in groups of
//! their own.

use antiphon_report::failure::Failure;

use super::{EIGHT, SECONDS, SYSTEM, bars, conditions, fairness};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;

pub static FIGURE: Figure = Figure {
    document: "003",
    name: "7",
    title: "CPU fairness with multiple adaptive threads",
    how: How::Simulated {
        published: "§5.3: Jain's index 0.98 under both; 8.3 % each and 66.6 % of the CPU in all \
                    would be ideal",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let system = model.players(SYSTEM, SECONDS)?.cpu();
    let coop = model.players(EIGHT, SECONDS)?.cpu();
    let index = |shares: &[f64]| (fairness(shares), "of 1");
    let all = |shares: &[f64]| (100.0 * shares.iter().sum::<f64>(), "%");
    let compared = vec![
        Compared::new("system: Jain's index", "0.98", index(&system), Bound::AtLeast(0.93)),
        Compared::new("cooperative: Jain's index", "0.98", index(&coop), Bound::AtLeast(0.93)),
        Compared::new("system: of the CPU", "66.6 % is ideal", all(&system), Bound::AtLeast(60.0)),
        Compared::new("cooperative: of the CPU", "66.6 %", all(&coop), Bound::AtLeast(60.0)),
    ];
    let mut shares = bars("CFS", &system, "the system alone");
    shares.extend(bars("coop", &coop, "cooperative, a group each"));
    let words = |share: f64| format!("{:.1} %", share * 100.0);
    let picture = Picture::Bars { bars: shares, words };
    let title = "share of the CPU, by the system alone and cooperatively".to_owned();
    let what = "8 players beside 4 threads that compute, 20 s";
    let panels = vec![Panel { title, picture }];
    Ok(Drawing { conditions: conditions(model, what), panels, compared })
}
