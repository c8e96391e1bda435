//! Peers from Rust: `std::sync::RwLock` and `parking_lot`.

use std::sync::PoisonError;

use parking_lot::lock_api::RawRwLock as _;

use crate::bench::locks::subjects::Subject;

/// `std::sync::RwLock<()>` with its poison flag, as programs use it.
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

/// The one-word lock under `parking_lot::RwLock`.
pub struct ParkingLot(parking_lot::RawRwLock);

impl Subject for ParkingLot {
    fn new() -> Result<Self, String> {
        Ok(Self(parking_lot::RawRwLock::INIT))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.lock_exclusive();
        let result = section();
        // SAFETY: `guard` belongs to the acquisition above, which was not released meanwhile.
        unsafe { self.0.unlock_exclusive(guard) };
        result
    }

    #[inline]
    fn share<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.lock_shared();
        let result = section();
        // SAFETY: `guard` belongs to the acquisition above, which was not released meanwhile.
        unsafe { self.0.unlock_shared(guard) };
        result
    }
}
