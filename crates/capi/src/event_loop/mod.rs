//! The C interface of `antiphon_loop_t` and `antiphon_loop_handle_t`.
//!
//! During a callback the loop is borrowed by the callback's context: C calls on the loop use that
//! context.
//!
//! | file | content |
//! |---|---|
//! | `watch` | tardiness, durations, and which callback a loop is in |

pub(crate) mod watch;

use core::cell::{Cell, RefCell, UnsafeCell};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;

use antiphon_coop::Served;
use antiphon_coop::event_loop::{self as rust, Context, End, Event, EventId, Files};
use antiphon_coop::event_loop::{Callback, GenericEvent, Name, Options, Source, Step, Trouble};
use libc::{EDEADLK, EINVAL, EIO, ENOENT, ESRCH};

use crate::cancel::uncancelled;
use crate::code::unless;
use crate::coop::seat::{CoopStatus, Part, Seat, Seated, Wish};
use crate::export::exports;

/// `antiphon_loop_t`.
pub struct Loop {
    events: UnsafeCell<rust::Loop>,
    /// The context of the running callback, or null.
    inside: Cell<*mut Context<'static>>,
    /// The way in which the loop shares its CPU; the loop's tier is the same.
    seat: Rc<RefCell<Seat>>,
    /// Whether it is under the scheduler in the kernel, before its tier.
    served: Served,
}

/// `antiphon_loop_handle_t`.
pub struct Handle {
    handle: rust::Handle,
    events: *const Loop,
}

type Call = unsafe extern "C" fn(*const Loop, *mut c_void, &mut u64) -> c_int;
type Drops = unsafe extern "C" fn(*mut c_void);
type Tell = unsafe extern "C" fn(*mut c_void, &LoopTrouble);

/// `antiphon_loop_event_t`.
#[repr(C)]
pub struct LoopEvent {
    when: u64,
    due: c_int,
    kept: c_int,
    call: Option<Call>,
    end: Option<Drops>,
    data: *mut c_void,
    name: *const c_char,
}

/// `antiphon_loop_turn_t`.
#[repr(C)]
pub struct LoopTurn {
    next_ns: u64,
    called: u32,
    end: c_int,
}

/// `antiphon_loop_options_t`. Zero fields mean the Rust defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LoopOptions {
    look_ns: u64,
    poll_ns: u64,
    long_ns: u64,
    behind_ns: u64,
    trouble: Option<Tell>,
    data: *mut c_void,
    kept: u64,
}

/// `antiphon_loop_trouble_t`.
#[repr(C)]
pub struct LoopTrouble {
    name: *const c_char,
    ran_ns: u64,
    for_ns: u64,
    what: c_int,
    kept: c_int,
}

/// The caller's functions of an event.
struct Called {
    events: *const Loop,
    call: Call,
    end: Option<Drops>,
    data: *mut c_void,
    importance: u64,
}

// SAFETY: the header says that what a handle submits may be called by the loop's thread.
unsafe impl Send for Called {}

impl Called {
    fn step(&mut self, context: &mut Context<'_>) -> Step {
        let mut when = context.release_ns().unwrap_or(self.importance);
        // SAFETY: the loop exists while it calls.
        let inside = unsafe { &(*self.events).inside };
        inside.set(ptr::from_mut(context).cast());
        // SAFETY: the caller's function, with the arguments that the header defines.
        let next = unsafe { (self.call)(self.events, self.data, &mut when) };
        inside.set(ptr::null_mut());
        match next {
            1 => {
                self.importance = when;
                Step::More(when)
            }
            2 => Step::At(when),
            3 => Step::Asleep,
            _ => Step::Done,
        }
    }
}

impl Drop for Called {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: the caller's function, with the argument that the header defines.
            unsafe { end(self.data) }
        }
    }
}

