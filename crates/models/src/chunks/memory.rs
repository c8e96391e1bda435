//! The checker's words as memory that processes share; a thread may be stopped at any access, to be
//! killed or for a signal.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;

use antiphon_check::{Check, U32, U64};
use antiphon_platform::{Atomic as _, AtomicInteger as _, Atomics as _, Platform as _};
use antiphon_record::events::{Memory, Word};

/// Memory of threads that may be stopped.
pub enum Stoppable {}

impl Memory for Stoppable {
    type U32 = Stopping<U32>;
    type U64 = Stopping<U64>;

    fn fence(order: Ordering) {
        Check::fence(order);
    }
}

/// A word; before each access to it, the accessing thread may be stopped.
#[repr(transparent)]
pub struct Stopping<W>(W);

macro_rules! words {
    ($($word:ident: $value:ty;)*) => {$(
        impl Word<$value> for Stopping<$word> {
            const ZERO: Self = Self($word::ZERO);

            fn load(&self, order: Ordering) -> $value {
                may_stop();
                self.0.load(order)
            }

            fn store(&self, value: $value, order: Ordering) {
                may_stop();
                self.0.store(value, order);
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                may_stop();
                self.0.compare_exchange(current, new, success, failure)
            }

            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                may_stop();
                self.0.fetch_add(value, order)
            }
        }
    )*};
}

words! {
    U32: u32;
    U64: u64;
}

/// An event that may happen to a thread once.
type Stop = Box<dyn FnOnce()>;

thread_local! {
    /// Indexed by the number of the thread in the model.
    static STOPS: RefCell<[Option<Stop>; 8]> = const { RefCell::new([const { None }; 8]) };
}

fn me() -> usize {
    Check::thread().0 as usize
}

fn may_stop() {
    let waits = STOPS.with_borrow(|stops| stops.get(me()).is_some_and(Option::is_some));
    if waits && antiphon_check::choose(2) == 1 {
        let stop = STOPS.with_borrow_mut(|stops| stops[me()].take());
        if let Some(stop) = stop {
            stop();
        }
    }
}

/// Runs `work`; at any one access, or never, the calling thread is stopped and runs `stop`.
fn stoppable<R>(stop: Stop, work: impl FnOnce() -> R) -> R {
    // The entry of an earlier execution that was cut short may still be there.
    STOPS.with_borrow_mut(|stops| stops[me()] = Some(stop));
    let result = work();
    STOPS.with_borrow_mut(|stops| stops[me()] = None);
    result
}

/// Runs `work`, during which a signal may arrive that `handler` handles.
pub fn interrupted(handler: impl FnOnce() + 'static, work: impl FnOnce()) {
    stoppable(Box::new(handler), work);
}

/// The panic payload that ends a thread that is killed.
struct Killed;

/// Runs `work`, during which the calling thread may be killed; returns whether it was.
pub fn killed(work: impl FnOnce()) -> bool {
    let end = || resume_unwind(Box::new(Killed));
    match catch_unwind(AssertUnwindSafe(|| stoppable(Box::new(end), work))) {
        Ok(()) => false,
        Err(cause) if cause.is::<Killed>() => true,
        Err(cause) => resume_unwind(cause),
    }
}
