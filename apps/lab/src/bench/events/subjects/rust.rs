//! Condition variables of Rust: `std` and `parking_lot`.

use std::sync::PoisonError;

use super::guarded::Guarded;

/// `std::sync::Condvar`.
#[derive(Default)]
pub struct Std {
    number: std::sync::Mutex<u32>,
    changed: std::sync::Condvar,
}

impl Guarded for Std {
    fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn put(&self, number: u32) {
        *self.number.lock().unwrap_or_else(PoisonError::into_inner) = number;
    }

    #[inline]
    fn notify_one(&self) {
        self.changed.notify_one();
    }

    fn notify_all(&self) {
        self.changed.notify_all();
    }

    #[inline]
    fn wait(&self, enough: u32, then: impl FnOnce(&mut u32)) {
        let number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        let told = self.changed.wait_while(number, |number| *number < enough);
        then(&mut told.unwrap_or_else(PoisonError::into_inner));
    }
}

/// `parking_lot::Condvar`.
#[derive(Default)]
pub struct ParkingLot {
    number: parking_lot::Mutex<u32>,
    changed: parking_lot::Condvar,
}

impl Guarded for ParkingLot {
    fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn put(&self, number: u32) {
        *self.number.lock() = number;
    }

    #[inline]
    fn notify_one(&self) {
        self.changed.notify_one();
    }

    fn notify_all(&self) {
        self.changed.notify_all();
    }

    #[inline]
    fn wait(&self, enough: u32, then: impl FnOnce(&mut u32)) {
        let mut number = self.number.lock();
        self.changed.wait_while(&mut number, |number| *number < enough);
        then(&mut number);
    }
}
