//! Printing on the serial port, one call at a time.

use core::fmt::{self, Write};

use super::lock::Lock;
use crate::x86::uart::Uart;

static CONSOLE: Lock<Uart> = Lock::new(Uart);

/// Prints; see [`print!`](crate::print).
pub fn print(arguments: fmt::Arguments<'_>) {
    // The serial port refuses nothing.
    let _ = CONSOLE.lock().write_fmt(arguments);
}

/// Prints on the serial port.
#[macro_export]
macro_rules! print {
    ($($arguments:tt)*) => {
        $crate::kernel::console::print(format_args!($($arguments)*))
    };
}

/// Prints a line on the serial port.
#[macro_export]
macro_rules! println {
    () => { $crate::print!("\n") };
    ($($arguments:tt)*) => {
        $crate::kernel::console::print(format_args!("{}\n", format_args!($($arguments)*)))
    };
}
