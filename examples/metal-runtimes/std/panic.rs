//! Panics end the image: none is ever caught.

use core::any::Any;

use memory::boxed::Box;

pub use core::panic::{AssertUnwindSafe, UnwindSafe};

/// Calls `f`, and returns its result. A panic does not return.
pub fn catch_unwind<R>(f: impl FnOnce() -> R + UnwindSafe) -> crate::thread::Result<R> {
    Ok(f())
}

/// Panics: there is nothing to carry the payload.
pub fn resume_unwind(_: Box<dyn Any + Send>) -> ! {
    panic!("a panic is gone on with")
}
