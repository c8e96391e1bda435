//! The scheduler, driven by a CPU that is a loop, and by lots.

mod cpu;
mod layout;
mod lots;
mod police;
mod shares;
