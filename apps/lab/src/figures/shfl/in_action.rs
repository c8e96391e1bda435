//! "NUMA-aware SHFLLOCK in action": waiters of two sockets queue up in turn, are sorted by socket
//! behind the head, and take the lock in that order.

use antiphon_report::failure::Failure;

use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::Model;
use crate::figures::scene::{Scene, played};

pub static FIGURE: Figure = Figure {
    document: "000",
    name: "in-action",
    title: "NUMA-aware SHFLLOCK in action",
    how: How::Simulated { published: "pictures of a queue, without times", draw },
};

/// Ten waiters: in their order the lock would change sockets nine times.
pub const SCENE: Scene =
    Scene { threads: 11, cpus: 8, apart_ns: 1_000, stays_ns: 10_000, section_ns: 500 };
/// The first waiter came before there was anything to sort, and the last is never moved.
pub const CHANGES: f64 = 3.0;

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let played = played("shfl-spin", SCENE, model.seed())?;
    let changes = (played.changes() as f64, "changes of socket");
    let grouped = "waiters are grouped by socket";
    let compared = vec![Compared::new("ten waiters", grouped, changes, Bound::AtMost(CHANGES))];
    let title = "shfl-spin: waits, then holds the lock; a colour for each socket".to_owned();
    let panels = vec![Panel { title, picture: Picture::Lanes(played.lanes) }];
    let conditions = format!("xeon-2s, 8 cores a socket are used, seed {}", model.seed());
    Ok(Drawing { conditions, panels, compared })
}
