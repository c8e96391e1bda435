//! Models of the flight recorder's ring: a reader gets complete records, in order and without a
//! gap, although the writer never waits.

use antiphon_check::{Check, Data, probe};
use antiphon_runtime::flight::Ring;

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

pub fn entries() -> Vec<Entry> {
    let cases = &["all", "some"];
    Subject("flight").models([
        model("read-1+1", read(2, 3, 1), PLAIN).reaches(cases),
        model("larger-1+1", read(3, 4, 1), PLAIN).reaches(cases),
        model("latest-1+1", latest(2, 3), PLAIN).reaches(&["got", "missed"]),
        model("readers-1+2", read(2, 3, 2), PLAIN).by_lot(2_000).reaches(cases),
    ])
}

/// Words of a record, both of which contain its number, counted from 1.
const WORDS: usize = 2;

/// One thread writes `records` records, into a ring of `slots`; other threads read, once each.
fn read(slots: usize, records: u64, readers: u32) -> Program {
    Program::new(1 + readers, records as u32 + readers, move |scope| {
        let ring = scope.share(Ring::<Check, WORDS>::new(slots));
        let written = scope.share((0..=records).map(|_| Data::new(false)).collect::<Vec<_>>());
        scope.spawn(move || {
            for number in 1..=records {
                written[number as usize].set(true);
                ring.write([number; WORDS]);
            }
        });
        scope.spawn_each(0..readers, move |_| {
            let read = ring.read();
            assert_whole(&read);
            // A reader that gets a record sees what was done before it was written; otherwise
            // this is a data race.
            let seen = |&[number, _]: &[u64; WORDS]| written[number as usize].get();
            assert!(read.iter().all(seen));
            probe(if read.len() == slots - 1 { "all" } else { "some" });
        });
        // The slot of the oldest record belongs to the next one.
        scope.finally(move || {
            let read = ring.read();
            assert_whole(&read);
            let first = records - (slots as u64 - 1) + 1;
            assert!(read.iter().map(|record| record[0]).eq(first..=records), "{read:?}");
        });
    })
}

/// One thread writes `records` records; another reads the latest, which is complete, or finds none.
fn latest(slots: usize, records: u64) -> Program {
    Program::new(2, records as u32 + 1, move |scope| {
        let ring = scope.share(Ring::<Check, WORDS>::new(slots));
        scope.spawn(move || (1..=records).for_each(|number| ring.write([number; WORDS])));
        scope.spawn(move || {
            let latest = ring.latest();
            assert_whole(latest.as_slice());
            probe(if latest.is_some() { "got" } else { "missed" });
        });
        scope.finally(move || assert_eq!(ring.latest(), Some([records; WORDS])));
    })
}

fn assert_whole(read: &[[u64; WORDS]]) {
    assert!(read.iter().all(|&[one, other]| one == other && one > 0), "{read:?}");
    assert!(read.windows(2).all(|pair| pair[0][0] + 1 == pair[1][0]), "{read:?}");
}
