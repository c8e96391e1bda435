//! What channels and stages carry: so many bytes, which are copied in and out.

use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Bytes of an item, and no more than this.
const MOST: usize = 1 << 20;
/// So many need no allocation.
const FEW: usize = size_of::<Few>();

type Few = [MaybeUninit<u64>; 4];
/// Aligned as what malloc returns.
type Unit = MaybeUninit<u128>;

/// An item, or what there is of it: who takes it out knows how many bytes it has.
pub(crate) enum Item {
    Few(Few),
    Many(Box<[Unit]>),
}

/// How many bytes the items of somebody have: `MOST` at most.
#[derive(Clone, Copy)]
pub(crate) struct Shape(usize);

impl Shape {
    /// `None`: there are no items of so many bytes.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        (bytes <= MOST).then_some(Self(bytes))
    }

    /// A copy of what is there.
    ///
    /// # Safety
    ///
    /// So many bytes may be read there, or there are none.
    pub(crate) unsafe fn copy_in(self, from: *const c_void) -> Item {
        let mut item = if self.0 <= FEW {
            Item::Few([MaybeUninit::uninit(); _])
        } else {
            Item::Many(vec![Unit::uninit(); self.0.div_ceil(size_of::<Unit>())].into())
        };
        if self.0 > 0 {
            // SAFETY: the caller's; and as many are there, by the above.
            unsafe { core::ptr::copy_nonoverlapping(from.cast(), item.bytes(), self.0) };
        }
        item
    }

    /// Copies an item of this shape to there.
    ///
    /// # Safety
    ///
    /// So many bytes may be written there, or there are none.
    pub(crate) unsafe fn copy_out(self, mut item: Item, into: *mut c_void) {
        if self.0 > 0 {
            // SAFETY: the caller's; and as many are there: it was copied in by this shape.
            unsafe { core::ptr::copy_nonoverlapping(item.bytes(), into.cast(), self.0) };
        }
    }
}

impl Item {
    /// Where its bytes are, aligned to eight, and to sixteen if it has more than 32.
    pub(crate) fn bytes(&mut self) -> *mut u8 {
        match self {
            Self::Few(few) => few.as_mut_ptr().cast(),
            Self::Many(many) => many.as_mut_ptr().cast(),
        }
    }
}
