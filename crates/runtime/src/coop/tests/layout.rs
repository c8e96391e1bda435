//! The layout that `docs/coop-line.md` gives, checked by the compiler on Linux.

use core::mem::offset_of;

use antiphon_linux::Linux;

use crate::coop::line::{Header, Line, Now, PAGE_BYTES, PLACES, Page, Tally};
use crate::coop::relay::Relay;

#[test]
fn the_page_is_as_documented() {
    assert_eq!(offset_of!(Page<Linux>, header), 0);
    assert_eq!(offset_of!(Page<Linux>, now), 64);
    assert_eq!(offset_of!(Page<Linux>, lines), 128);
    assert_eq!(offset_of!(Page<Linux>, tallies), 4224);
    assert_eq!((size_of::<Page<Linux>>(), PLACES), (6272, 64));
    assert!(size_of::<Page<Linux>>() <= PAGE_BYTES);
}

#[test]
fn the_header_is_as_documented() {
    assert_eq!(offset_of!(Header<Linux>, magic), 0);
    assert_eq!(offset_of!(Header<Linux>, version), 8);
    assert_eq!(offset_of!(Header<Linux>, used), 12);
    assert_eq!(offset_of!(Header<Linux>, options), 16);
    assert_eq!(offset_of!(Header<Linux>, namespace), 48);
    assert_eq!(offset_of!(Now<Linux>, relay), 0);
    assert_eq!(offset_of!(Relay<Linux>, baton), 0);
    assert_eq!(offset_of!(Relay<Linux>, guard), 8);
    assert_eq!(offset_of!(Relay<Linux>, watcher), 12);
    assert_eq!(offset_of!(Now<Linux>, since_ns), 16);
    assert_eq!(offset_of!(Now<Linux>, slice_end_ns), 24);
    assert_eq!(offset_of!(Now<Linux>, until_ns), 32);
    assert_eq!(offset_of!(Now<Linux>, least), 40);
    assert_eq!(offset_of!(Now<Linux>, turns), 48);
    assert_eq!(offset_of!(Now<Linux>, died), 56);
}

#[test]
fn a_line_is_as_documented_and_a_cache_line() {
    assert_eq!((size_of::<Line<Linux>>(), align_of::<Line<Linux>>()), (64, 64));
    assert_eq!(offset_of!(Line<Linux>, thread), 0);
    assert_eq!(offset_of!(Line<Linux>, turn), 4);
    assert_eq!(offset_of!(Line<Linux>, release), 8);
    assert_eq!(offset_of!(Line<Linux>, importance), 16);
    assert_eq!(offset_of!(Line<Linux>, virtual_time), 24);
    assert_eq!(offset_of!(Line<Linux>, charged_ns), 32);
    assert_eq!(offset_of!(Line<Linux>, others_release), 40);
    assert_eq!(offset_of!(Line<Linux>, others_importance), 48);
    assert_eq!(offset_of!(Line<Linux>, group), 56);
    assert_eq!(offset_of!(Line<Linux>, bits), 60);
}

#[test]
fn a_tally_is_as_documented() {
    assert_eq!(size_of::<Tally<Linux>>(), 32);
    assert_eq!(offset_of!(Tally<Linux>, last_turn), 0);
    assert_eq!(offset_of!(Tally<Linux>, demotions), 8);
    assert_eq!(offset_of!(Tally<Linux>, steps), 20);
    assert_eq!(offset_of!(Tally<Linux>, began_ns), 24);
}
