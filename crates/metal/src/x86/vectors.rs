//! The vectors of interrupts. A higher number goes first.

/// The vector of the interrupt that wakes a halted processor.
pub const KICK: u8 = 0xfc;
/// The vector of active messages.
pub const MESSAGE: u8 = 0xe8;
/// Likewise, for measurements: notes when the actions are about to be run.
pub const MESSAGE_NOTED: u8 = 0xe7;
/// The vector of active messages by the slot of a CPU.
pub const SLOT: u8 = 0xe4;
/// The first of the vectors of active messages that have a vector each.
pub const DIRECT: u8 = 0xd0;
/// How many of those there are.
pub const DIRECT_COUNT: u8 = 16;
/// An interrupt that comes after all messages that were sent before: its vector is lower.
pub const PASS: u8 = 0x40;
/// An interrupt that only notes when it came.
pub const RAW: u8 = 0xe6;
/// Likewise, by an instruction of the processor itself.
pub const INSTRUCTION: u8 = 0xe5;
/// The vector of the timer.
pub const TIMER: u8 = 0xef;
/// The vector of interrupts that went away.
pub const SPURIOUS: u8 = 0xff;
