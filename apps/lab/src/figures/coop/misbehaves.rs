//! Figure 12: tardiness with one player that gives the core away too late.

use antiphon_report::failure::Failure;
use antiphon_report::table::duration;

use super::{EIGHT, SECONDS, below, conditions};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, Players, shares};

pub static FIGURE: Figure = Figure {
    document: "003",
    name: "12",
    title: "Tardiness with a misbehaving cooperative task",
    how: How::Simulated {
        published: "§5.5: up to 40 ms for the player that misbehaves, others as before, about 1 ms",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let heard = model.players(Players { case: "misbehave", ..EIGHT }, SECONDS)?;
    let (others, own) = (heard.late_us(false), heard.late_us(true));
    let ms = |late: &[f64], share| (below(late, share) / 1e3, "ms");
    let compared = vec![
        Compared::new("others, p99.9", "1 ms", ms(&others, 0.999), Bound::AtMost(1.5)),
        Compared::new("that player, at worst", "up to 40 ms", ms(&own, 1.0), Bound::Near(40.0)),
    ];
    let curves = vec![shares("others", &others), shares("misbehaves", &own)];
    let words = |us: f64| duration(us * 1e3);
    let title = "tardiness that a share of timers does not exceed".to_owned();
    let panels = vec![Panel { title, picture: Picture::Shares { curves, words } }];
    let what = "8 players, one of which works up to 10 ms longer in one of 100 chunks, beside 4 \
                threads that compute, 20 s";
    Ok(Drawing { conditions: conditions(model, what), panels, compared })
}
