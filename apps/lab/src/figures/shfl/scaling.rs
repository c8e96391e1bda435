//! "Typical application performance on a manycore machine": a mail service beside perfect scaling.

use antiphon_report::failure::Failure;
use antiphon_report::page::curves::Curve;
use antiphon_report::table::si;

use super::{LOST, MACHINE, SOCKET};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Locks, Model, at};

pub static FIGURE: Figure = Figure {
    document: "000",
    name: "scaling",
    title: "Typical application performance on a manycore machine",
    how: How::Simulated { published: LOST, draw },
};

/// The locks of a mail service; the program itself, Exim, is not run.
pub const MAIL: Locks = Locks { machine: "8s-192c", case: "mail", ms: 5.0 };
const STOCK: &str = "linux-mutex";

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let threads = [1, SOCKET, 48, 96, MACHINE];
    let mut curves = model.curves(MAIL, &[STOCK], &threads)?;
    let one = at(&curves, STOCK, 1);
    let to_one = |count| (at(&curves, STOCK, count), one);
    let compared = vec![
        Compared::times(
            "192 threads, to one",
            "ever further behind 192 times",
            to_one(MACHINE),
            Bound::AtMost(96.0),
        ),
        Compared::times(
            "192 threads, to 24",
            "ever further behind 8 times",
            (to_one(MACHINE).0, to_one(SOCKET).0),
            Bound::AtMost(4.0),
        ),
    ];
    curves.push(Curve {
        name: "perfect".to_owned(),
        points: threads.iter().map(|&count| (count as f64, one * count as f64)).collect(),
        dashed: true,
    });
    let picture = Picture::Curves { over: "thread", curves, words: si };
    let panels = vec![Panel { title: "messages a second".to_owned(), picture }];
    Ok(Drawing { conditions: model.conditions(MAIL), panels, compared })
}
