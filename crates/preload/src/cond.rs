//! `pthread_cond_t`: the functions of our condition variable, which works with any kind of mutex.
//!
//! The mutex is released and locked again by the functions that programs call, so either we or the
//! C library may keep it. A wait is divided between `shim.c`, which sleeps, and this file:
//!
//! ```text
//!  shim.c                     here
//!  antiphon_cond_wait    ──►  begin       on the list, mutex released
//!    loop                ──►  sleeps      is there anything to sleep for?
//!      futex (the only place of a cancellation)
//!                        ──►  slept       why it ended
//!    ┌ returned          ──►  end         off the list, mutex locked again
//!    └ cancelled         ──►  cancelled   the same, and a notification is passed on
//! ```
//!
//! Where the mutex is ours, a broadcast moves the sleepers into its queue. A moved waiter is not on
//! the list any more, whatever ends its sleep, and locks the mutex from its place in that queue.
//!
//! A wait on an object that processes may share ([`crate::shared`]) has another list and the same
//! steps.
//!
//! # Destruction
//!
//! POSIX allows a program to destroy a condition variable and free its memory as soon as its
//! waiters are notified, before they have returned. A waiter whose deadline passes at that moment
//! still reads the list. So the threads that may do so are counted ([`Inside`]), and `destroy`
//! waits until none is left. A waiter that was moved in its sleep is counted out by the broadcast:
//! it wakes when its turn for the mutex comes, and the destroying thread may hold that mutex.
//! Waiters that are not notified are an error of the caller: `destroy` returns `EBUSY`.
//!
//! In the child of a fork, waiters exist in memory only: the first use there initialises the object
//! again.
//!
//! [`Inside`]: antiphon_sync::wait::Inside

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::{Linux, Slices, park_begin, park_end, section};
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::wait::{Condvar, End, Entry, Visit};
use libc::{clockid_t, timespec};

use crate::abi::{self, Cond, MONOTONIC, Mutex, SHARED};
use crate::clocks::{self, By};
use crate::real::forward;
use crate::{mode, mutex, recorder, shared, sys};

/// The code that `begin` returns if the C library must do the wait.
const FORWARD: c_int = -1;
const NO_CLOCK: clockid_t = -1;

/// A wait in progress. `shim.c` declares the same layout, with the private part as an array of
/// words.
#[repr(C)]
pub(crate) struct Wait {
    /// Arguments of the futex call: the word to sleep on, the end of the sleep, the expected value
    /// of the word, and the operation.
    word: *const AtomicU32,
    until: *const timespec,
    expected: u32,
    operation: c_int,
    private: Private,
}

struct Private {
    cond: *const Cond,
    /// The waiter's entry in the count of `cond`; `None` once the waiter no longer accesses `cond`.
    visit: Option<Visit>,
    mutex: *mut Mutex,
    site: usize,
    list: List,
    deadline: Option<Deadline>,
    until: timespec,
    /// The slices of a wait whose deadline the kernel can't judge ([`clocks`]).
    slices: Option<Slices>,
    /// The word to sleep on without a node: no thread wakes this waiter, which sleeps for short
    /// times.
    bed: AtomicU32,
    timed_out: bool,
    napped: bool,
    /// Whether the mutex counts the waiter as a user of it.
    counted: bool,
    recorded: Option<recorder::Wait>,
}

/// The list that the waiter is on, or the sequence number that it waits for.
enum List {
    /// On the list of our condition variable.
    Own(Entry<Linux>),
    /// On no list: waits until the sequence of a shared condition variable differs from this
    /// number.
    Shared(u32),
}

const _: () = assert!(size_of::<Wait>() <= 24 + 20 * 8 && align_of::<Wait>() <= 8);

