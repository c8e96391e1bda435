//! Figure 8: frames a second of eight players, in groups of their own and in one.

use antiphon_report::failure::Failure;

use super::{EIGHT, GROUP, SECONDS, bars, conditions, fairness};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;

pub static FIGURE: Figure = Figure {
    document: "003",
    name: "8",
    title: "Video quality in frames per second",
    how: How::Simulated {
        published: "§5.3: Jain's index 0.86 with a group each, 0.97 in one group",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let each = model.players(EIGHT, SECONDS)?.frames();
    let one = model.players(GROUP, SECONDS)?.frames();
    let index = |frames: &[f64]| (fairness(frames), "of 1");
    let compared = vec![
        Compared::new("one group: Jain's index", "0.97", index(&one), Bound::AtLeast(0.95)),
        Compared::times(
            "to a group each",
            "0.97 to 0.86",
            (fairness(&one), fairness(&each)),
            Bound::AtLeast(1.05),
        ),
    ];
    let mut frames = bars("each", &each, "a group each");
    frames.extend(bars("one", &one, "one group"));
    let picture = Picture::Bars { bars: frames, words: |rate| format!("{rate:.1}") };
    let title = "frames a second, in a group each and in one group".to_owned();
    let what = "8 players beside 4 threads that compute, 20 s";
    let panels = vec![Panel { title, picture }];
    Ok(Drawing { conditions: conditions(model, what), panels, compared })
}
