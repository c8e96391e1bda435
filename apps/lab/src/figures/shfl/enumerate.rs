//! "RWLocks performance: Throughput": each thread lists a directory that all share.

use antiphon_report::failure::Failure;
use antiphon_report::table::si;

use super::{LOST, MACHINE, THREADS};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Locks, Model, at};

pub static FIGURE: Figure = Figure {
    document: "000",
    name: "enumerate",
    title: "RWLocks performance: Throughput",
    how: How::Simulated { published: LOST, draw },
};

const ENUMERATE: Locks = Locks { machine: "8s-192c", case: "enumerate", ms: 0.5 };
const STOCK: &str = "linux-rwsem";
const CST: &str = "cst-rwlock";
/// The document's form, with one counter of readers.
const CENTRAL: &str = "shfl-rwlock+central";

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let subjects = [STOCK, CST, CENTRAL, "shfl-rwlock"];
    let curves = model.curves(ENUMERATE, &subjects, &THREADS)?;
    let of = |name| at(&curves, name, MACHINE);
    let more = |what, one, other| {
        let order = "CST > ShflLock > stock";
        Compared::times(what, order, (of(one), of(other)), Bound::AtLeast(1.0))
    };
    let compared = vec![
        more("CST to ShflLock with one counter, 192 threads", CST, CENTRAL),
        more("ShflLock with one counter to the kernel's, 192 threads", CENTRAL, STOCK),
    ];
    let picture = Picture::Curves { over: "thread", curves, words: si };
    let panels = vec![Panel { title: "listings a second".to_owned(), picture }];
    Ok(Drawing { conditions: model.conditions(ENUMERATE), panels, compared })
}
