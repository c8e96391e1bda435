//! The C interface of `antiphon_pool_t` and `antiphon_task_group_t`.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;
use std::time::Duration;

use antiphon::fiber;
use antiphon::pool::{
    self, Builder, Pool, Refused,
    policy::{BoxedPolicy, Swap},
};
use antiphon_linux::Linux;
use antiphon_runtime::task::Countdown;
use libc::{EAGAIN, EINVAL};

use crate::cancel::uncancelled;
use crate::code::unless;
use crate::export::exports;

/// A larger number is a mistake, such as -1, and would exhaust memory before the system refuses a
/// thread.
const MOST_THREADS: usize = 4_096;

/// Time between two checks whether stages are over.
const STAGES_LOOK: Duration = Duration::from_micros(100);

/// The pool behind `antiphon_pool_t`: the policy's type is static, except for policies that were
/// named.
pub enum Pooled {
    Standard(Arc<Pool>),
    Named(Arc<Pool<BoxedPolicy<Linux>>>),
    Several(Arc<Pool<Swap<Linux>>>),
}

/// Policies by name, for a pool.
pub(crate) enum Names {
    Standard,
    One(BoxedPolicy<Linux>),
    Several(Swap<Linux>),
}

/// Evaluates the same expression on the pool of either type.
macro_rules! with {
    ($pooled:expr, $pool:ident => $does:expr) => {
        match $pooled {
            Pooled::Standard($pool) => $does,
            Pooled::Named($pool) => $does,
            Pooled::Several($pool) => $does,
        }
    };
}
pub(crate) use with;

/// `antiphon_task_group_t`.
#[repr(transparent)]
pub struct TaskGroup(Countdown<Linux>);

type Run = unsafe extern "C" fn(*mut c_void);

/// The caller's function, and its argument.
struct Work {
    run: Run,
    argument: *mut c_void,
    /// Null: the task belongs to no group.
    group: *const TaskGroup,
}

// SAFETY: the header says that any thread may run it.
unsafe impl Send for Work {}

impl Work {
    /// # Safety
    ///
    /// The caller may have the function called, and the group lives until it was called.
    unsafe fn new(run: Run, argument: *mut c_void, group: *const TaskGroup) -> Self {
        let work = Self { run, argument, group };
        if let Some(group) = work.group() {
            group.0.add();
        }
        work
    }

    fn group(&self) -> Option<&TaskGroup> {
        // SAFETY: by the promise of `new`.
        unsafe { self.group.as_ref() }
    }

    fn call(self) {
        // SAFETY: by the promise of `new`.
        unsafe { (self.run)(self.argument) }
        if let Some(group) = self.group() {
            group.0.done();
        }
    }
}

impl Pooled {
    fn new(builder: Builder, names: Names) -> std::io::Result<Self> {
        match names {
            Names::Standard => builder.build().map(|pool| Self::Standard(Arc::new(pool))),
            Names::One(policy) => builder.build_with(policy).map(|it| Self::Named(Arc::new(it))),
            Names::Several(all) => builder.build_with(all).map(|it| Self::Several(Arc::new(it))),
        }
    }

    /// Creates a pool for the caller, with `threads` threads, or the default number for 0.
    pub(crate) fn create(
        pool: &mut *mut Self,
        builder: Builder,
        threads: usize,
        names: Option<Names>,
    ) -> c_int {
        let Some(names) = names.filter(|_| threads <= MOST_THREADS) else { return EINVAL };
        let builder = if threads == 0 { builder } else { builder.threads(threads) };
        match uncancelled(|| Self::new(builder, names)) {
            Ok(made) => {
                *pool = Box::into_raw(Box::new(made));
                0
            }
            Err(error) => error.raw_os_error().unwrap_or(EAGAIN),
        }
    }

    /// Returns whether its tasks are fibers.
    pub(crate) fn has_fibers(&self) -> bool {
        with!(self, pool => pool.has_fibers())
    }

    /// Returns whether only its owner has it, so that no stage is on it.
    fn is_free(&self) -> bool {
        with!(self, pool => Arc::strong_count(pool) == 1)
    }

    fn put_in_charge(&self, policy: usize) -> bool {
        match self {
            Self::Standard(_) | Self::Named(_) => policy == 0,
            Self::Several(pool) => pool.put_in_charge(policy),
        }
    }

    fn try_spawn(&self, work: Work) -> Result<(), Refused<()>> {
        with!(self, pool => pool.try_spawn(move || work.call()).map(drop))
    }

