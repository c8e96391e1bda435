//! "Issues with blocking synchronization primitives": spin-then-park with more threads than cores.

use antiphon_report::failure::Failure;
use antiphon_report::table::si;

use super::{CREATE, FOUR_TIMES, MACHINE, THREADS};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, at};

pub static FIGURE: Figure = Figure {
    document: "004",
    name: "blocking",
    title: "Issues with blocking synchronization primitives",
    how: How::Simulated {
        published: "the plot's values are not in the text; bounds are from its words",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = model.curves(CREATE, &["mcs-stp", "futex", "linux-mutex"], &THREADS)?;
    let falls = |what, lock| {
        let pair = (at(&curves, lock, FOUR_TIMES), at(&curves, lock, MACHINE));
        Compared::times(what, "drops beyond the cores", pair, Bound::AtMost(0.9))
    };
    let compared = vec![
        falls("the kernel's mutex, 480 threads to 120", "linux-mutex"),
        falls("a futex mutex, 480 threads to 120", "futex"),
        falls("spin-then-park, 480 threads to 120", "mcs-stp"),
    ];
    let picture = Picture::Curves { over: "thread", curves, words: si };
    let panels = vec![Panel { title: "files a second".to_owned(), picture }];
    Ok(Drawing { conditions: model.conditions(CREATE), panels, compared })
}