/// Begins a wait. Returns 0 with the mutex released; on any other code nothing has changed.
///
/// # Safety
///
/// `wait` is memory for a `Wait` that no other thread uses; the other arguments are those of the
/// program's `pthread_cond_wait`.
// SAFETY: `shim.c` declares this name and signature, and no other object uses this prefix.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_cond_begin(
    wait: *mut MaybeUninit<Wait>,
    cond: *const Cond,
    mutex: *mut Mutex,
    clock: clockid_t,
    until: *const timespec,
    site: usize,
) -> c_int {
    if mode::theirs() {
        return FORWARD;
    }
    // SAFETY: the program gave `pthread_cond_wait` and its kin a condition variable.
    let object = unsafe { &*cond };
    let flags = object.flags.load(Relaxed);
    let of_object = if flags & MONOTONIC != 0 { Clock::Monotonic } else { Clock::Realtime };
    let (clock, by) = match clock {
        NO_CLOCK => (Some(of_object), By::CondTimed),
        clock => (abi::clock(clock), By::CondClock),
    };
    let Some(clock) = clock else { return libc::EINVAL };
    // SAFETY: null, or the program's deadline.
    let deadline = match unsafe { until.as_ref() } {
        None => None,
        Some(until) => match clocks::deadline(clock, until, by) {
            None => return libc::EINVAL,
            deadline => deadline,
        },
    };
    // SAFETY: `shim.c` passes memory for it.
    let wait = unsafe { &mut *wait };
    if flags & SHARED == 0 {
        adopt(object);
    }
    // The mutex orders this before `destroy`, whose caller owns the mutex later. The waiter is
    // counted before it joins the list, because from there a broadcast may count it out.
    let visit = object.inside.enter();
    let list = if flags & SHARED != 0 {
        List::Shared(shared::begin(object))
    // SAFETY: the program's mutex.
    } else if let Some(lock) = unsafe { mutex::lock_to_come(mutex) } {
        // SAFETY: the waiter owns the mutex, and a mutex that a thread waits with must neither move
        // nor be freed. The wait ends by `get_off` and, if the waiter was moved, `lock_moved`.
        List::Own(unsafe { object.waiters.prepare_with(lock) })
    } else {
        List::Own(object.waiters.prepare())
    };
    let recorded = recorder::waits_for_condition(cond.addr(), site);
    let wait = wait.write(Wait::new((cond, visit), mutex, site, list, deadline, recorded));
    // SAFETY: the program's mutex.
    let (code, counted) = unsafe { mutex::unlock_to_wait(mutex) };
    wait.private.counted = counted;
    if code == 0 {
        wait.private.recorded.iter_mut().for_each(|recorded| recorded.settles(site));
    } else {
        // The caller doesn't own the mutex, and so no broadcast has moved this waiter to it.
        let _ = get_off(wait, true);
    }
    code
}

impl Wait {
    fn new(
        (cond, visit): (*const Cond, Visit),
        mutex: *mut Mutex,
        site: usize,
        list: List,
        deadline: Option<Deadline>,
        recorded: Option<recorder::Wait>,
    ) -> Self {
        let realtime = deadline.is_some_and(|deadline| deadline.clock == Clock::Realtime);
        let private = if matches!(list, List::Own(_)) { libc::FUTEX_PRIVATE_FLAG } else { 0 };
        let clock = if realtime { libc::FUTEX_CLOCK_REALTIME } else { 0 };
        Self {
            word: core::ptr::null(),
            until: core::ptr::null(),
            expected: 0,
            operation: libc::FUTEX_WAIT_BITSET | private | clock,
            private: Private {
                cond,
                visit: Some(visit),
                mutex,
                site,
                list,
                deadline,
                until: timespec_of(deadline.map_or(u64::MAX, |deadline| deadline.ns)),
                slices: deadline.filter(|deadline| deadline.clock.is_seen()).map(Slices::new),
                bed: AtomicU32::new(0),
                timed_out: false,
                napped: false,
                counted: false,
                recorded,
            },
        }
    }
}

