//! The kernel: memory of nodes, threads, messages between CPUs.
//!
//! | file | contents |
//! |---|---|
//! | `boot` | from the machine's entry to the program |
//! | `channel` | files, lines and the time of day, by the host |
//! | `command_line` | the command line that the image was started with |
//! | `condvar` | the condition variable whose waiters are woken by their own CPUs |
//! | `console` | printing on the serial port |
//! | `cpu` | the state of each CPU, and the CPU that the caller runs on |
//! | `heap` | frames and heaps of nodes; the global allocator |
//! | `lock` | the spinlock that is held with interrupts off |
//! | `machine` | the processors, for the protocol by which they wake each other |
//! | `message` | active messages: actions that an interrupt runs |
//! | `schedule` | run queues, sleeps, the timer, idle CPUs |
//! | `state` | the state of threads and of schedulers |
//! | `thread` | kernel threads |
//! | `wake` | how a CPU learns that it has a thread to run: by itself, by a kick, by one for many |

#[cfg(antiphon_image)]
pub(crate) mod boot;
pub mod channel;
pub mod command_line;
pub mod condvar;
pub mod console;
pub mod cpu;
pub mod heap;
pub mod lock;
mod machine;
pub mod message;
pub mod schedule;
pub mod state;
pub mod thread;
pub mod wake;
