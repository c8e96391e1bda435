//! Items of channels and stages: a fixed number of bytes, which are copied in and out.

use core::ffi::c_void;
use core::mem::MaybeUninit;

/// Maximum size of an item, in bytes.
const MOST: usize = 1 << 20;
/// Items of up to this many bytes need no allocation.
const FEW: usize = size_of::<Few>();

type Few = [MaybeUninit<u64>; 4];
/// Aligned like memory from malloc.
type Unit = MaybeUninit<u128>;

/// The bytes of an item; their number is stored elsewhere, in the [`Shape`].
pub(crate) enum Item {
    Few(Few),
    Many(Box<[Unit]>),
}

/// The number of bytes of a channel's or stage's items, at most `MOST`.
#[derive(Clone, Copy)]
pub(crate) struct Shape(usize);

impl Shape {
    /// Returns `None` if `bytes` is more than an item may have.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        (bytes <= MOST).then_some(Self(bytes))
    }

    /// Copies an item in.
    ///
    /// # Safety
    ///
    /// At least as many bytes as the shape has may be read from `from`, unless that number is 0.
    pub(crate) unsafe fn copy_in(self, from: *const c_void) -> Item {
        let mut item = if self.0 <= FEW {
            Item::Few([MaybeUninit::uninit(); _])
        } else {
            Item::Many(vec![Unit::uninit(); self.0.div_ceil(size_of::<Unit>())].into())
        };
        if self.0 > 0 {
            // SAFETY: the caller's promise; and the item has as many bytes, by the above.
            unsafe { core::ptr::copy_nonoverlapping(from.cast(), item.bytes(), self.0) };
        }
        item
    }

    /// Copies an item of this shape to `into`.
    ///
    /// # Safety
    ///
    /// At least as many bytes as the shape has may be written to `into`, unless that number is 0.
    pub(crate) unsafe fn copy_out(self, mut item: Item, into: *mut c_void) {
        if self.0 > 0 {
            // SAFETY: the caller's promise; and the item has as many bytes: it was copied in by
            // this shape.
            unsafe { core::ptr::copy_nonoverlapping(item.bytes(), into.cast(), self.0) };
        }
    }
}

impl Item {
    /// Returns the address of its bytes, aligned to eight, and to sixteen if it has more than 32.
    pub(crate) fn bytes(&mut self) -> *mut u8 {
        match self {
            Self::Few(few) => few.as_mut_ptr().cast(),
            Self::Many(many) => many.as_mut_ptr().cast(),
        }
    }
}