/// Returns whether the waiter must sleep; if so, stores the arguments of the futex call in `wait`.
///
/// # Safety
///
/// `begin` has written `wait`, and no other thread uses it.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_cond_begin`.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_cond_sleeps(wait: *mut Wait) -> c_int {
    // SAFETY: `begin` has written it, and no other thread uses it.
    let wait = unsafe { &mut *wait };
    if wait.private.deadline.is_some() {
        wait.until = &raw const wait.private.until;
    }
    if wait.private.timed_out || wait.private.napped {
        return 0;
    }
    if let Some(slices) = &mut wait.private.slices {
        let Some(until_ns) = slices.next_ns() else {
            wait.private.timed_out = true;
            return 0;
        };
        wait.private.until = timespec_of(until_ns);
    }
    let entry = match &wait.private.list {
        List::Own(entry) => entry,
        List::Shared(seen) => {
            // SAFETY: `inside` counts us, so the object is there.
            let cond = unsafe { &*wait.private.cond };
            (wait.word, wait.expected) = (&raw const cond.sequence, *seen);
            // SECTION-3.
            section::interrupt();
            return c_int::from(!shared::is_notified(cond, *seen));
        }
    };
    // SAFETY: the node is used for `park_begin` only.
    let Some(node) = (unsafe { entry.node() }) else {
        return wait.nap();
    };
    loop {
        if entry.is_notified() {
            return 0;
        }
        // It ends the thread's sections (SECTION-3).
        if let Some(sleep) = park_begin(node) {
            (wait.word, wait.expected) = (sleep.address.cast(), sleep.expected);
            return 1;
        }
    }
}

impl Wait {
    /// Prepares the sleep of a waiter without a node: at most a millisecond, after which it wakes
    /// spuriously, or the time left until the deadline.
    fn nap(&mut self) -> c_int {
        const NAP_NS: u64 = 1_000_000;
        // SECTION-3.
        section::interrupt();
        let left = self.private.deadline.map_or(NAP_NS, left_ns).min(NAP_NS);
        self.private.napped = true;
        self.private.until = timespec_of(Linux::now(Clock::Monotonic).saturating_add(left));
        self.until = &raw const self.private.until;
        self.word = &raw const self.private.bed;
        self.operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        1
    }
}

/// Nanoseconds until the deadline, 0 if it has passed.
fn left_ns(deadline: Deadline) -> u64 {
    deadline.ns.saturating_sub(Linux::now(deadline.clock))
}

/// Handles the end of the sleep, with the kernel's code.
///
/// # Safety
///
/// `begin` has written `wait`, and no other thread uses it.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_cond_begin`.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_cond_slept(wait: *mut Wait, code: c_int) {
    // SAFETY: as in `sleeps`.
    let wait = unsafe { &mut *wait };
    woke(wait);
    match code {
        0 | libc::EAGAIN | libc::EINTR => {}
        // The end of a slice: the deadline is checked before the next one.
        libc::ETIMEDOUT if wait.private.slices.is_some() && !wait.private.napped => {}
        libc::ETIMEDOUT => {
            let passed = |deadline| left_ns(deadline) == 0;
            wait.private.timed_out =
                !wait.private.napped || wait.private.deadline.is_some_and(passed);
        }
        // A filter refuses the futex call: let other threads run and check again.
        _ => sys::yield_now(),
    }
}

/// Undoes what the sleep has prepared in the waiter's node.
fn woke(wait: &Wait) {
    if let List::Own(entry) = &wait.private.list
        // SAFETY: the node is used for `park_end` only.
        && let Some(node) = unsafe { entry.node() }
    {
        // The list says whether the waiter was notified.
        let _ = park_end(node);
    }
}

