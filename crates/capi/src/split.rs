//! The C interface of `antiphon_split_t`, `antiphon_split_timer_t` and `antiphon_split_worker_t`.

use core::ffi::{c_int, c_void};

use antiphon_coop::{Split, SplitOptions, SplitTimer, Tier, Worker};
use libc::{EINVAL, ENOENT};

use crate::cancel::uncancelled;
use crate::code::unless;
use crate::coop::seat::{MOST_NS, RT_SPLIT, SPLIT};
use crate::export::exports;

/// `antiphon_split_options_t`. Zero fields mean the Rust defaults.
#[repr(C)]
pub struct Options {
    timer_slice_ns: u64,
    worker_slice_ns: u64,
    priority: u32,
    kept: u32,
}

/// `antiphon_split_stats_t`.
#[repr(C)]
pub struct SplitStats {
    timers: u64,
    late_p50_ns: u64,
    late_p99_ns: u64,
    late_max_ns: u64,
    tier: c_int,
    kept: c_int,
}

type Call = unsafe extern "C" fn(*mut c_void, u64);
type End = unsafe extern "C" fn(*mut c_void);

/// The caller's functions of a timer.
struct Timer {
    call: Call,
    end: Option<End>,
    data: *mut c_void,
}

// SAFETY: the header says that other threads call it.
unsafe impl Send for Timer {}

impl Timer {
    fn run(self, late_ns: u64) {
        // SAFETY: the caller's function, with the arguments that the header defines.
        unsafe { (self.call)(self.data, late_ns) }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: the caller's function, with the argument that the header defines.
            unsafe { end(self.data) }
        }
    }
}

/// Converts a priority; 0 is none.
fn priority(number: u32) -> Result<Option<u8>, c_int> {
    match number {
        0 => Ok(None),
        1..=99 => Ok(Some(number as u8)),
        _ => Err(EINVAL),
    }
}

impl Options {
    fn options(&self) -> Result<SplitOptions, c_int> {
        let Self { timer_slice_ns, worker_slice_ns, priority: number, kept } = *self;
        if kept != 0 || timer_slice_ns > MOST_NS || worker_slice_ns > MOST_NS {
            return Err(EINVAL);
        }
        let or = |wanted, usual| if wanted == 0 { usual } else { wanted };
        let usual = SplitOptions::default();
        Ok(SplitOptions {
            timer_slice_ns: or(timer_slice_ns, usual.timer_slice_ns),
            worker_slice_ns: or(worker_slice_ns, usual.worker_slice_ns),
            priority: priority(number)?,
        })
    }
}

exports! {
    /// Starts the timer thread.
    fn antiphon_split_create(split: &mut *mut Split, options: Option<&Options>) -> c_int {
        let options = options.map_or_else(|| Ok(SplitOptions::default()), Options::options);
        let start = |options| Split::start(options).map_err(|refused| refused.errno());
        match options.and_then(|options| uncancelled(|| start(options))) {
            Ok(made) => {
                *split = Box::into_raw(Box::new(made));
                0
            }
            Err(code) => code,
        }
    }

    /// Ends the timer thread.
    fn antiphon_split_destroy(split: *mut Split) {
        // SAFETY: created by this library, and not used after this call.
        let split = unsafe { Box::from_raw(split) };
        uncancelled(|| drop(split));
    }

    /// Submits a function that is called when it is due.
    fn antiphon_split_submit(
        split: &Split,
        release_ns: u64,
        call: Call,
        end: Option<End>,
        data: *mut c_void,
        timer: *mut *mut SplitTimer,
    ) {
        let run = Timer { call, end, data };
        // This call also drops timers that were cancelled.
        let made = uncancelled(|| split.submit(release_ns, move |late_ns| run.run(late_ns)));
        if !timer.is_null() {
            // SAFETY: the caller passes memory for one value.
            unsafe { timer.write(Box::into_raw(Box::new(made))) }
        }
    }

    /// Cancels a timer: it is not called.
    fn antiphon_split_timer_cancel(timer: &SplitTimer) -> c_int {
        unless(timer.cancel(), ENOENT)
    }

    /// Frees the handle of a timer.
    fn antiphon_split_timer_destroy(timer: *mut SplitTimer) {
        // SAFETY: created by this library, and not used after this call.
        let timer = unsafe { Box::from_raw(timer) };
        uncancelled(|| drop(timer));
    }

    /// Changes the priority of the timer thread.
    fn antiphon_split_set_priority(split: &Split, number: u32) -> c_int {
        let set = |priority| split.set_priority(priority).map_err(|refused| refused.errno());
        priority(number).and_then(set).err().unwrap_or(0)
    }

    /// Writes how late the timers were.
    fn antiphon_split_stats(split: &Split, stats: &mut SplitStats) {
        let late = split.tardiness();
        *stats = SplitStats {
            timers: late.count(),
            late_p50_ns: late.quantile_ns(0.5),
            late_p99_ns: late.quantile_ns(0.99),
            late_max_ns: late.most_ns(),
            tier: if split.tier() == Tier::RealTimeSplit { RT_SPLIT } else { SPLIT },
            kept: 0,
        };
    }

    /// Gives the calling thread a long slice.
    fn antiphon_split_worker_create(worker: &mut *mut Worker, split: &Split) -> c_int {
        match split.worker() {
            Ok(made) => {
                *worker = Box::into_raw(Box::new(made));
                0
            }
            Err(refused) => refused.errno(),
        }
    }

    /// Gives the thread its former slice back.
    fn antiphon_split_worker_destroy(worker: *mut Worker) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(worker) });
    }
}
