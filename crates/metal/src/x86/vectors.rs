//! The vectors of interrupts. A higher number has priority.

/// The vector of the interrupt that wakes a halted processor.
pub const KICK: u8 = 0xfc;
/// The vector of active messages.
pub const MESSAGE: u8 = 0xe8;
/// The vector of active messages in measurements: its handler notes the time before it runs
/// actions.
pub const MESSAGE_NOTED: u8 = 0xe7;
/// The vector whose handler only notes the time.
pub const RAW: u8 = 0xe6;
/// The vector whose handler notes the time of an `int` instruction.
pub const INSTRUCTION: u8 = 0xe5;
/// The vector of the timer.
pub const TIMER: u8 = 0xef;
/// The vector of spurious interrupts.
pub const SPURIOUS: u8 = 0xff;
