//! "CST lock phase": waiters of a socket queue, sleep, are passed over by the hand-off and are
//! woken off the critical path.

use antiphon_report::failure::Failure;

use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;
use crate::figures::scene::played;
use crate::figures::shfl::blocking_in_action::SCENE;

pub static FIGURE: Figure = Figure {
    document: "004",
    name: "phases",
    title: "CST lock phase",
    how: How::Simulated { published: "pictures of a queue, without times", draw },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let played = played("cst-mutex", SCENE, model.seed())?;
    let slept = (played.slept as f64, "waiters");
    let asleep = (played.asleep as f64, "hand-overs");
    let changes = (played.changes() as f64, "changes of socket");
    let compared = vec![
        Compared::new("of twelve waiters, slept", "waiters park", slept, Bound::AtLeast(1.0)),
        Compared::new(
            "to a waiter that still slept",
            "passed to an active waiter",
            asleep,
            Bound::AtMost(0.0),
        ),
        Compared::new("in twelve hand-overs", "by socket", changes, Bound::AtMost(3.0)),
    ];
    let title = "cst-mutex: waits, sleeps (pale), holds the lock; a colour for each socket";
    let panels = vec![Panel { title: title.to_owned(), picture: Picture::Lanes(played.lanes) }];
    let conditions =
        format!("xeon-2s, 3 cores a socket are used, two threads on each, seed {}", model.seed());
    Ok(Drawing { conditions, panels, compared })
}