    fn spawn(&self, work: Work) {
        with!(self, pool => drop(pool.spawn(move || work.call())));
    }

    fn call(&self, work: Work) {
        with!(self, pool => pool.run(move || work.call()));
    }

    fn threads(&self) -> usize {
        with!(self, pool => pool.threads())
    }
}

/// Returns the policies of these names, separated by commas; `None` if a name is unknown.
///
/// # Safety
///
/// `names` is null, or a string.
pub(crate) unsafe fn named(names: *const c_char) -> Option<Names> {
    if names.is_null() {
        return Some(Names::Standard);
    }
    // SAFETY: the caller's promise.
    let names = unsafe { CStr::from_ptr(names) }.to_str().ok()?;
    let mut policies =
        names.split(',').map(str::parse).collect::<Result<Vec<_>, _>>().ok()?.into_iter();
    match policies.len() {
        1 => policies.next().map(Names::One),
        _ => Some(Names::Several(Swap::new(policies))),
    }
}

exports! {
    /// Makes a pool.
    fn antiphon_pool_create(
        pool: &mut *mut Pooled,
        threads: usize,
        policy: *const c_char,
    ) -> c_int {
        // SAFETY: the caller passes a string or null.
        let names = unsafe { named(policy) };
        Pooled::create(pool, Pool::builder(), threads, names)
    }

    /// Runs the queued tasks, and ends the threads.
    fn antiphon_pool_destroy(pool: *mut Pooled) {
        // SAFETY: created by this library, and not used after this call.
        let pool = unsafe { Box::from_raw(pool) };
        uncancelled(|| {
            // A stage that is over may hold the pool for a moment, and would then end the threads
            // itself.
            while !pool.is_free() {
                fiber::sleep(STAGES_LOOK);
            }
            drop(pool);
        });
    }

    /// Returns the number of threads.
    fn antiphon_pool_threads(pool: &Pooled) -> usize {
        pool.threads()
    }

    /// Puts another of its policies in charge.
    fn antiphon_pool_put_in_charge(pool: &Pooled, policy: usize) -> c_int {
        unless(pool.put_in_charge(policy), EINVAL)
    }

    /// Spawns a function for a worker; runs it here if there is no room.
    fn antiphon_pool_spawn(
        pool: &Pooled,
        group: *const TaskGroup,
        run: Run,
        argument: *mut c_void,
    ) {
        // SAFETY: the caller's promise.
        pool.spawn(unsafe { Work::new(run, argument, group) });
    }

    /// Spawns a function for a worker, if there is room.
    fn antiphon_pool_tryspawn(
        pool: &Pooled,
        group: *const TaskGroup,
        run: Run,
        argument: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller's promise.
        let work = unsafe { Work::new(run, argument, group) };
        let spawned = pool.try_spawn(work).is_ok();
        // SAFETY: null, or the caller's group.
        if !spawned && let Some(group) = unsafe { group.as_ref() } {
            group.0.done();
        }
        unless(spawned, EAGAIN)
    }

    /// Runs a function on a worker, and waits for it.
    fn antiphon_pool_call(pool: &Pooled, run: Run, argument: *mut c_void) {
        // SAFETY: the caller's promise.
        pool.call(unsafe { Work::new(run, argument, core::ptr::null()) });
    }

    /// Runs a function here that may wait for anything; meanwhile another thread runs the tasks of
    /// this worker.
    fn antiphon_pool_blocking(run: Run, argument: *mut c_void) {
        // SAFETY: the caller's promise.
        let work = unsafe { Work::new(run, argument, core::ptr::null()) };
        pool::blocking(|| work.call());
    }

    /// Waits until all tasks of the group are done.
    fn antiphon_task_group_wait(group: *mut TaskGroup) {
        // SAFETY: the caller's promise.
        pool::wait_all(unsafe { &(*group).0 });
        // SAFETY: the caller's promise, and no other thread uses the group now: it may be reused.
        unsafe { group.write(TaskGroup(Countdown::NEW)) };
    }

    /// Runs both functions, the second perhaps on another worker at the same time.
    fn antiphon_join(
        first: Run,
        first_argument: *mut c_void,
        second: Run,
        second_argument: *mut c_void,
    ) {
        let none = core::ptr::null();
        // SAFETY: the caller's promise.
        let second = unsafe { Work::new(second, second_argument, none) };
        // SAFETY: the caller's promise.
        let first = unsafe { Work::new(first, first_argument, none) };
        pool::join(|| first.call(), move || second.call());
    }
}
