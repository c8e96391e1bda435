//! Programs that compete for CPUs, each a separate process, and what is measured of them from
//! outside.
//!
//! | module | what is in it |
//! |---|---|
//! | [`process`] | a program as a process: it begins on command, and reports its results |
//! | [`order`] | the order that it gets |
//! | [`work`] | the clock, and work of a known length |
//! | [`hogs`] | programs that only want the CPU |
//! | [`terms`] | numbers and kinds of programs, and which of them share |
//! | [`usage`] | their CPU time and switches |
//! | [`level`], [`cgroup`] | the programs that they compete with |
//! | [`tardiness`] | tardiness of timers |
//! | [`tier_stats`] | statistics of their tier |

pub mod cgroup;
pub mod hogs;
pub mod level;
pub mod order;
pub mod process;
pub mod tardiness;
pub mod terms;
pub mod tier_stats;
pub mod usage;
pub mod work;

use antiphon_linux::allowed;

/// Leaves these CPUs to the programs, if there is another.
pub fn stand_aside(cpus: &[u32]) {
    if let Some(&other) = allowed().iter().find(|cpu| !cpus.contains(cpu)) {
        // A process that can't be moved observes from where it is, and uses little CPU time.
        let _ = antiphon_linux::pin(other);
    }
}
