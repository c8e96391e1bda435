//! Programs that compete for CPUs, each a process of its own, and what is seen of them from
//! outside.
//!
//! | module | what is in it |
//! |---|---|
//! | [`process`] | a program as a process: it begins when it is told, and tells what it saw |
//! | [`order`] | what it is told |
//! | [`work`] | the clock, and work of a known length |
//! | [`hogs`] | programs that only want the CPU |
//! | [`terms`] | how many, of which kind, and which of them share |
//! | [`usage`] | what they have used |
//! | [`level`], [`cgroup`] | the programs that they compete with |
//! | [`tardiness`] | how late timers were |
//! | [`tier_stats`] | what their tier has done for them |

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
        // A process that can't be moved looks on from where it is, and takes little.
        let _ = antiphon_linux::pin(other);
    }
}
