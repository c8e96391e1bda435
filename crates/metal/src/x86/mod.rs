//! The machine: the parts of x86-64 that the kernel uses.
//!
//! | file | contents |
//! |---|---|
//! | `boot` | the entries of loaders, long mode, the start of the other processors |
//! | `cpu` | instructions without an equivalent in Rust |
//! | `paging` | the page tables: all memory at its own address, stacks with guard pages |
//! | `segments` | segments, the task state, the stacks of vectors |
//! | `vectors`, `interrupts` | the numbers of interrupts, and their handlers |
//! | `entry` | the way from an interrupt to Rust, and back |
//! | `apic` | the local APIC: interrupts between processors, the timer |
//! | `clock` | the time-stamp counter as a clock |
//! | `context` | the switch between threads |
//! | `uart` | the serial port |
//! | `fault` | reports of exceptions and panics, with backtraces |
//! | `pci` | search for a device on PCI, and its memory |
//! | `power` | the end of the machine: exit status, switching off |
//! | `memory_functions` | the functions that compilers call to copy and compare |

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
