//! The kernel's scheduling of threads, and the changes that this process may make.
//!
//! | module | facility |
//! |---|---|
//! | `class` | `sched_setscheduler(2)`, and the slice of `sched_setattr(2)` |
//! | `nice` | `setpriority(2)`: the weight of a thread |
//! | `times` | the times that a thread ran (CPU clock) and waited (`/proc/…/schedstat`) |
//! | `permitted` | whether this process may use real-time priorities and slices, by trial |
//! | `level` | the groups that share a CPU: control groups and autogroups |
//!
//! A [`ThreadId`](antiphon_platform::ThreadId) here is the kernel's, of this process or another; 0
//! is the caller. All functions make system calls, only those that read `/proc` block, and each
//! preserves `errno`.

mod class;
mod level;
mod nice;
mod permitted;
mod times;

pub use class::{
    Class, Policy, SLICES_NS, class, set_fifo, set_round_robin, set_slice, set_timer_slack,
    set_timeshared, slice_ns,
};
pub use level::{Level, level};
pub use nice::{NICE, nice, set_nice};
pub use permitted::{Permitted, Refused, permitted, without_signals};
pub use times::{Times, cpu_ns, own_cpu_ns, times};