impl LoopEvent {
    /// Returns `None` if a field has an invalid value.
    ///
    /// # Safety
    ///
    /// The name is null, or a string that is never freed.
    unsafe fn event(
        &self,
        events: *const Loop,
    ) -> Option<GenericEvent<Files, impl Callback<Files> + Send + use<>>> {
        let Self { when, due, kept: 0, call: Some(call), end, data, name } = *self else {
            return None;
        };
        // All names of a loop are strings of `string`.
        let name = if name.is_null() {
            c"event"
        } else {
            // SAFETY: the caller passes a string that is never freed.
            unsafe { CStr::from_ptr::<'static>(name) }
        };
        let name = name.to_str().ok()?;
        let importance = if due == 0 { 0 } else { when };
        let make: fn(u64, _) -> _ = match due {
            0 => Event::timer_in_steps,
            1 => Event::best_effort_in_steps,
            2 => Event::when_woken,
            _ => return None,
        };
        // Last, because dropping it calls `end` from now on.
        let mut called = Called { events, call, end, data, importance };
        Some(make(when, move |context: &mut Context<'_>| called.step(context)).named(name))
    }
}

impl LoopOptions {
    /// Returns `None` if a field has an invalid value.
    fn options(&self) -> Option<Options> {
        let mut options = Options::default();
        let Options { look_ns, poll_ns, long_ns, behind_ns } = &mut options;
        let all = [
            (look_ns, self.look_ns),
            (poll_ns, self.poll_ns),
            (long_ns, self.long_ns),
            (behind_ns, self.behind_ns),
        ];
        for (option, wanted) in all {
            *option = if wanted == 0 { *option } else { wanted };
        }
        (self.kept == 0).then_some(options)
    }
}

impl LoopTrouble {
    fn of(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Long { name, ran_ns } => {
                Self { name: string(Some(name)), ran_ns, for_ns: 0, what: 0, kept: 0 }
            }
            Trouble::Behind { name, ran_ns, for_ns } => {
                Self { name: string(Some(name)), ran_ns, for_ns, what: 1, kept: 0 }
            }
        }
    }
}

/// Returns the name of an event as it was given, up to its 0; null if it has none.
fn string(name: Option<Name>) -> *const c_char {
    match name {
        Some(Name::Given(given)) => given.as_ptr().cast(),
        Some(Name::Place(_)) | None => ptr::null(),
    }
}

/// Evaluates an expression on the loop, or on the context of the callback that it is in.
macro_rules! with {
    ($events:expr, $name:ident => $result:expr) => {
        if $events.inside.get().is_null() {
            // SAFETY: the header says that the caller is on the loop's thread, and in no callback
            // of the loop, nor in `end`.
            let $name = unsafe { &mut *$events.events.get() };
            $result
        } else {
            // SAFETY: the context belongs to the callback that the caller is in, which does not use
            // it meanwhile.
            let $name = unsafe { &mut *$events.inside.get() };
            $result
        }
    };
}

use with;

/// A file that the caller has open.
struct Borrowed(BorrowedFd<'static>);

impl AsFd for Borrowed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0
    }
}

fn end(end: End) -> c_int {
    c_int::from(end == End::Stopped)
}

/// Writes the number of an event to the caller's memory. Returns 0.
///
/// # Safety
///
/// `id` is null, or memory for one value.
unsafe fn name(id: *mut u64, event: EventId) -> c_int {
    if !id.is_null() {
        // SAFETY: the caller's promise.
        unsafe { id.write(event.number()) }
    }
    0
}

fn create(
    events: &mut *mut Loop,
    options: &Options,
    prepare: impl FnOnce(&mut rust::Loop),
) -> c_int {
    match uncancelled(|| rust::Loop::with(*options)) {
        Ok(mut made) => {
            prepare(&mut made);
            *events = Box::into_raw(Box::new(Loop {
                served: made.waits().served(),
                events: UnsafeCell::new(made),
                inside: Cell::new(ptr::null_mut()),
                seat: Rc::default(),
            }));
            0
        }
        Err(error) => error.raw_os_error().unwrap_or(EIO),
    }
}

exports! {
    /// Makes a loop.
    fn antiphon_loop_create(events: &mut *mut Loop) -> c_int {
        create(events, &Options::default(), |_| ())
    }

    /// Makes a loop, with options.
    fn antiphon_loop_create_with(events: &mut *mut Loop, options: &LoopOptions) -> c_int {
        let LoopOptions { trouble, data, .. } = *options;
        let Some(options) = options.options() else { return EINVAL };
        create(events, &options, |made| {
            let Some(tell) = trouble else { return };
            made.on_trouble(move |trouble| {
                // SAFETY: the caller's function, with the arguments that the header defines.
                unsafe { tell(data, &LoopTrouble::of(trouble)) }
            });
        })
    }

    /// Frees the loop and its events.
    fn antiphon_loop_destroy(events: *mut Loop) {
        // SAFETY: created by this library, and not used after this call.
        let events = unsafe { Box::from_raw(events) };
        uncancelled(|| drop(events));
    }

    /// Makes the loop share its CPU.
    fn antiphon_loop_cooperate(events: &Loop, tier: c_int, part: Option<&Part>) -> c_int {
        // SAFETY: the caller passes a name or null.
        let wish = match unsafe { Wish::of(part) } {
            Ok(wish) => wish,
            Err(code) => return code,
        };
        // A thread has one membership, and one weight: the former seat is left first.
        let leave = || drop(events.seat.take());
        match uncancelled(|| Seat::take(tier, &wish, leave)) {
            Ok(seat) => {
                events.seat.replace(seat);
                let seated = Box::new(Seated(events.seat.clone()));
                with!(events, events => events.cooperate_by(seated));
                0
            }
            Err(code) => code,
        }
    }

    /// Writes how the loop shares its CPU.
    fn antiphon_loop_coop_status(events: &Loop, status: &mut CoopStatus) {
        *status = events.seat.borrow().status(events.served.is_served());
    }

    /// Submits an event to the loop.
    fn antiphon_loop_submit(events: &Loop, event: &LoopEvent, id: *mut u64) -> c_int {
        // SAFETY: the caller passes a name or null.
        let Some(event) = (unsafe { event.event(events) }) else { return EINVAL };
        let event = with!(events, events => events.submit(event));
        // SAFETY: the caller passes memory for one value, or null.
        unsafe { name(id, event) }
    }

    /// Submits an event that is called when a file is ready.
    fn antiphon_loop_watch(
        events: &Loop,
        fd: c_int,
        ways: c_int,
        event: &LoopEvent,
        id: *mut u64,
    ) -> c_int {
        if fd < 0 || !(1..=7).contains(&ways) || ways == 4 {
            return EINVAL;
        }
        // SAFETY: the caller keeps the file open until the event is over.
        let file = Borrowed(unsafe { BorrowedFd::borrow_raw(fd) });
        let source = match ways & 3 {
            1 => Source::readable(file),
            2 => Source::writable(file),
            _ => Source::both(file),
        };
        let source = if ways & 4 == 0 { source } else { source.edge_triggered() };
        // SAFETY: the caller passes a name or null.
        let Some(event) = (unsafe { event.event(events) }) else { return EINVAL };
        match uncancelled(|| with!(events, events => events.watch(source, event))) {
            // SAFETY: the caller passes memory for one value, or null.
            Ok(event) => unsafe { name(id, event) },
            Err(error) => error.raw_os_error().unwrap_or(EIO),
        }
    }

    /// Cancels an event.
    fn antiphon_loop_cancel(events: &Loop, id: u64) -> c_int {
        let is_there = || with!(events, events => events.cancel(EventId::of(id)));
        unless(uncancelled(is_there), ENOENT)
    }

    /// Wakes an event: the loop calls it.
    fn antiphon_loop_wake(events: &Loop, id: u64) -> c_int {
        unless(with!(events, events => events.wake(EventId::of(id))), ENOENT)
    }

    /// Stops the loop.
    fn antiphon_loop_stop(events: &Loop) {
        with!(events, events => events.stop());
    }

    /// Runs the loop until its end.
    fn antiphon_loop_run(events: &Loop) -> c_int {
        if !events.inside.get().is_null() {
            return EDEADLK;
        }
        // SAFETY: the caller is on the loop's thread, and in no callback of the loop.
        let events = unsafe { &mut *events.events.get() };
        uncancelled(|| end(events.run()))
    }

    /// Calls up to `most` of the events that are due now.
    fn antiphon_loop_turn(events: &Loop, most: u32, turn: &mut LoopTurn) -> c_int {
        if !events.inside.get().is_null() {
            return EDEADLK;
        }
        // SAFETY: the caller is on the loop's thread, and in no callback of the loop.
        let events = unsafe { &mut *events.events.get() };
        let did = uncancelled(|| events.turn(most as usize));
        turn.next_ns = did.next_ns.unwrap_or(u64::MAX);
        turn.called = did.called as u32;
        turn.end = did.end.map_or(-1, end);
        0
    }

    /// Returns a file that is readable when the loop has something to do.
    fn antiphon_loop_fd(events: &Loop) -> c_int {
        if !events.inside.get().is_null() {
            return -1;
        }
        // SAFETY: the caller is on the loop's thread, and in no callback of the loop.
        unsafe { &*events.events.get() }.as_fd().as_raw_fd()
    }

    /// Returns the readiness of the file of the callback's event.
    fn antiphon_loop_ready(events: &Loop) -> c_int {
        // SAFETY: null, or the context of the callback that the caller is in.
        let ready = unsafe { events.inside.get().as_ref() }.map(Context::ready).unwrap_or_default();
        c_int::from(ready.read) | c_int::from(ready.write) << 1
    }

    /// Returns the time until which the callback may go on.
    fn antiphon_loop_until_ns(events: &Loop) -> u64 {
        // SAFETY: null, or the context of the callback that the caller is in.
        unsafe { events.inside.get().as_ref() }.map_or(0, Context::until_ns)
    }

    /// Returns whether the callback should return soon.
    fn antiphon_loop_is_over(events: &Loop) -> c_int {
        // SAFETY: null, or the context of the callback that the caller is in.
        c_int::from(unsafe { events.inside.get().as_mut() }.is_none_or(Context::is_over))
    }

    /// Returns the current time on the clock of releases.
    fn antiphon_loop_now_ns() -> u64 {
        rust::now_ns()
    }

    /// Makes a handle of the loop for other threads.
    fn antiphon_loop_handle_create(events: &Loop) -> *mut Handle {
        let handle = with!(events, events => events.handle());
        Box::into_raw(Box::new(Handle { handle, events }))
    }

    /// Frees a handle.
    fn antiphon_loop_handle_destroy(handle: *mut Handle) {
        // SAFETY: created by this library, and not used after this call.
        let handle = unsafe { Box::from_raw(handle) };
        uncancelled(|| drop(handle));
    }

    /// Submits an event to the loop.
    fn antiphon_loop_handle_submit(handle: &Handle, event: &LoopEvent, id: *mut u64) -> c_int {
        // SAFETY: the caller passes a name or null.
        let Some(event) = (unsafe { event.event(handle.events) }) else { return EINVAL };
        // If the loop no longer exists, the event is dropped.
        let submitted = uncancelled(|| handle.handle.submit(event));
        let Ok(event) = submitted else { return ESRCH };
        // SAFETY: the caller passes memory for one value, or null.
        unsafe { name(id, event) }
    }

    /// Cancels an event of the loop.
    fn antiphon_loop_handle_cancel(handle: &Handle, id: u64) -> c_int {
        unless(handle.handle.cancel(EventId::of(id)).is_ok(), ESRCH)
    }

    /// Wakes an event: the loop calls it.
    fn antiphon_loop_handle_wake(handle: &Handle, id: u64) -> c_int {
        unless(handle.handle.wake(EventId::of(id)).is_ok(), ESRCH)
    }

    /// Stops the loop.
    fn antiphon_loop_handle_stop(handle: &Handle) -> c_int {
        unless(handle.handle.stop().is_ok(), ESRCH)
    }
}
