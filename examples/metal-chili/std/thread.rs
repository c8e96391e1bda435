//! Threads: the kernel's. New ones are spread over the CPUs, from the second on.

use core::any::Any;
use core::fmt;
use core::num::NonZero;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use alloc::boxed::Box;
use antiphon_metal::kernel::state::Thread as KernelThread;
use antiphon_metal::kernel::{cpu, schedule, thread};

/// What a thread has returned, or its panic, of which there is none.
pub type Result<T> = core::result::Result<T, Box<dyn Any + Send>>;

/// A handle of a thread.
#[derive(Clone)]
pub struct Thread(&'static KernelThread);

impl Thread {
    /// Ends the present or next [`park`] of the thread.
    pub fn unpark(&self) {
        thread::unblock(self.0);
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Thread").field(&self.0.number()).finish()
    }
}

/// A thread that can be joined.
pub struct JoinHandle<T>(thread::JoinHandle<T>);

impl<T> JoinHandle<T> {
    /// Waits for the thread's end.
    pub fn join(self) -> Result<T> {
        Ok(self.0.join())
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}

/// Starts a thread.
///
/// # Panics
///
/// If there is no memory for it.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Relaxed: a number.
    let number = NEXT.fetch_add(1, Relaxed) % cpu::count();
    JoinHandle(thread::spawn_on(number, body).expect("memory for a thread"))
}

/// The calling thread.
#[must_use]
pub fn current() -> Thread {
    Thread(cpu::current())
}

/// Sleeps until [`Thread::unpark`], which may have come first, or for no reason.
pub fn park() {
    thread::block();
}

/// Lets other threads of this CPU run.
pub fn yield_now() {
    schedule::yield_now();
    // The CPUs of an exact run take turns when they pause.
    core::hint::spin_loop();
}

/// Sleeps at least that long.
pub fn sleep(time: Duration) {
    thread::sleep_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// The number of CPUs.
pub fn available_parallelism() -> core::result::Result<NonZero<usize>, core::convert::Infallible> {
    Ok(NonZero::new(cpu::count() as usize).unwrap_or(NonZero::<usize>::MIN))
}
