//! Tests of the state of one CPU, and of figures and options.
#![cfg(target_arch = "x86_64")]

use std::collections::BTreeMap;

use antiphon_metal::deadlines::{Alarm, Deadlines};
use antiphon_metal::options::Options;
use antiphon_metal::statistics::{Summary, deviation};
use proptest::prelude::*;

proptest! {
    /// Compares the heap with a map: alarms are set, unset and taken in random order.
    #[test]
    fn deadlines_come_in_order(
        steps in prop::collection::vec((0_u8..3, 0_usize..12, 0_u64..50), 0..200),
    ) {
        let alarms: Vec<Alarm<usize>> = (0..12).map(|_| Alarm::new()).collect();
        let mut deadlines = Deadlines::NEW;
        deadlines.make_room(12);
        let mut expected: BTreeMap<usize, u64> = BTreeMap::new();
        for (step, which, at) in steps {
            match step {
                0 if !alarms[which].is_set() => {
                    // SAFETY: the alarm is not set, and does not move.
                    unsafe { deadlines.set(&raw const alarms[which], at, which) };
                    expected.insert(which, at);
                }
                1 => {
                    deadlines.unset(&alarms[which]);
                    expected.remove(&which);
                }
                _ => {
                    let due = deadlines.take_due(at);
                    let first = expected.values().min().copied();
                    prop_assert_eq!(due.is_some(), first.is_some_and(|first| first <= at));
                    if let Some(due) = due {
                        prop_assert_eq!(expected.remove(&due), first);
                    }
                }
            }
            prop_assert_eq!(deadlines.first_ns(), expected.values().min().copied());
            let set = alarms.iter().filter(|alarm| alarm.is_set()).count();
            prop_assert_eq!(set, expected.len());
        }
    }

    #[test]
    fn statistics_are_of_the_sorted_samples(
        mut samples in prop::collection::vec(0_u64..1000, 1..300),
    ) {
        let sigma = deviation(&samples);
        let summary = Summary::of(&mut samples).expect("samples");
        prop_assert_eq!(summary.min, samples[0]);
        prop_assert_eq!(summary.max, samples[samples.len() - 1]);
        prop_assert!(summary.min <= summary.median && summary.median <= summary.p99);
        let above = samples.iter().filter(|&&sample| sample > summary.p99).count();
        prop_assert!(above * 100 <= samples.len());
        prop_assert!(sigma <= summary.max - summary.min);
    }
}

#[test]
fn statistics_of_known_samples() {
    assert_eq!(deviation(&[2, 4, 4, 4, 5, 5, 7, 9]), 2);
    assert_eq!(deviation(&[]), 0);
    assert_eq!(Summary::of(&mut []), None);
}

#[test]
fn the_last_word_of_a_name_counts() {
    let options = Options("a=1 program=hello  b=x a=22 ab=3");
    assert_eq!(options.get("a"), Some("22"));
    assert_eq!(options.get("program"), Some("hello"));
    assert_eq!(options.number("a", 5), Ok(22));
    assert_eq!(options.number("c", 5), Ok(5));
    assert_eq!(options.number("b", 5), Err("x"));
}
