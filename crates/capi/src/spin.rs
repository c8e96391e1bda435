//! `antiphon_spin_t`.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::lock::ShflSpin;

use crate::code::unless;
use crate::export::exports;

/// `antiphon_spin_t`.
#[repr(transparent)]
pub struct Spin(pub(crate) ShflSpin<Linux>);

exports! {
    /// Makes a free spinlock.
    fn antiphon_spin_init(spin: *mut Spin) {
        // SAFETY: the caller passes memory for one value.
        unsafe { spin.write(Spin(ShflSpin::NEW)) }
    }

    /// Checks whether the spinlock may be destroyed.
    fn antiphon_spin_destroy(spin: &Spin) -> c_int {
        unless(!spin.0.is_locked(), libc::EBUSY)
    }

    /// Acquires the spinlock.
    fn antiphon_spin_lock(spin: &Spin) {
        spin.0.lock();
    }

    /// Acquires the spinlock if it is free.
    fn antiphon_spin_trylock(spin: &Spin) -> c_int {
        unless(spin.0.try_lock(), libc::EBUSY)
    }

    /// Releases the spinlock.
    fn antiphon_spin_unlock(spin: &Spin) {
        // SAFETY: the caller owns it.
        unsafe { spin.0.unlock() }
    }
}
