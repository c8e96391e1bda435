//! §5.7, "Limits of Periodic Scheduling": a turn for each thread in an ever shorter time, without
//! any hint, beside cooperative polling.

use antiphon_report::failure::Failure;
use antiphon_report::page::bars::Bar;
use antiphon_report::table::{duration, si};

use super::{EIGHT, below, conditions, late};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, Players};
use crate::sim::event_loop::subjects::Subject;

pub static FIGURE: Figure = Figure {
    document: "003",
    name: "5.7",
    title: "Limits of Periodic Scheduling (numbers of the text)",
    how: How::Simulated {
        published: "§5.7: with a period of 1 ms at worst 5 ms and 9348 switches/s, cooperatively 1 \
                    ms and 2211",
        draw,
    },
};

/// The periods, in microseconds.
const ROUNDS: [u64; 5] = [10_000, 5_000, 2_000, 1_000, 500];
const AS_PUBLISHED: usize = 3;
const SHORT: f64 = 5.0;

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let eight = Players { hogs: 0, ..EIGHT };
    let mut seen = Vec::new();
    for round_us in ROUNDS {
        let scheme = Players { subject: Subject::Periodic, round_us, ..eight };
        let heard = model.players(scheme, SHORT)?;
        seen.push((below(&late(&heard), 1.0), heard.switches_per_s()));
    }
    let heard = model.players(eight, SHORT)?;
    let coop = (below(&late(&heard), 1.0), heard.switches_per_s());
    let (worst, switches) = seen[AS_PUBLISHED];
    let shorter = seen[AS_PUBLISHED + 1].0;
    let compared = vec![
        Compared::new("1 ms period, at worst", "5 ms", (worst / 1e3, "ms"), Bound::Near(5.0)),
        Compared::times(
            "1 ms period to cooperative, at worst",
            "5 times",
            (worst, coop.0),
            Bound::Near(5.0),
        ),
        Compared::times(
            "1 ms period to cooperative, switches",
            "4 times",
            (switches, coop.1),
            Bound::Near(4.0),
        ),
        Compared::times(
            "0.5 ms period to cooperative, at worst",
            "a shorter period has no benefit",
            (shorter, coop.0),
            Bound::AtLeast(1.0),
        ),
    ];
    let bars = |value: fn(&(f64, f64)) -> f64| -> Vec<Bar> {
        let bar = |name: String, value| Bar {
            group: String::new(),
            about: name.clone(),
            name,
            value: Some(value),
        };
        let rounds = ROUNDS.iter().zip(&seen);
        let rounds =
            rounds.map(|(us, seen)| bar(format!("period {} ms", *us as f64 / 1e3), value(seen)));
        rounds.chain([bar("cooperative".to_owned(), value(&coop))]).collect()
    };
    let late = Picture::Bars { bars: bars(|seen| seen.0), words: |us| duration(us * 1e3) };
    let switches = Picture::Bars { bars: bars(|seen| seen.1), words: si };
    let panels = vec![
        Panel { title: "the latest timer".to_owned(), picture: late },
        Panel { title: "context switches a second".to_owned(), picture: switches },
    ];
    Ok(Drawing { conditions: conditions(model, "8 players, 5 s each"), panels, compared })
}
