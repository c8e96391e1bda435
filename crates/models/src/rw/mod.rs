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

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::forms::{Backed, Insistent, Sleepy, Spinning};
use crate::program::{destruction, exclusion};
use crate::watched::{Watched, sorting};
use changing::{
    downgrading, downgrading_again, downgrading_for_a_reader, downgrading_in_line, upgrading,
    upgrading_in_time, upgrading_in_vain, upgrading_recursively,
};
use impatient::{giving_up, inquiring, tries};
use late::{beside_late_head, keeping_for_late_head};
pub use lock::{Lock, assert_free, read, unlock_read, unlock_write};
use preferred::{asking_again, asking_the_excused, fair_recursion, recursion, writer_first};
use row::coming_together;
pub use sharing::look_around;
use sharing::{leaving, sharing, sorting_kinds};

const PLAIN: Bounds = Bounds::PLAIN;
/// One spurious wake, one shortened spin and one answer that the machine is crowded, for each
/// thread.
const ANY: Bounds = PLAIN.spurious(1).crowded(1).expiries(1);

pub fn entries() -> Vec<Entry> {
    [
        exclusive(),
        shared(),
        downgraded(),
        upgraded(),
        impatient(),
        preferred(),
        shipped(),
        seats::entries(),
        spread::entries(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Writers alone.
fn exclusive() -> Vec<Entry> {
    let two_sockets = PLAIN.sockets(2);
    vec![
        Entry::new("shfl-rw/excludes-2x1", exclusion::<Lock>(2, 1), PLAIN),
        Entry::new("shfl-rw/excludes-2x2", exclusion::<Lock>(2, 2), PLAIN),
        Entry::new("shfl-rw/excludes-3x1", exclusion::<Lock>(3, 1), PLAIN),
        Entry::new("shfl-rw/destroyed-1+1", destruction::<Lock>(), PLAIN).reaches(&["retired"]),
        Entry::new("shfl-rw/sorts-3x1", sorting::<Lock<Sleepy, Watched>>(3), two_sockets),
        Entry::new("shfl-rw/sorts-kinds-2+2", sorting_kinds(2, 2), PLAIN)
            .by_lot(40_000)
            .reaches(&["shuffled"]),
    ]
}

/// Readers and writers.
fn shared() -> Vec<Entry> {
    let together = &["together"];
    let timed = PLAIN.timeouts(1);
    vec![
        Entry::new("shfl-rw/shares-1+1", sharing::<Sleepy>(1, 1, 1), PLAIN),
        Entry::new("shfl-rw/shares-any-platform-1+1", sharing::<Spinning>(1, 1, 1), ANY),
        Entry::new("shfl-rw/shares-twice-1+1", sharing::<Sleepy>(1, 1, 2), PLAIN).long(),
        Entry::new("shfl-rw/shares-2+1", sharing::<Sleepy>(2, 1, 1), PLAIN)
            .reaches(together)
            .long(),
        Entry::new("shfl-rw/shares-1+2", sharing::<Sleepy>(1, 2, 1), PLAIN).long(),
        Entry::new("shfl-rw/shares-2+2", sharing::<Sleepy>(2, 2, 1), PLAIN.spurious(1))
            .by_lot(10_000)
            .reaches(together),
        Entry::new("shfl-rw/shares-spinning-2+2", sharing::<Spinning>(2, 2, 2), ANY)
            .by_lot(10_000)
            .reaches(together),
        Entry::new("shfl-rw/backstop-1+1", sharing::<Backed>(1, 1, 1), timed),
        Entry::new("shfl-rw/backstop-awake-2+2", sharing::<Backed>(2, 2, 1), timed.awake())
            .by_lot(5_000),
        Entry::new("shfl-rw/backstop-2+2", sharing::<Backed>(2, 2, 1), timed.spurious(1))
            .by_lot(10_000),
        Entry::new("shfl-rw/exhausted-1+1", sharing::<Sleepy>(1, 1, 1), PLAIN.nodes(0)),
        Entry::new("shfl-rw/exhausted-2+1", sharing::<Sleepy>(2, 1, 1), PLAIN.nodes(0)).long(),
        Entry::new("shfl-rw/exhausted-but-one-1+2", sharing::<Sleepy>(1, 2, 1), PLAIN.nodes(1))
            .long(),
        Entry::new("shfl-rw/fair-1+1", sharing::<Insistent>(1, 1, 2), PLAIN).long(),
        Entry::new("shfl-rw/fair-2+2", sharing::<Insistent>(2, 2, 2), PLAIN.spurious(1))
            .by_lot(10_000),
        Entry::new("shfl-rw/left-for-good-1+1", leaving(), PLAIN).reaches(&["retired"]),
    ]
}

fn downgraded() -> Vec<Entry> {
    let together = &["together"];
    vec![
        Entry::new("shfl-rw/downgrades-1+1", downgrading(1, 0), PLAIN).reaches(together),
        Entry::new("shfl-rw/downgrades-for-reader-1+1", downgrading_for_a_reader(), PLAIN),
        Entry::new("shfl-rw/downgrades-in-line-1+1+1", downgrading_in_line(), PLAIN).long(),
        Entry::new("shfl-rw/downgrades-with-writer-1+1", downgrading(0, 1), PLAIN),
        Entry::new("shfl-rw/downgrades-beside-1+1+1", downgrading(1, 1), PLAIN).long(),
        Entry::new("shfl-rw/downgrades-2+1+1", downgrading(2, 1), PLAIN.spurious(1)).by_lot(10_000),
    ]
}

fn upgraded() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    let lot = |program| Entry::new("shfl-rw/upgrades-2+1+1", program, PLAIN.spurious(1));
    vec![
        Entry::new("shfl-rw/upgrades-2x1", upgrading(2, 0, 0), PLAIN),
        Entry::new("shfl-rw/upgrades-1+1", upgrading(1, 1, 0), PLAIN),
        Entry::new("shfl-rw/upgrades-with-writer-1+1", upgrading(1, 0, 1), PLAIN),
        Entry::new("shfl-rw/upgrades-beside-1+1+1", upgrading(1, 1, 1), PLAIN).long(),
        lot(upgrading(2, 1, 1)).by_lot(20_000),
        Entry::new("shfl-rw/upgrades-in-time-1+1", upgrading_in_time(1, 0), timed).reaches(gave_up),
        Entry::new("shfl-rw/upgrades-in-time-2+1+1", upgrading_in_time(2, 1), timed.spurious(1))
            .by_lot(10_000)
            .reaches(gave_up),
        Entry::new("shfl-rw/upgrades-in-vain-1+1", upgrading_in_vain(), timed),
        Entry::new("shfl-rw/upgrades-and-back-1+1", downgrading_again(1), PLAIN),
        Entry::new("shfl-rw/upgrades-without-node-1+1", upgrading(1, 1, 0), PLAIN.nodes(0)),
        Entry::new("shfl-rw/upgrades-recursively-1+1", upgrading_recursively(), PLAIN),
    ]
}

fn impatient() -> Vec<Entry> {
    let timed = PLAIN.timeouts(1);
    let gave_up = &["gave up"];
    let went = &["went"];
    vec![
        Entry::new("shfl-rw/inquires-1+1", inquiring(0, 1), PLAIN.spurious(1)).reaches(went),
        Entry::new("shfl-rw/inquires-beside-1+1+1", inquiring(1, 1), PLAIN).reaches(went).long(),
        Entry::new("shfl-rw/inquires-2+1+1", inquiring(2, 1), PLAIN.spurious(1))
            .by_lot(10_000)
            .reaches(went),
        Entry::new("shfl-rw/gives-up-reader-1+1", giving_up(0, 1, 1, 0), timed).reaches(gave_up),
        Entry::new("shfl-rw/gives-up-writer-1+1", giving_up(1, 0, 0, 1), timed).reaches(gave_up),
        Entry::new("shfl-rw/gives-up-writers-1+1+1", giving_up(2, 0, 0, 1), timed)
            .reaches(gave_up)
            .long(),
        Entry::new("shfl-rw/gives-up-2+2", giving_up(1, 1, 1, 1), timed.spurious(1))
            .by_lot(20_000)
            .reaches(gave_up),
        Entry::new("shfl-rw/tries-1+1", tries(0, 1), PLAIN.spurious(1)).reaches(&["busy"]),
        Entry::new("shfl-rw/tries-beside-1+1+1", tries(1, 1), PLAIN).reaches(&["busy"]).long(),
        Entry::new("shfl-rw/tries-2+1+1", tries(2, 1), PLAIN.spurious(1))
            .by_lot(10_000)
            .reaches(&["busy"]),
    ]
}

/// The order in which threads are let in.
fn preferred() -> Vec<Entry> {
    let passed = &["held twice beside a waiting writer"];
    let overtook = &["overtook"];
    vec![
        Entry::new("shfl-rw/prefers-writers-2+1", writer_first(), PLAIN),
        Entry::new("shfl-rw/asks-again-1+1", asking_again(), PLAIN).reaches(overtook),
        Entry::new(
            "shfl-rw/asks-though-excused-1+1+1",
            asking_the_excused(),
            PLAIN.timeouts(1).awake(),
        )
        .reaches(overtook)
        .long(),
        Entry::new("shfl-rw/late-head-beside-2+1", beside_late_head(), PLAIN)
            .by_lot(10_000)
            .reaches(&["beside"]),
        Entry::new("shfl-rw/late-head-kept-1+1", keeping_for_late_head(), PLAIN)
            .by_lot(10_000)
            .reaches(&["kept"]),
        Entry::new("shfl-rw/row-comes-in-2+1", coming_together(2, false), PLAIN)
            .by_lot(5_000)
            .reaches(&["before another"]),
        Entry::new("shfl-rw/row-comes-in-awake-3+1", coming_together(3, true), PLAIN)
            .by_lot(5_000)
            .reaches(&["before another"]),
        Entry::new("shfl-rw/recurses-1+1", recursion::<Sleepy>(1, true), PLAIN).reaches(passed),
        Entry::new("shfl-rw/recurses-1+2", recursion::<Sleepy>(2, true), PLAIN.spurious(1))
            .by_lot(10_000)
            .reaches(passed),
        Entry::new(
            "shfl-rw+recursive/recurses-1+1",
            recursion::<Recursive<Sleepy>>(1, false),
            PLAIN,
        )
        .reaches(passed),
        Entry::new("shfl-rw+recursive/fair-recurses-1+1", fair_recursion(), PLAIN.timeouts(1))
            .reaches(passed)
            .long(),
        Entry::new(
            "shfl-rw+recursive/fair-recurses-by-lot-1+1",
            fair_recursion(),
            PLAIN.timeouts(1),
        )
        .by_lot(10_000)
        .reaches(passed),
        Entry::new("shfl-rw+recursive/shares-2+1", sharing::<Recursive<Sleepy>>(2, 1, 1), PLAIN)
            .reaches(&["together"])
            .long(),
        Entry::new("shfl-rw+recursive/shares-2+2", sharing::<Recursive<Insistent>>(2, 2, 2), PLAIN)
            .by_lot(10_000)
            .reaches(&["together"]),
    ]
}

fn shipped() -> Vec<Entry> {
    let tired = PLAIN.expiries(3).timeouts(1);
    vec![
        Entry::new("shfl-rw/shipped-1+1", sharing::<Standard>(1, 1, 1), tired),
        Entry::new("shfl-rw/shipped-2+2", sharing::<Standard>(2, 2, 2), tired.spurious(1))
            .by_lot(5_000)
            .reaches(&["together"]),
        Entry::new("shfl-rw+recursive/shipped-2+2", sharing::<Recursive>(2, 2, 2), tired)
            .by_lot(5_000)
            .reaches(&["together"]),
    ]
}
