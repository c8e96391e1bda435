//! Sizes and alignments. `antiphon.h` asserts the same numbers, and the tests compare the two.

use core::ffi::c_int;

use crate::broadcast::Broadcast;
use crate::clock::Clock;
use crate::cond::Cond;
use crate::coop::CoopAnswer;
use crate::coop::seat::{CoopStatus, Part};
use crate::event::{Event, Latch};
use crate::event_count::{EventCount, EventKey};
use crate::event_loop::watch::{LoopBucket, LoopSighting, LoopStats};
use crate::event_loop::{LoopEvent, LoopOptions, LoopTrouble, LoopTurn};
use crate::export::exports;
use crate::message::{Delivered, Message};
use crate::mutex::Mutex;
use crate::pool::TaskGroup;
use crate::rw::RwLock;
use crate::select::Case;
use crate::spin::Spin;
use crate::stage::{StageOptions, StageStats};
use crate::waits::{Barrier, Once, Semaphore};
use crate::{pshared, pshared_event, split};

/// Asserts the types' sizes and alignments, and finds them by the header's number of the type.
macro_rules! layout {
    ($($number:literal $type:ty: $size:literal, $align:literal;)*) => {
        $(const _: () = assert!(size_of::<$type>() == $size && align_of::<$type>() == $align);)*

        fn layout(number: c_int) -> Option<(usize, usize)> {
            match number {
                $($number => Some((size_of::<$type>(), align_of::<$type>())),)*
                _ => None,
            }
        }
    };
}

layout! {
    1 Mutex: 8, 8;
    2 RwLock: 16, 8;
    3 Spin: 4, 4;
    4 Cond: 32, 8;
    5 Barrier: 32, 8;
    6 Semaphore: 16, 8;
    7 Once: 4, 4;
    8 pshared::RwLock: 4, 4;
    9 pshared::Barrier: 8, 4;
    10 Event: 192, 64;
    11 Latch: 24, 8;
    12 EventCount: 16, 8;
    13 EventKey: 32, 8;
    14 Broadcast: 1152, 128;
    15 pshared_event::Event: 4, 4;
    16 Clock: 72, 8;
    17 Message: 32, 8;
    18 Delivered: 16, 4;
    19 pshared_event::Latch: 8, 4;
    20 pshared_event::Broadcast: 4, 4;
    21 TaskGroup: 16, 8;
    22 Case: 24, 8;
    23 StageOptions: 40, 8;
    24 StageStats: 48, 8;
    25 LoopEvent: 48, 8;
    26 LoopTurn: 16, 8;
    27 LoopStats: 64, 8;
    28 Part: 64, 8;
    29 CoopAnswer: 24, 8;
    30 CoopStatus: 96, 8;
    31 LoopOptions: 56, 8;
    32 LoopTrouble: 32, 8;
    33 LoopBucket: 16, 8;
    34 LoopSighting: 16, 8;
    35 split::Options: 24, 8;
    36 split::SplitStats: 40, 8;
}

exports! {
    /// The size and alignment of a type.
    fn antiphon_layout(number: c_int, size: &mut usize, align: &mut usize) -> c_int {
        match layout(number) {
            Some(found) => {
                (*size, *align) = found;
                0
            }
            None => libc::EINVAL,
        }
    }
}
