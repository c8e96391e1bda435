//! The serial port: a 16550 at its usual ports, without interrupts.

use core::fmt;

use super::cpu::{inb, outb};

const PORT: u16 = 0x3f8;
/// Number of reads of the line status before a byte is written in any case: a machine without the
/// port must not hang here.
const PATIENCE: u32 = 100_000;

/// The first serial port.
#[derive(Debug)]
pub struct Uart;

impl Uart {
    /// Sets the port up: 115 200 baud, 8 bits, no interrupts, buffers on.
    pub fn set_up() {
        for (register, value) in
            [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 0x03), (2, 0xc7), (4, 0x03)]
        {
            // SAFETY: the ports are those of a serial port, or of no device.
            unsafe { outb(PORT + register, value) };
        }
    }

    fn put(byte: u8) {
        const EMPTY: u8 = 1 << 5;
        for _ in 0..PATIENCE {
            // SAFETY: a read of the line status has no effect.
            if unsafe { inb(PORT + 5) } & EMPTY != 0 {
                break;
            }
            core::hint::spin_loop();
        }
        // SAFETY: the port is the transmit buffer.
        unsafe { outb(PORT, byte) };
    }
}

impl fmt::Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                Self::put(b'\r');
            }
            Self::put(byte);
        }
        Ok(())
    }
}
