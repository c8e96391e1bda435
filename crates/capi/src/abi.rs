//! Sizes and alignments. `antiphon.h` asserts the same numbers, and the tests compare the two.

use core::ffi::c_int;

use crate::cond::Cond;
use crate::export::exports;
use crate::mutex::Mutex;
use crate::pshared;
use crate::rw::RwLock;
use crate::spin::Spin;
use crate::waits::{Barrier, Once, Semaphore};

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
    5 Barrier: 16, 8;
    6 Semaphore: 16, 8;
    7 Once: 4, 4;
    8 pshared::RwLock: 4, 4;
    9 pshared::Barrier: 8, 4;
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