/// Ends the wait: locks the mutex, and returns the result of the program's call.
///
/// # Safety
///
/// `begin` has written `wait`, and no other thread uses it.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_cond_begin`.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_cond_end(wait: *mut Wait) -> c_int {
    // SAFETY: as in `sleeps`.
    let wait = unsafe { &mut *wait };
    match leave(wait, false) {
        (0, true) if !wait.private.napped => 0,
        (0, _) if wait.private.timed_out => libc::ETIMEDOUT,
        (code, _) => code,
    }
}

/// Ends the wait of a thread cancelled in its sleep: locks the mutex, and passes a notification on
/// to another waiter.
///
/// # Safety
///
/// `begin` has written `wait`, and no other thread uses it.
// SAFETY: `shim.c` declares this name and signature, as of `antiphon_cond_begin`.
#[unsafe(no_mangle)]
unsafe extern "C" fn antiphon_cond_cancelled(wait: *mut Wait) {
    // SAFETY: as in `sleeps`.
    let wait = unsafe { &mut *wait };
    woke(wait);
    // Cleanups run with the mutex held, whichever code locking it returned.
    let _ = leave(wait, true);
}

/// Takes the waiter off the list and locks the mutex. Returns the mutex's code, and whether the
/// waiter was notified; with `pass_on`, another waiter gets the notification.
fn leave(wait: &mut Wait, pass_on: bool) -> (c_int, bool) {
    let end = get_off(wait, pass_on);
    let notified = !matches!(end, End::GaveUp);
    let (mutex, counted, site) = (wait.private.mutex, wait.private.counted, wait.private.site);
    let code = match end {
        // SAFETY: the program's mutex, as given to `begin`.
        End::Moved(moved) => unsafe { mutex::lock_moved(mutex, moved, counted, site) },
        // SAFETY: the program's mutex.
        _ => unsafe { mutex::lock_again(mutex, counted, site) },
    };
    (code, notified)
}

/// Takes the waiter off the list.
fn get_off(wait: &mut Wait, pass_on: bool) -> End {
    let list = core::mem::replace(&mut wait.private.list, List::Shared(0));
    let end = match list {
        List::Own(entry) => match entry.moved() {
            // The broadcast has counted the waiter out, and the object may be gone.
            Ok(moved) => End::Moved(moved),
            Err(entry) => get_off_list(wait, entry, pass_on),
        },
        List::Shared(seen) => {
            // SAFETY: `inside` counts us, so the object is there.
            let cond = unsafe { &*wait.private.cond };
            // A notification wakes all waiters: there is nothing to pass on.
            let notified = shared::is_notified(cond, seen);
            go_out(wait, cond);
            if notified { End::Notified } else { End::GaveUp }
        }
    };
    if let Some(recorded) = wait.private.recorded.take() {
        recorded.ends(!matches!(end, End::GaveUp));
    }
    end
}

fn get_off_list(wait: &mut Wait, entry: Entry<Linux>, pass_on: bool) -> End {
    // SAFETY: `inside` counts us, so the object is there.
    let cond = unsafe { &*wait.private.cond };
    // SAFETY: the wait was prepared by this object, to which `wait` points.
    let end = unsafe { cond.waiters.finish(entry) };
    // A moved waiter was notified by a broadcast, as all others were: there is nothing to pass on.
    if pass_on && matches!(end, End::Notified) {
        cond.waiters.notify_one();
    }
    go_out(wait, cond);
    end
}

/// Counts the waiter out. The object may be gone afterwards.
fn go_out(wait: &mut Wait, cond: &Cond) {
    if let Some(visit) = wait.private.visit.take() {
        cond.inside.leave(visit);
    }
}

/// Initialises an object again that this process has inherited from its parent.
fn adopt(cond: &Cond) {
    cond.inside.adopt(|| {
        let waiters = (&raw const cond.waiters).cast_mut();
        // SAFETY: the object consists of atomics, and no other thread is past this point
        // (INSIDE-2). The waiters that it names belong to the parent, and are not in this process.
        unsafe { waiters.write(Condvar::NEW) };
    });
}

