//! "NUMA-aware blocking SHFLLOCK in action": waiters sleep in the queue, the shuffler sorts them by
//! socket and wakes those that it has grouped before their turn.

use antiphon_report::failure::Failure;

use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;
use crate::figures::scene::{Played, Scene, played};

pub static FIGURE: Figure = Figure {
    document: "000",
    name: "blocking-in-action",
    title: "NUMA-aware blocking SHFLLOCK in action",
    how: How::Simulated { published: "pictures of a queue, without times", draw },
};

/// Two threads a core: waiters sleep, because others could run. Sections are shorter than a slice.
pub const SCENE: Scene =
    Scene { threads: 13, cpus: 3, apart_ns: 100_000, stays_ns: 10_000_000, section_ns: 100_000 };
/// In the order of arrival the lock would change sockets eleven times.
const CHANGES: f64 = 3.0;

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let published = played("shfl-mutex+published", SCENE, model.seed())?;
    let ours = played("shfl-mutex", SCENE, model.seed())?;
    let stock = played("linux-mutex", SCENE, model.seed())?;
    let mut compared = statements("the published form", &published).to_vec();
    compared.extend(statements("our form", &ours));
    let panels =
        [("shfl-mutex+published", published), ("shfl-mutex", ours), ("linux-mutex", stock)];
    let panel = |(lock, played): (&str, Played)| Panel {
        title: format!("{lock}: waits, sleeps (pale), holds the lock; a colour for each socket"),
        picture: Picture::Lanes(played.lanes),
    };
    let conditions =
        format!("xeon-2s, 3 cores a socket are used, two threads on each, seed {}", model.seed());
    Ok(Drawing { conditions, panels: panels.map(panel).into(), compared })
}

fn statements(form: &str, played: &Played) -> [Compared; 3] {
    let slept = (played.slept as f64, "waiters");
    let asleep = (played.asleep as f64, "hand-overs");
    let changes = (played.changes() as f64, "changes of socket");
    let what = |text: &str| format!("{form}: {text}");
    [
        Compared::new(
            what("of twelve waiters, slept"),
            "threads go to sleep",
            slept,
            Bound::AtLeast(1.0),
        ),
        Compared::new(
            what("to a waiter that still slept"),
            "always passed to a spinning waiter",
            asleep,
            Bound::AtMost(0.0),
        ),
        Compared::new(
            what("in twelve hand-overs"),
            "grouped by socket",
            changes,
            Bound::AtMost(CHANGES),
        ),
    ]
}
