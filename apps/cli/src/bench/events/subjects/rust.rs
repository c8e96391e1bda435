//! Condition variables of Rust: `std` and `parking_lot`.

use std::sync::PoisonError;

use super::{Broadcast, Mechanism};

/// `std::sync::Condvar` and a flag.
#[derive(Default)]
pub struct StdOne {
    flag: std::sync::Mutex<bool>,
    changed: std::sync::Condvar,
}

impl Mechanism for StdOne {
    fn new() -> Result<Self, String> {
        Ok(Self::default())
    }

    #[inline]
    fn signal(&self) {
        *self.flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    #[inline]
    fn wait(&self) {
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let told = self.changed.wait_while(flag, |flag| !*flag);
        *told.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// `std::sync::Condvar` and the round.
#[derive(Default)]
pub struct StdAll {
    round: std::sync::Mutex<u32>,
    changed: std::sync::Condvar,
}

impl Broadcast for StdAll {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn tell(&self, round: u32) {
        *self.round.lock().unwrap_or_else(PoisonError::into_inner) = round;
        self.changed.notify_all();
    }

    fn wait(&self, _: usize, round: u32) {
        let now = self.round.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(now, |now| *now < round));
    }
}

/// `parking_lot::Condvar` and a flag.
#[derive(Default)]
pub struct ParkingLotOne {
    flag: parking_lot::Mutex<bool>,
    changed: parking_lot::Condvar,
}

impl Mechanism for ParkingLotOne {
    fn new() -> Result<Self, String> {
        Ok(Self::default())
    }

    #[inline]
    fn signal(&self) {
        *self.flag.lock() = true;
        self.changed.notify_one();
    }

    #[inline]
    fn wait(&self) {
        let mut flag = self.flag.lock();
        self.changed.wait_while(&mut flag, |flag| !*flag);
        *flag = false;
    }
}

/// `parking_lot::Condvar` and the round.
#[derive(Default)]
pub struct ParkingLotAll {
    round: parking_lot::Mutex<u32>,
    changed: parking_lot::Condvar,
}

impl Broadcast for ParkingLotAll {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self::default())
    }

    fn tell(&self, round: u32) {
        *self.round.lock() = round;
        self.changed.notify_all();
    }

    fn wait(&self, _: usize, round: u32) {
        let mut now = self.round.lock();
        self.changed.wait_while(&mut now, |now| *now < round);
    }
}
