//! Threads: the kernel's. New ones are spread over the CPUs, from the second on.

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::mem;
use core::num::NonZero;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};
use core::time::Duration;

use memory::boxed::Box;
use memory::string::String;

use antiphon_metal::kernel::state::Thread as KernelThread;
use antiphon_metal::kernel::{cpu, schedule, thread};

use crate::io::{self, ErrorKind};
use crate::local;

pub use crate::local::{AccessError, LocalKey, MOST};

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
    Builder::new().spawn(body).expect("memory for a thread")
}

/// How a thread is started. Names and sizes of stacks have no meaning here.
#[derive(Debug, Default)]
pub struct Builder(());

impl Builder {
    /// The only way.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// Ignores the name.
    #[must_use]
    pub fn name(self, _: String) -> Self {
        self
    }

    /// Ignores the size: all stacks have 64 KiB.
    #[must_use]
    pub fn stack_size(self, _: usize) -> Self {
        self
    }

    /// Starts a thread on the next CPU.
    ///
    /// # Errors
    ///
    /// If there is no memory for it.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        // Relaxed: a number.
        let number = NEXT.fetch_add(1, Relaxed) % cpu::count();
        let body = move || {
            let returned = body();
            local::end_all();
            returned
        };
        thread::spawn_on(number, body).map(JoinHandle).map_err(|_| ErrorKind::OutOfMemory.into())
    }

    /// Starts a thread that ends before `scope` does.
    ///
    /// # Errors
    ///
    /// If there is no memory for it.
    pub fn spawn_scoped<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        body: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        struct Ends(&'static Scope<'static, 'static>);
        impl Drop for Ends {
            fn drop(&mut self) {
                let owner = self.0.owner.clone();
                // Release: what the thread did; pairs with the acquire in `scope`.
                self.0.running.fetch_sub(1, Release);
                owner.unpark();
            }
        }
        // SAFETY: `scope` does not return before `Ends` is dropped.
        let ends = Ends(unsafe { mem::transmute::<&Scope<'_, '_>, &Scope<'_, '_>>(scope) });
        // Relaxed: the owner's own, or that of a thread that it waits for.
        scope.running.fetch_add(1, Relaxed);
        let body: Box<dyn FnOnce() + Send + 'scope> = Box::new(body);
        // SAFETY: as above.
        let body =
            unsafe { mem::transmute::<Box<dyn FnOnce() + Send>, Box<dyn FnOnce() + Send>>(body) };
        self.spawn(move || {
            let _ends = ends;
            body();
        })?;
        Ok(())
    }
}

/// Threads that borrow, until the end of [`scope`].
pub struct Scope<'scope, 'env> {
    running: AtomicUsize,
    owner: Thread,
    borrows: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

/// Calls `body`, and waits for the threads that it has started.
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    let scope = Scope { running: AtomicUsize::new(0), owner: current(), borrows: PhantomData };
    let returned = body(&scope);
    // Acquire: what the threads did; pairs with the release at their ends.
    while scope.running.load(Acquire) > 0 {
        park();
    }
    returned
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
