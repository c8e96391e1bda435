//! The vectors of interrupts. A higher number goes first.

/// The vector of the interrupt that wakes a halted processor.
pub const KICK: u8 = 0xfc;
/// The vector of active messages.
pub const MESSAGE: u8 = 0xe8;
/// Likewise, for measurements: notes when the actions are about to be run.
pub const MESSAGE_NOTED: u8 = 0xe7;
/// An interrupt that only notes when it came.
pub const RAW: u8 = 0xe6;
/// Likewise, by an instruction of the processor itself.
pub const INSTRUCTION: u8 = 0xe5;
/// The vector of the timer.
pub const TIMER: u8 = 0xef;
/// The vector of interrupts that went away.
pub const SPURIOUS: u8 = 0xff;
