//! "Case study: Psearchy": page faults against maps of one process, whose lock is a readers-writer
//! lock. The program itself is not run.

use antiphon_report::failure::Failure;
use antiphon_report::page::bars::Bar;
use antiphon_report::table::si;

use super::{MACHINE, TWICE};
use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Locks, Model, at, machine};
use crate::sim::memory::{Counted, rows};

pub static FIGURE: Figure = Figure {
    document: "004",
    name: "psearchy",
    title: "Case study: Psearchy",
    how: How::Simulated {
        published: "the text has 1.4 to 1.6 times the throughput and 1.5 to 9.1 times less memory",
        draw,
    },
};

const FAULTS: Locks = Locks { machine: "8s-120c", case: "mmap", ms: 1.0 };
const SUBJECTS: [&str; 3] = ["linux-rwsem", "cohort-rw", "cst-rwlock"];

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let curves = model.curves(FAULTS, &SUBJECTS, &[1, 15, 30, 60, MACHINE, TWICE])?;
    let gain = |count| (at(&curves, "cst-rwlock", count), at(&curves, "linux-rwsem", count));
    // A lock that threads of one socket use, and one that threads of all sockets use.
    let inodes = |visits| {
        let counted = Counted::on(machine("8s-192c"), visits, model.seed())?;
        Ok(rows(machine("8s-192c"), 1_000_000, &counted))
    };
    let [few, many] = [inodes(0)?, inodes(8)?];
    let less = |rows: &[crate::sim::memory::Row]| {
        let of = |lock| rows.iter().find(|row| row.lock == lock).map_or(f64::NAN, |row| row.bytes);
        (of("cohort-tkt-mcs"), of("cst-mutex"))
    };
    let faster = |count| {
        let what = format!("CST to the kernel's lock, {count} threads");
        Compared::times(what, "1.4 to 1.6 times", gain(count), Bound::Near(1.5))
    };
    let compared = vec![
        faster(MACHINE),
        faster(TWICE),
        Compared::times(
            "memory of a cohort lock to CST's, locks of few sockets",
            "9.1 times at most",
            less(&few),
            Bound::AtMost(9.1),
        ),
        Compared::times(
            "the same, locks of most sockets",
            "1.5 times at least",
            less(&many),
            Bound::AtLeast(1.5),
        ),
    ];
    let bar = |group: &str, row: &crate::sim::memory::Row| Bar {
        group: group.to_owned(),
        name: row.lock.to_owned(),
        value: Some(row.bytes),
        about: format!("{} in a million inodes", row.lock),
    };
    let few = few.iter().map(|row| bar("few", row));
    let bars = few.chain(many.iter().map(|row| bar("most", row))).collect();
    let panels = vec![
        Panel {
            title: "faults and maps a second".to_owned(),
            picture: Picture::Curves { over: "thread", curves, words: si },
        },
        Panel {
            title: "bytes of a million locks, each used by few sockets or by most".to_owned(),
            picture: Picture::Bars { bars, words: si },
        },
    ];
    let conditions = format!(
        "{}; memory on 8s-192c. A model of page faults: Psearchy is not run",
        model.conditions(FAULTS)
    );
    Ok(Drawing { conditions, panels, compared })
}
