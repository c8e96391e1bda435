//! `antiphon_pool_t`, `antiphon_task_group_t`.

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

/// More are a mistake, such as a -1: what each takes would be gone before the system refuses one.
const MOST_THREADS: usize = 4_096;

/// Time between two looks whether stages are over.
const STAGES_LOOK: Duration = Duration::from_micros(100);

/// The pool behind `antiphon_pool_t`: the policy's type is known but for those that were named.
pub enum Pooled {
    Standard(Arc<Pool>),
    Named(Arc<Pool<BoxedPolicy<Linux>>>),
    Several(Arc<Pool<Swap<Linux>>>),
}

/// Policies by name.
pub(crate) enum Names {
    Standard,
    One(BoxedPolicy<Linux>),
    Several(Swap<Linux>),
}

/// Does the same with the pool, whatever its type.
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

/// A function of the caller's, and its argument.
struct Work {
    run: Run,
    argument: *mut c_void,
    /// Null: it is of no group.
    group: *const TaskGroup,
}

// SAFETY: the header says that any thread may run it.
unsafe impl Send for Work {}

impl Work {
    /// # Safety
    ///
    /// The caller may have the function called, and the group stays until it was.
    unsafe fn new(run: Run, argument: *mut c_void, group: *const TaskGroup) -> Self {
        let work = Self { run, argument, group };
        if let Some(group) = work.group() {
            group.0.add();
        }
        work
    }

    fn group(&self) -> Option<&TaskGroup> {
        // SAFETY: of `new`.
        unsafe { self.group.as_ref() }
    }

    fn call(self) {
        // SAFETY: of `new`.
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

    /// Makes one for the caller, with `threads` threads, or the default number for 0.
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

    /// Whether its tasks are fibers.
    pub(crate) fn has_fibers(&self) -> bool {
        with!(self, pool => pool.has_fibers())
    }

    /// Whether only its owner has it: no stage is on it.
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

/// The policies of these names, which commas part. `None`: there is no such.
///
/// # Safety
///
/// Null, or a string.
pub(crate) unsafe fn named(names: *const c_char) -> Option<Names> {
    if names.is_null() {
        return Some(Names::Standard);
    }
    // SAFETY: the caller's.
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
        // SAFETY: the caller's string, or null.
        let names = unsafe { named(policy) };
        Pooled::create(pool, Pool::builder(), threads, names)
    }

    /// Runs the tasks that are there, and ends the threads.
    fn antiphon_pool_destroy(pool: *mut Pooled) {
        // SAFETY: made above, and not used from now on.
        let pool = unsafe { Box::from_raw(pool) };
        uncancelled(|| {
            // A stage that is over may have it for a moment, and would end the threads then.
            while !pool.is_free() {
                fiber::sleep(STAGES_LOOK);
            }
            drop(pool);
        });
    }

    /// How many threads there are.
    fn antiphon_pool_threads(pool: &Pooled) -> usize {
        pool.threads()
    }

    /// Lets another of its policies decide.
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
        // SAFETY: null, or the caller's.
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

    /// Runs a function here, which may wait for anything; meanwhile another thread runs the tasks
    /// of this worker.
    fn antiphon_pool_blocking(run: Run, argument: *mut c_void) {
        // SAFETY: the caller's promise.
        let work = unsafe { Work::new(run, argument, core::ptr::null()) };
        pool::blocking(|| work.call());
    }

    /// Waits until all tasks of the group are done.
    fn antiphon_task_group_wait(group: *mut TaskGroup) {
        // SAFETY: the caller's.
        pool::wait_all(unsafe { &(*group).0 });
        // SAFETY: as above, and no other thread has it any more: it may be used again.
        unsafe { group.write(TaskGroup(Countdown::NEW)) };
    }

    /// Runs both, the second perhaps on another worker meanwhile.
    fn antiphon_join(
        first: Run,
        first_argument: *mut c_void,
        second: Run,
        second_argument: *mut c_void,
    ) {
        let none = core::ptr::null();
        // SAFETY: the caller's promise.
        let second = unsafe { Work::new(second, second_argument, none) };
        // SAFETY: as above.
        let first = unsafe { Work::new(first, first_argument, none) };
        pool::join(|| first.call(), move || second.call());
    }
}
