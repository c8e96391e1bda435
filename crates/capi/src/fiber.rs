//! Pools whose tasks are fibers, and the calls by which fibers yield and sleep.

use core::ffi::{c_char, c_int};
use core::time::Duration;

use antiphon::fiber;
use antiphon::pool::Pool;
use antiphon_linux::Linux;
use antiphon_linux::stack::Stacks;
use antiphon_sync::wait::Latch;
use libc::{EINVAL, timespec};

use crate::code::timed;
use crate::export::exports;
use crate::pool::{Pooled, named};

exports! {
    /// Makes a pool whose tasks are fibers.
    fn antiphon_fiber_pool_create(
        pool: &mut *mut Pooled,
        threads: usize,
        policy: *const c_char,
        stack_bytes: usize,
    ) -> c_int {
        let bytes = if stack_bytes == 0 { fiber::STACK_BYTES } else { stack_bytes };
        if Stacks::new(bytes).is_err() {
            return EINVAL;
        }
        // SAFETY: the caller passes a string or null.
        let names = unsafe { named(policy) };
        // SAFETY: the header requires this promise of the caller.
        let builder = unsafe { Pool::builder().fibers(bytes) };
        Pooled::create(pool, builder, threads, names)
    }

    /// Returns whether the caller is a fiber.
    fn antiphon_fiber_is_fiber() -> c_int {
        c_int::from(fiber::is_fiber())
    }

    /// Lets other fibers and tasks run.
    fn antiphon_fiber_yield() {
        fiber::yield_now();
    }

    /// Lets other fibers run.
    fn antiphon_fiber_yield_soft() {
        fiber::yield_soft();
    }

    /// Lets others run if the fiber has run for long.
    fn antiphon_fiber_checkpoint() {
        fiber::checkpoint();
    }

    /// Waits for `ns` nanoseconds.
    fn antiphon_fiber_sleep(ns: u64) {
        fiber::sleep(Duration::from_nanos(ns));
    }

    /// Sleeps until that time.
    fn antiphon_fiber_sleep_until(clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| {
            // No thread opens this latch.
            while Latch::<Linux>::new(1).wait_until(Some(deadline)) {}
            0
        })
    }
}