/// Where everything is recorded, counts a notification from `site`. Only for private objects of
/// ours it is known whether there is a waiter.
///
/// # Safety
///
/// `cond` is a condition variable.
#[inline]
unsafe fn records(cond: *mut Cond, site: usize, all: bool) {
    if !mode::records_all() {
        return;
    }
    if mode::theirs() {
        return recorder::notifies_theirs(cond.addr(), site, all);
    }
    // SAFETY: our caller's promise.
    let object = unsafe { &*cond };
    let is_private = object.flags.load(Relaxed) & SHARED == 0;
    let in_vain = is_private && !object.waiters.has_waiters();
    recorder::notifies(cond.addr(), &object.note, site, all, in_vain);
}

/// `pthread_cond_signal`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn signal(cond: *mut Cond, site: usize) -> c_int {
    // SAFETY: the caller of `pthread_cond_signal` gave us a condition variable.
    unsafe { records(cond, site, false) };
    if mode::theirs() {
        return forward!(COND_SIGNAL(cond.cast()));
    }
    // SAFETY: the caller of `pthread_cond_signal` gave us a condition variable.
    let cond = unsafe { &*cond };
    if cond.flags.load(Relaxed) & SHARED != 0 {
        shared::notify(cond);
    } else if cond.waiters.has_waiters() {
        adopt(cond);
        cond.waiters.notify_one();
    }
    0
}

/// `pthread_cond_broadcast`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn broadcast(cond: *mut Cond, site: usize) -> c_int {
    // SAFETY: as in `signal`.
    unsafe { records(cond, site, true) };
    if mode::theirs() {
        return forward!(COND_BROADCAST(cond.cast()));
    }
    // SAFETY: as in `signal`.
    let cond = unsafe { &*cond };
    if cond.flags.load(Relaxed) & SHARED != 0 {
        shared::notify(cond);
    } else if cond.waiters.has_waiters() {
        adopt(cond);
        let moved = cond.waiters.notify_all();
        if moved != 0 {
            cond.inside.count_out(moved);
        }
    }
    0
}

/// `pthread_cond_init`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn init(cond: *mut Cond, attributes: *const c_void) -> c_int {
    if mode::theirs() {
        return forward!(COND_INIT(cond.cast(), attributes));
    }
    let mut flags = 0;
    if !attributes.is_null() {
        let (mut clock, mut pshared) = (0, 0);
        let (clock_at, pshared_at) = (&raw mut clock, &raw mut pshared);
        let code = forward!(CONDATTR_GETCLOCK(attributes, clock_at));
        let code =
            if code != 0 { code } else { forward!(CONDATTR_GETPSHARED(attributes, pshared_at)) };
        if code != 0 {
            return code;
        }
        flags |= if clock == libc::CLOCK_MONOTONIC { MONOTONIC } else { 0 };
        flags |= if pshared == libc::PTHREAD_PROCESS_SHARED { SHARED } else { 0 };
    }
    // SAFETY: the caller of `pthread_cond_init` gave us memory for a condition variable.
    unsafe { cond.write(Cond::new(flags)) };
    0
}

/// `pthread_cond_destroy`.
///
/// # Safety
///
/// The conditions of POSIX: the objects are the program's, initialised where POSIX requires it.
pub(crate) unsafe extern "C" fn destroy(cond: *mut Cond) -> c_int {
    if mode::theirs() {
        return forward!(COND_DESTROY(cond.cast()));
    }
    // SAFETY: as in `signal`.
    let cond = unsafe { &*cond };
    if cond.flags.load(Relaxed) & SHARED == 0 {
        if cond.inside.is_used() {
            adopt(cond);
        }
        if cond.waiters.has_waiters() {
            return libc::EBUSY;
        }
    }
    cond.inside.wait_until_empty();
    0
}

fn timespec_of(ns: u64) -> timespec {
    timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
