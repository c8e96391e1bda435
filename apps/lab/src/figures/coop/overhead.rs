//! Figure 13: frame rates of one to fourteen players without other work, cooperatively and by the
//! system.

use antiphon_report::failure::Failure;
use antiphon_report::page::curves::Curve;

use super::{EIGHT, SYSTEM, conditions};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, Players, at};

pub static FIGURE: Figure = Figure {
    document: "003",
    name: "13",
    title: "Overhead of Cooperative Polling vs. Linux CFS",
    how: How::Simulated {
        published: "§5.6: the same frame rate up to 7 players, 6 % less with 14",
        draw,
    },
};

const PLAYERS: [usize; 7] = [1, 2, 4, 7, 9, 11, 14];
/// Simulated time of each of the fourteen runs, in seconds.
const SHORT: f64 = 5.0;
const COOP: &str = "cooperative";
const ALONE: &str = "system alone";

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let mut curves = Vec::new();
    for (name, scheme) in [(COOP, EIGHT), (ALONE, SYSTEM)] {
        let mut points = Vec::new();
        for players in PLAYERS {
            let frames = model.players(Players { players, hogs: 0, ..scheme }, SHORT)?.frames();
            points.push((players as f64, frames.iter().sum::<f64>() / players as f64));
        }
        curves.push(Curve { name: name.to_owned(), points, dashed: false });
    }
    let rates = |players| (at(&curves, COOP, players), at(&curves, ALONE, players));
    let compared = vec![
        Compared::times("7 players, to the system", "the same", rates(7), Bound::AtLeast(0.97)),
        Compared::times("14 players, to the system", "0.94", rates(14), Bound::AtLeast(0.9)),
    ];
    let words = |rate| format!("{rate:.1}");
    let picture = Picture::Curves { over: "player", curves, words };
    let panels = vec![Panel { title: "frames a second of a player".to_owned(), picture }];
    let what = "players of different demand that want 0.143 of it on average, 5 s each";
    Ok(Drawing { conditions: conditions(model, what), panels, compared })
}
