//! The C interface of `antiphon_barrier_t`, `antiphon_sem_t` and `antiphon_once_t`.

use core::ffi::{c_int, c_void};

use antiphon_linux::Linux;
use antiphon_sync::wait::{self, MAX_PERMITS};
use libc::{EBUSY, EINVAL, EOVERFLOW, ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_barrier_t`.
#[repr(transparent)]
pub struct Barrier(wait::Barrier<Linux>);

/// `antiphon_sem_t`.
#[repr(transparent)]
pub struct Semaphore(wait::Semaphore<Linux>);

/// `antiphon_once_t`.
#[repr(transparent)]
pub struct Once(wait::Once<Linux>);

/// The function that `antiphon_once` runs.
type Run = unsafe extern "C" fn(*mut c_void) -> c_int;

exports! {
    /// Makes a barrier for `parties` threads.
    fn antiphon_barrier_init(barrier: *mut Barrier, parties: u32) -> c_int {
        if parties == 0 {
            return EINVAL;
        }
        // SAFETY: the caller passes memory for one value.
        unsafe { barrier.write(Barrier(wait::Barrier::new(parties))) }
        0
    }

    /// Waits until the barrier may be freed.
    fn antiphon_barrier_destroy(barrier: &Barrier) {
        barrier.0.retire();
    }

    /// Waits until all parties have come.
    fn antiphon_barrier_wait(barrier: &Barrier) -> c_int {
        c_int::from(barrier.0.wait())
    }

    /// Waits until all parties have come, or gives up at the deadline.
    fn antiphon_barrier_timedwait(barrier: &Barrier, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| {
            barrier.0.wait_until(deadline).map_or(ETIMEDOUT, c_int::from)
        })
    }

    /// Makes a semaphore with `permits` permits.
    fn antiphon_sem_init(sem: *mut Semaphore, permits: u32) -> c_int {
        if permits > MAX_PERMITS {
            return EINVAL;
        }
        // SAFETY: the caller passes memory for one value.
        unsafe { sem.write(Semaphore(wait::Semaphore::new(permits))) }
        0
    }

    /// Checks whether the semaphore may be destroyed.
    fn antiphon_sem_destroy(sem: &Semaphore) -> c_int {
        unless(!sem.0.has_waiters(), EBUSY)
    }

    /// Takes a permit.
    fn antiphon_sem_wait(sem: &Semaphore) {
        sem.0.acquire();
    }

    /// Takes a permit if there is one.
    fn antiphon_sem_trywait(sem: &Semaphore) -> c_int {
        unless(sem.0.try_acquire(1), EBUSY)
    }

    /// Takes a permit, or gives up at the deadline.
    fn antiphon_sem_timedwait(sem: &Semaphore, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(sem.0.acquire_until(1, deadline), ETIMEDOUT))
    }

    /// Adds permits.
    fn antiphon_sem_post(sem: &Semaphore, permits: u32) -> c_int {
        unless(sem.0.release(permits).is_ok(), EOVERFLOW)
    }

    /// Returns the number of permits.
    fn antiphon_sem_value(sem: &Semaphore) -> u32 {
        sem.0.permits()
    }

    /// Runs `run` if it has not succeeded yet, or waits for the thread that is running it.
    fn antiphon_once(once: &Once, run: Run, argument: *mut c_void) -> c_int {
        let run = || {
            // SAFETY: the caller's function, with the argument that the header defines.
            match unsafe { run(argument) } {
                0 => Ok(()),
                code => Err(code),
            }
        };
        match once.0.try_call_once(run) {
            Ok(()) => 0,
            Err(code) => code,
        }
    }
}
