//! Peers from Rust: `std::sync::RwLock` and `parking_lot`.

use std::sync::PoisonError;

use parking_lot::lock_api::RawRwLock as _;

use crate::bench::locks::subjects::Subject;

/// `std::sync::RwLock<()>`, with its poison flag: that is what programs use.
pub struct Std(std::sync::RwLock<()>);

impl Subject for Std {
    fn new() -> Result<Self, String> {
        Ok(Self(std::sync::RwLock::new(())))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let result = section();
        drop(guard);
        result
    }

    #[inline]
    fn share<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let result = section();
        drop(guard);
        result
    }
}

/// The lock of one word under `parking_lot::RwLock`.
pub struct ParkingLot(parking_lot::RawRwLock);

impl Subject for ParkingLot {
    fn new() -> Result<Self, String> {
        Ok(Self(parking_lot::RawRwLock::INIT))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.lock_exclusive();
        let result = section();
        // SAFETY: `guard` is of the acquisition above, and was not given back meanwhile.
        unsafe { self.0.unlock_exclusive(guard) };
        result
    }

    #[inline]
    fn share<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.lock_shared();
        let result = section();
        // SAFETY: `guard` is of the acquisition above, and was not given back meanwhile.
        unsafe { self.0.unlock_shared(guard) };
        result
    }
}
