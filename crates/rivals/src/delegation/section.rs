//! A critical section that another thread may run: it lives on the stack of the thread that waits
//! for it, and its address is its name.
//!
//! ```text
//!   Asked ─── taken out, by its runner ───────► Begun ──── it has returned ────► Done
//! ```

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

/// Address of a section, as stored in a word of a node. Its lowest bit is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Name(u64);

impl Name {
    /// Returns the bits of the word.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the section that a word names.
    pub(super) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Runs the section on the calling thread. If the section panics, this function panics too, and
    /// the section has no result.
    ///
    /// # Safety
    ///
    /// `self` names a section on a `T` that was not run before. The section's owner waits, and does
    /// not access the section until it is notified, after this call. What the owner did happens
    /// before this call.
    pub(super) unsafe fn run<T, P: Platform>(self, data: &mut T) {
        let head = ptr::with_exposed_provenance::<Head<T, P>>(self.0 as usize);
        // SAFETY: a section begins with a `Head`, and its function is made for its type.
        unsafe { ((*head).run)(self, data) };
    }

    /// Returns the name of the node on which the section's owner sleeps, if it does.
    ///
    /// # Safety
    ///
    /// `self` names a section whose owner waits, at least until this call has returned.
    pub(super) unsafe fn sleeper<P: Platform>(self) -> u32 {
        let head = ptr::with_exposed_provenance::<P::U32>(self.0 as usize);
        // SAFETY: a section begins with this word. Relaxed: acquired with the word that says that
        // the owner sleeps.
        unsafe { (*head).load(Relaxed) }
    }
}

/// Common beginning of all sections.
#[repr(C)]
struct Head<T, P: Platform> {
    sleeper: P::U32,
    run: unsafe fn(Name, &mut T),
}

enum State<F, R> {
    Asked(F),
    Begun,
    Done(R),
}

/// A critical section on a `T`.
#[repr(C, align(8))]
pub(super) struct Section<T, P: Platform, F, R> {
    head: Head<T, P>,
    state: UnsafeCell<State<F, R>>,
}

impl<T, P: Platform, F: FnOnce(&mut T) -> R, R> Section<T, P, F, R> {
    pub(super) fn new(section: F) -> Self {
        let head = Head { sleeper: P::U32::ZERO, run: Self::run };
        Self { head, state: UnsafeCell::new(State::Asked(section)) }
    }

    /// Word where the owner leaves the name of its node before it announces that it sleeps.
    pub(super) fn sleeper(&self) -> &P::U32 {
        &self.head.sleeper
    }

    /// Returns the section's name, which is valid while the section does not move.
    pub(super) fn name(&self) -> Name {
        Name(ptr::from_ref(self).expose_provenance() as u64)
    }

    /// Returns the section's result.
    ///
    /// # Panics
    ///
    /// If the section has panicked, on any thread.
    pub(super) fn result(self) -> R {
        match self.state.into_inner() {
            State::Done(result) => result,
            State::Begun => panic!("the critical section has panicked on the thread that ran it"),
            State::Asked(_) => unreachable!("a notified waiter has been served"),
        }
    }

    /// Returns the function that the section was made of.
    ///
    /// # Panics
    ///
    /// If the section was run.
    pub(super) fn refused(self) -> F {
        let State::Asked(section) = self.state.into_inner() else {
            unreachable!("a refused section was not served")
        };
        section
    }

    /// # Safety
    ///
    /// The same as for [`Name::run`], of a section of this type.
    unsafe fn run(name: Name, data: &mut T) {
        let at = ptr::with_exposed_provenance::<Self>(name.0 as usize);
        // SAFETY: by the caller's promise the section is alive, and no other thread accesses its
        // state.
        let state = unsafe { (*at).state.get() };
        // SAFETY: by the caller's promise no other thread accesses the state.
        if let State::Asked(section) = unsafe { state.replace(State::Begun) } {
            let result = section(data);
            // SAFETY: no other thread accesses the state, and `Begun` needs no drop.
            unsafe { state.write(State::Done(result)) };
        }
    }
}

/// Runs a function when it is dropped, also if a section panics.
pub(super) struct Finally<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
