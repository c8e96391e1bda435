//! `antiphon_clock_t`: timestamps without a shared counter.

use core::cmp::min;
use core::ffi::{c_char, c_int};
use core::mem::MaybeUninit;

use antiphon_clock::{Clock as Measured, ClockSource, NotMeasured, Order, Timestamp};
use antiphon_linux::Linux;
use antiphon_platform::Clocks as _;
use libc::{EAGAIN, EBUSY, EINVAL, EPERM, ESTALE};

use crate::cancel::uncancelled;
use crate::code::unless;
use crate::export::exports;

/// `antiphon_clock_t`. All zero: not measured, and no order is certain.
#[repr(C)]
pub struct Clock {
    measured: MaybeUninit<Measured>,
    /// Whether `measured` is initialised.
    is_measured: u64,
}

impl Clock {
    fn get(&self) -> Option<&Measured> {
        // SAFETY: `measured` was written together with `is_measured`.
        (self.is_measured != 0).then(|| unsafe { self.measured.assume_init_ref() })
    }

    /// # Safety
    ///
    /// `clock` is memory for one value.
    unsafe fn put(clock: *mut Self, found: Result<Measured, NotMeasured>) -> c_int {
        let measured = match found {
            Ok(measured) => MaybeUninit::new(measured),
            Err(NotMeasured::NoThread) => return EAGAIN,
            Err(NotMeasured::NotPinned) => return EPERM,
            Err(NotMeasured::Moved | NotMeasured::Disturbed) => return EBUSY,
        };
        // SAFETY: the caller's promise.
        unsafe { clock.write(Self { measured, is_measured: 1 }) }
        0
    }
}

exports! {
    /// Stores the clock of the process.
    fn antiphon_clock_shared(clock: *mut Clock) -> c_int {
        // SAFETY: the caller passes memory for one value.
        unsafe { Clock::put(clock, Measured::shared().cloned()) }
    }

    /// Measures a clock.
    fn antiphon_clock_measure(clock: *mut Clock) -> c_int {
        // SAFETY: the caller passes memory for one value.
        unsafe { Clock::put(clock, uncancelled(Measured::measure)) }
    }

    /// Returns a stamp of this moment.
    fn antiphon_clock_now() -> u64 {
        Linux::counter()
    }

    /// Compares two stamps: which was taken first, if that is certain.
    fn antiphon_clock_compare(clock: &Clock, one: u64, other: u64) -> c_int {
        let stamps = (Timestamp::from_bits(one), Timestamp::from_bits(other));
        match clock.get().map(|clock| clock.cmp(stamps.0, stamps.1)) {
            Some(Order::Less) => -1,
            Some(Order::Greater) => 1,
            Some(Order::Uncertain) | None => 0,
        }
    }

    /// Stores a stamp that is certainly after another.
    fn antiphon_clock_new_time(clock: &Clock, after: u64, later: &mut u64) -> c_int {
        let after = Timestamp::from_bits(after);
        // A stamp from the future would have to be waited for.
        let taken = |clock: &&Measured| clock.cmp(after, clock.now()) != Order::Greater;
        let Some(clock) = clock.get().filter(taken) else { return EINVAL };
        *later = clock.new_time(after).to_bits();
        0
    }

    /// Checks whether the measurement still holds.
    fn antiphon_clock_verify(clock: &Clock) -> c_int {
        let Some(clock) = clock.get() else { return EINVAL };
        unless(clock.verify().is_ok(), ESTALE)
    }

    /// Returns the uncertainty of stamps, in nanoseconds.
    fn antiphon_clock_uncertainty_ns(clock: &Clock) -> u64 {
        clock.get().map_or(u64::MAX, Measured::uncertainty_ns)
    }

    /// Returns the number of CPUs that were measured.
    fn antiphon_clock_cpus(clock: &Clock) -> u32 {
        clock.get().map_or(0, |clock| clock.cpus() as u32)
    }

    /// Returns whether stamps are made of the CPUs' counters.
    fn antiphon_clock_has_counters() -> c_int {
        c_int::from(matches!(antiphon_linux::source(), ClockSource::Counter { .. }))
    }

    /// Writes the source that stamps are made of, and why.
    fn antiphon_clock_source(text: *mut c_char, size: usize) -> usize {
        let said = antiphon_linux::source().to_string();
        if let Some(most) = size.checked_sub(1) {
            let kept = min(most, said.len());
            // SAFETY: the caller passes memory of that size.
            unsafe {
                text.copy_from_nonoverlapping(said.as_ptr().cast(), kept);
                text.add(kept).write(0);
            }
        }
        said.len()
    }
}
