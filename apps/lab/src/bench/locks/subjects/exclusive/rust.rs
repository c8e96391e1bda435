//! Peers from Rust: `std::sync::Mutex` and `parking_lot`.

use std::sync::PoisonError;

use parking_lot::lock_api::RawMutex as _;

use crate::bench::locks::subjects::Subject;

/// `std::sync::Mutex<()>` with its poison flag, as programs use it.
pub struct Std(std::sync::Mutex<()>);

impl Subject for Std {
    fn new() -> Result<Self, String> {
        Ok(Self(std::sync::Mutex::new(())))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = section();
        drop(guard);
        result
    }
}

/// The one-byte mutex under `parking_lot::Mutex`.
pub struct ParkingLot(parking_lot::RawMutex);

impl Subject for ParkingLot {
    fn new() -> Result<Self, String> {
        Ok(Self(parking_lot::RawMutex::INIT))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        let guard = self.0.lock();
        let result = section();
        // SAFETY: `guard` belongs to the acquisition above, which was not released meanwhile.
        unsafe { self.0.unlock(guard) };
        result
    }
}
