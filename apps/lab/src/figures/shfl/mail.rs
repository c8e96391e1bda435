//! "SHFLLOCK improves Exim's performance": a mail service with three locks.

use antiphon_report::failure::Failure;
use antiphon_report::table::si;

use super::scaling::MAIL;
use super::{LOST, MACHINE, THREADS, TWICE};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, at};

pub static FIGURE: Figure = Figure {
    document: "000",
    name: "exim",
    title: "SHFLLOCK improves Exim's performance",
    how: How::Simulated { published: LOST, draw },
};

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = model.curves(MAIL, &["linux-mutex", "cst-mutex", "shfl-mutex"], &THREADS)?;
    let to = |other, count| (at(&curves, "shfl-mutex", count), at(&curves, other, count));
    let better = |what, other, count| {
        Compared::times(what, "improves", to(other, count), Bound::AtLeast(1.0))
    };
    let compared = vec![
        better("to the kernel's mutex, 192 threads", "linux-mutex", MACHINE),
        better("to the kernel's mutex, 384 threads", "linux-mutex", TWICE),
        better("to CST, 192 threads", "cst-mutex", MACHINE),
        better("to CST, 384 threads", "cst-mutex", TWICE),
    ];
    let picture = Picture::Curves { over: "thread", curves, words: si };
    let panels = vec![Panel { title: "messages a second".to_owned(), picture }];
    Ok(Drawing { conditions: model.conditions(MAIL), panels, compared })
}
