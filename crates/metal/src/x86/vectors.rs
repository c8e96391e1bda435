//! The vectors of interrupts. A higher number has priority.

/// The vector of the interrupt that wakes a halted processor.
pub const KICK: u8 = 0xfc;
/// The vector of active messages.
pub const MESSAGE: u8 = 0xe8;
/// The vector of active messages in measurements: its handler notes the time before it runs
/// actions.
pub const MESSAGE_NOTED: u8 = 0xe7;
/// The vector of the interrupt by which a processor wakes its own threads that wait.
pub const NOTIFY: u8 = 0xe9;
/// The vector of active messages that use the slot of a CPU.
pub const SLOT: u8 = 0xe4;
/// The first of the vectors of active messages that have a vector each.
pub const DIRECT: u8 = 0xd0;
/// The number of those vectors.
pub const DIRECT_COUNT: u8 = 16;
/// The vector whose interrupt is taken after all messages that were sent before: it is lower than
/// theirs.
pub const PASS: u8 = 0x40;
/// The vector whose handler only notes the time.
pub const RAW: u8 = 0xe6;
/// The vector whose handler notes the time of an `int` instruction.
pub const INSTRUCTION: u8 = 0xe5;
/// The vector of the timer.
pub const TIMER: u8 = 0xef;
/// The vector of spurious interrupts.
pub const SPURIOUS: u8 = 0xff;
