//! Models of the ShflLock readers-writer lock: exhaustively within the stated bounds, by lot
//! beyond.

mod changing;
mod impatient;
mod late;
mod lock;
mod preferred;
mod row;
mod seats;
mod sharing;
mod spread;

use antiphon_sync::lock::{Recursive, Standard};

use crate::bounds::{ANY, NUMA, PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::forms::{Backed, Insistent, Sleepy, Spinning};
use crate::program::{GAVE_UP, destruction, exclusion};
use crate::watched::{Watched, sorting};
use changing::{
    downgrading, downgrading_again, downgrading_for_a_reader, downgrading_in_line, upgrading,
    upgrading_in_time, upgrading_in_vain, upgrading_recursively,
};
use impatient::{giving_up, inquiring, tries};
use late::{beside_late_head, keeping_for_late_head};
pub use lock::{Lock, assert_free, read, unlock_read, visit};
use preferred::{asking_again, asking_the_excused, fair_recursion, recursion, writer_first};
use row::coming_together;
pub use sharing::look_around;
use sharing::{leaving, sharing, sorting_kinds};

pub fn entries() -> Vec<Entry> {
    all_of([
        exclusive(),
        shared(),
        downgraded(),
        upgraded(),
        impatient(),
        preferred(),
        shipped(),
        seats::entries(),
        spread::entries(),
    ])
}

/// Writers alone.
fn exclusive() -> Vec<Entry> {
    Subject("shfl-rw").models([
        model("excludes-2x1", exclusion::<Lock>(2, 1), PLAIN),
        model("excludes-2x2", exclusion::<Lock>(2, 2), PLAIN),
        model("excludes-3x1", exclusion::<Lock>(3, 1), PLAIN),
        model("destroyed-1+1", destruction::<Lock>(), PLAIN).reaches(&["retired"]),
        model("sorts-3x1", sorting::<Lock<Sleepy, Watched>>(3), NUMA),
        model("sorts-kinds-2+2", sorting_kinds(2, 2), PLAIN).by_lot(40_000).reaches(&["shuffled"]),
    ])
}

/// Readers and writers.
fn shared() -> Vec<Entry> {
    let together = &["together"];
    Subject("shfl-rw").models([
        model("shares-1+1", sharing::<Sleepy>(1, 1, 1), PLAIN),
        model("shares-any-platform-1+1", sharing::<Spinning>(1, 1, 1), ANY),
        model("shares-twice-1+1", sharing::<Sleepy>(1, 1, 2), PLAIN).long(),
        model("shares-2+1", sharing::<Sleepy>(2, 1, 1), PLAIN).reaches(together).long(),
        model("shares-1+2", sharing::<Sleepy>(1, 2, 1), PLAIN).long(),
        model("shares-2+2", sharing::<Sleepy>(2, 2, 1), SPURIOUS).by_lot(10_000).reaches(together),
        model("shares-spinning-2+2", sharing::<Spinning>(2, 2, 2), ANY)
            .by_lot(10_000)
            .reaches(together),
        model("backstop-1+1", sharing::<Backed>(1, 1, 1), TIMED),
        model("backstop-awake-2+2", sharing::<Backed>(2, 2, 1), TIMED.awake()).by_lot(5_000),
        model("backstop-2+2", sharing::<Backed>(2, 2, 1), TIMED.spurious(1)).by_lot(10_000),
        model("exhausted-1+1", sharing::<Sleepy>(1, 1, 1), PLAIN.nodes(0)),
        model("exhausted-2+1", sharing::<Sleepy>(2, 1, 1), PLAIN.nodes(0)).long(),
        model("exhausted-but-one-1+2", sharing::<Sleepy>(1, 2, 1), PLAIN.nodes(1)).long(),
        model("fair-1+1", sharing::<Insistent>(1, 1, 2), PLAIN).long(),
        model("fair-2+2", sharing::<Insistent>(2, 2, 2), SPURIOUS).by_lot(10_000),
        model("left-for-good-1+1", leaving(), PLAIN).reaches(&["retired"]),
    ])
}

fn downgraded() -> Vec<Entry> {
    let together = &["together"];
    Subject("shfl-rw").models([
        model("downgrades-1+1", downgrading(1, 0), PLAIN).reaches(together),
        model("downgrades-for-reader-1+1", downgrading_for_a_reader(), PLAIN),
        model("downgrades-in-line-1+1+1", downgrading_in_line(), PLAIN).long(),
        model("downgrades-with-writer-1+1", downgrading(0, 1), PLAIN),
        model("downgrades-beside-1+1+1", downgrading(1, 1), PLAIN).long(),
        model("downgrades-2+1+1", downgrading(2, 1), SPURIOUS).by_lot(10_000),
    ])
}

fn upgraded() -> Vec<Entry> {
    let lot = |program| model("upgrades-2+1+1", program, SPURIOUS);
    Subject("shfl-rw").models([
        model("upgrades-2x1", upgrading(2, 0, 0), PLAIN),
        model("upgrades-1+1", upgrading(1, 1, 0), PLAIN),
        model("upgrades-with-writer-1+1", upgrading(1, 0, 1), PLAIN),
        model("upgrades-beside-1+1+1", upgrading(1, 1, 1), PLAIN).long(),
        lot(upgrading(2, 1, 1)).by_lot(20_000),
        model("upgrades-in-time-1+1", upgrading_in_time(1, 0), TIMED).reaches(GAVE_UP),
        model("upgrades-in-time-2+1+1", upgrading_in_time(2, 1), TIMED.spurious(1))
            .by_lot(10_000)
            .reaches(GAVE_UP),
        model("upgrades-in-vain-1+1", upgrading_in_vain(), TIMED),
        model("upgrades-and-back-1+1", downgrading_again(1), PLAIN),
        model("upgrades-without-node-1+1", upgrading(1, 1, 0), PLAIN.nodes(0)),
        model("upgrades-recursively-1+1", upgrading_recursively(), PLAIN),
    ])
}

fn impatient() -> Vec<Entry> {
    let went = &["went"];
    Subject("shfl-rw").models([
        model("inquires-1+1", inquiring(0, 1), SPURIOUS).reaches(went),
        model("inquires-beside-1+1+1", inquiring(1, 1), PLAIN).reaches(went).long(),
        model("inquires-2+1+1", inquiring(2, 1), SPURIOUS).by_lot(10_000).reaches(went),
        model("gives-up-reader-1+1", giving_up(0, 1, 1, 0), TIMED).reaches(GAVE_UP),
        model("gives-up-writer-1+1", giving_up(1, 0, 0, 1), TIMED).reaches(GAVE_UP),
        model("gives-up-writers-1+1+1", giving_up(2, 0, 0, 1), TIMED).reaches(GAVE_UP).long(),
        model("gives-up-2+2", giving_up(1, 1, 1, 1), TIMED.spurious(1))
            .by_lot(20_000)
            .reaches(GAVE_UP),
        model("tries-1+1", tries(0, 1), SPURIOUS).reaches(&["busy"]),
        model("tries-beside-1+1+1", tries(1, 1), PLAIN).reaches(&["busy"]).long(),
        model("tries-2+1+1", tries(2, 1), SPURIOUS).by_lot(10_000).reaches(&["busy"]),
    ])
}

/// The order in which threads are let in.
fn preferred() -> Vec<Entry> {
    let passed = &["held twice beside a waiting writer"];
    let overtook = &["overtook"];
    all_of([
        Subject("shfl-rw").models([
            model("prefers-writers-2+1", writer_first(), PLAIN),
            model("asks-again-1+1", asking_again(), PLAIN).reaches(overtook),
            model("asks-though-excused-1+1+1", asking_the_excused(), TIMED.awake())
                .reaches(overtook)
                .long(),
            model("late-head-beside-2+1", beside_late_head(), PLAIN)
                .by_lot(10_000)
                .reaches(&["beside"]),
            model("late-head-kept-1+1", keeping_for_late_head(), PLAIN)
                .by_lot(10_000)
                .reaches(&["kept"]),
            model("row-comes-in-2+1", coming_together(2, false), PLAIN)
                .by_lot(5_000)
                .reaches(&["before another"]),
            model("row-comes-in-awake-3+1", coming_together(3, true), PLAIN)
                .by_lot(5_000)
                .reaches(&["before another"]),
            model("recurses-1+1", recursion::<Sleepy>(1, true), PLAIN).reaches(passed),
            model("recurses-1+2", recursion::<Sleepy>(2, true), SPURIOUS)
                .by_lot(10_000)
                .reaches(passed),
        ]),
        Subject("shfl-rw+recursive").models([
            model("recurses-1+1", recursion::<Recursive<Sleepy>>(1, false), PLAIN).reaches(passed),
            model("fair-recurses-1+1", fair_recursion(), TIMED).reaches(passed).long(),
            model("fair-recurses-by-lot-1+1", fair_recursion(), TIMED)
                .by_lot(10_000)
                .reaches(passed),
            model("shares-2+1", sharing::<Recursive<Sleepy>>(2, 1, 1), PLAIN)
                .reaches(&["together"])
                .long(),
            model("shares-2+2", sharing::<Recursive<Insistent>>(2, 2, 2), PLAIN)
                .by_lot(10_000)
                .reaches(&["together"]),
        ]),
    ])
}

fn shipped() -> Vec<Entry> {
    let tired = PLAIN.expiries(3).timeouts(1);
    all_of([
        Subject("shfl-rw").models([
            model("shipped-1+1", sharing::<Standard>(1, 1, 1), tired),
            model("shipped-2+2", sharing::<Standard>(2, 2, 2), tired.spurious(1))
                .by_lot(5_000)
                .reaches(&["together"]),
        ]),
        Subject("shfl-rw+recursive").models([model(
            "shipped-2+2",
            sharing::<Recursive>(2, 2, 2),
            tired,
        )
        .by_lot(5_000)
        .reaches(&["together"])]),
    ])
}
