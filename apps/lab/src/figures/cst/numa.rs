//! "Importance of NUMA awareness": writers of two sockets take a lock in turn, or socket by socket.

use antiphon_report::failure::Failure;

use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Locks, Model};
use crate::figures::scene::played;
use crate::figures::shfl::in_action::{CHANGES, SCENE};

pub static FIGURE: Figure = Figure {
    document: "004",
    name: "numa",
    title: "Importance of NUMA awareness",
    how: How::Simulated { published: "pictures of a queue of six writers, without times", draw },
};

const CREATE: Locks = Locks { machine: "8s-192c", case: "create", ms: 5.0 };

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let (oblivious, aware) =
        (played("mcs", SCENE, model.seed())?, played("cst-mutex", SCENE, model.seed())?);
    let changes =
        |played: &crate::figures::scene::Played| (played.changes() as f64, "changes of socket");
    let mut stays = |lock| model.work(CREATE, lock, 192).map(|work| work.on_socket);
    let compared = vec![
        Compared::new(
            "ten waiters, MCS",
            "oblivious: in turn",
            changes(&oblivious),
            Bound::AtLeast(9.0),
        ),
        Compared::new(
            "ten waiters, CST",
            "aware: socket by socket",
            changes(&aware),
            Bound::AtMost(CHANGES),
        ),
        Compared::new(
            "192 threads, MCS: stays on the socket",
            "oblivious",
            (stays("mcs")?, "of all"),
            Bound::AtMost(0.5),
        ),
        Compared::new(
            "192 threads, CST: stays on the socket",
            "aware",
            (stays("cst-mutex")?, "of all"),
            Bound::AtLeast(0.9),
        ),
    ];
    let panel =
        |title: &str, lanes| Panel { title: title.to_owned(), picture: Picture::Lanes(lanes) };
    let panels = vec![
        panel("mcs: waits, then holds the lock; a colour for each socket", oblivious.lanes),
        panel("cst-mutex", aware.lanes),
    ];
    let conditions = format!(
        "xeon-2s, 8 cores a socket are used, seed {}; 192 threads on {}",
        model.seed(),
        model.conditions(CREATE)
    );
    Ok(Drawing { conditions, panels, compared })
}
