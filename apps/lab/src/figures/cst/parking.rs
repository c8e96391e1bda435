//! "Effective parking strategy": CST beside blocking locks, under- and oversubscribed.

use antiphon_report::failure::Failure;
use antiphon_report::table::si;

use super::{CREATE, FOUR_TIMES, MACHINE, THREADS, TWICE};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, at};

pub static FIGURE: Figure = Figure {
    document: "004",
    name: "parking",
    title: "Effective parking strategy",
    how: How::Simulated {
        published: "the text has 1.3 to 3.7 times; the plot's values are lost",
        draw,
    },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let subjects = ["cst-mutex", "mcs-stp", "futex", "linux-mutex"];
    let curves = model.curves(CREATE, &subjects, &THREADS)?;
    let gains = |count| {
        let pair = (at(&curves, "cst-mutex", count), at(&curves, "linux-mutex", count));
        let what = format!("CST to the kernel's mutex, {count} threads");
        Compared::times(what, "1.3 to 3.7 times", pair, Bound::AtLeast(1.3))
    };
    let compared = vec![gains(MACHINE), gains(TWICE), gains(FOUR_TIMES)];
    let picture = Picture::Curves { over: "thread", curves, words: si };
    let panels = vec![Panel { title: "files a second".to_owned(), picture }];
    Ok(Drawing { conditions: model.conditions(CREATE), panels, compared })
}
