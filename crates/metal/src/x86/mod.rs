//! The machine: x86-64, as far as the kernel touches it.
//!
//! | file | what is in it |
//! |---|---|
//! | `boot` | the entries of loaders, long mode, the way up of the other processors |
//! | `cpu` | instructions that no Rust operation stands for |
//! | `paging` | the page tables: all memory at its own address, stacks with guard pages |
//! | `segments` | segments, the task state, the stacks of vectors |
//! | `vectors`, `interrupts` | the numbers of interrupts, and their handlers |
//! | `entry` | the way from an interrupt to Rust, and back |
//! | `apic` | the local APIC: interrupts between processors, the timer |
//! | `clock` | the time-stamp counter as a clock |
//! | `context` | switching from thread to thread |
//! | `uart` | the serial port |
//! | `fault` | reports of exceptions and panics, with backtraces |
//! | `pci` | finding a device, and its memory |
//! | `power` | the end: exit status, switching off |
//! | `memory_functions` | what compilers call to copy and compare |

pub mod apic;
#[cfg(antiphon_image)]
pub(crate) mod boot;
pub mod clock;
pub mod context;
pub mod cpu;
pub mod entry;
pub mod fault;
pub mod interrupts;
#[cfg(antiphon_image)]
mod memory_functions;
pub mod paging;
pub mod pci;
pub mod power;
pub mod segments;
pub mod uart;
pub mod vectors;
