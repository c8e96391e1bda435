//! The part of PCI that finds a device: only on bus 0, by the two old ports.

use super::cpu::{inl, outl};
use crate::pvh::Range;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const DEVICES: u32 = 32;

/// Registers of a device's configuration.
const COMMAND: u32 = 4;
const FIRST_BASE: u32 = 0x10;
/// Bit of the command register: the device answers accesses to its memory.
const MEMORY: u32 = 1 << 1;

/// A device on bus 0, of which only the first function is used.
#[derive(Clone, Copy, Debug)]
pub struct Device(u32);

impl Device {
    /// Returns the device with this id, whose lower half is the number of its maker.
    ///
    /// # Safety
    ///
    /// No other code uses the ports of PCI meanwhile.
    #[must_use]
    pub unsafe fn find(id: u32) -> Option<Self> {
        let mut devices = (0..DEVICES).map(Self);
        // SAFETY: reading an id does nothing; the caller's promise.
        devices.find(|device| unsafe { device.read(0) } == id)
    }

    /// Returns the memory of base register `index`, at which the device answers from now on. `None`
    /// if there is no memory, or the firmware has given it no address.
    ///
    /// # Safety
    ///
    /// See [`find`](Self::find); and no other code uses the device.
    #[must_use]
    pub unsafe fn memory(self, index: u32) -> Option<Range> {
        const KIND: u32 = 0xf;
        const IS_PORT: u32 = 1;
        const IS_LONG: u32 = 2 << 1;
        let at = FIRST_BASE + 4 * index;
        // SAFETY: the caller's promise. To find the length, the base register is given another
        // value than its address; the device does not answer meanwhile.
        unsafe {
            // Zeros in the upper half, which is the status, change nothing.
            let command = self.read(COMMAND) & 0xffff;
            self.write(COMMAND, command & !MEMORY);
            let low = self.exchanged(at);
            let high = if low.0 & IS_LONG != 0 { self.exchanged(at + 4) } else { (0, u32::MAX) };
            let start = u64::from(high.0) << 32 | u64::from(low.0 & !KIND);
            let mask = u64::from(high.1) << 32 | u64::from(low.1 & !KIND);
            if low.0 & IS_PORT != 0 || start == 0 {
                return None;
            }
            self.write(COMMAND, command | MEMORY);
            let end = start.checked_add((!mask).wrapping_add(1))?;
            Some(Range { start, end })
        }
    }

    /// Returns the value of a base register, and which of its bits can be set.
    ///
    /// # Safety
    ///
    /// See `memory`.
    unsafe fn exchanged(self, at: u32) -> (u32, u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let value = self.read(at);
            self.write(at, u32::MAX);
            let mask = self.read(at);
            self.write(at, value);
            (value, mask)
        }
    }

    fn select(self, register: u32) -> u32 {
        1 << 31 | self.0 << 11 | register
    }

    /// # Safety
    ///
    /// See `find`.
    unsafe fn read(self, register: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe {
            outl(ADDRESS, self.select(register));
            inl(DATA)
        }
    }

    /// # Safety
    ///
    /// See `memory`.
    unsafe fn write(self, register: u32, value: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            outl(ADDRESS, self.select(register));
            outl(DATA, value);
        }
    }
}
