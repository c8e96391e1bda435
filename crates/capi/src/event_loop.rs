//! `antiphon_loop_t`, `antiphon_loop_handle_t`.
//!
//! In a callback the loop is its context's: what C calls on the loop goes by that then.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use antiphon::event_loop::{self as rust, Context, End, Event, EventId, Files};
use antiphon::event_loop::{Callback, GenericEvent, Source, Step};
use libc::{EDEADLK, EINVAL, EIO, ENOENT, ESRCH};

use crate::code::unless;
use crate::export::exports;

/// `antiphon_loop_t`.
pub struct Loop {
    events: UnsafeCell<rust::Loop>,
    /// That of the callback that is being called, or null.
    inside: Cell<*mut Context<'static>>,
}

/// `antiphon_loop_handle_t`.
pub struct Handle {
    handle: rust::Handle,
    events: *const Loop,
}

type Call = unsafe extern "C" fn(*const Loop, *mut c_void, &mut u64) -> c_int;
type Drops = unsafe extern "C" fn(*mut c_void);

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

/// `antiphon_loop_stats_t`.
#[repr(C)]
pub struct LoopStats {
    called: u64,
    long_calls: u64,
    timers: u64,
    late_p50_ns: u64,
    late_p99_ns: u64,
    late_max_ns: u64,
    ran_p99_ns: u64,
    ran_max_ns: u64,
}

/// What the caller has called.
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
        // SAFETY: the loop is there while it calls.
        let inside = unsafe { &(*self.events).inside };
        inside.set(ptr::from_mut(context).cast());
        // SAFETY: the caller's function, with what it is to have.
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
            // SAFETY: the caller's function, with what it is to have.
            unsafe { end(self.data) }
        }
    }
}

impl LoopEvent {
    /// `None`: it is not as the header has it.
    ///
    /// # Safety
    ///
    /// The name is null, or a string that stays.
    unsafe fn event(
        &self,
        events: *const Loop,
    ) -> Option<GenericEvent<Files, impl Callback<Files> + Send + use<>>> {
        let Self { when, due, kept: 0, call: Some(call), end, data, name } = *self else {
            return None;
        };
        let name = if name.is_null() {
            "event"
        } else {
            // SAFETY: the caller's, for good.
            unsafe { CStr::from_ptr::<'static>(name) }.to_str().ok()?
        };
        let importance = if due == 0 { 0 } else { when };
        let make: fn(u64, _) -> _ = match due {
            0 => Event::timer_in_steps,
            1 => Event::best_effort_in_steps,
            2 => Event::when_woken,
            _ => return None,
        };
        // Last: its `end` is called from now on.
        let mut called = Called { events, call, end, data, importance };
        Some(make(when, move |context: &mut Context<'_>| called.step(context)).named(name))
    }
}

/// Does something to the loop, or by the context of the callback that it is in.
macro_rules! with {
    ($events:expr, $name:ident => $result:expr) => {
        if $events.inside.get().is_null() {
            // SAFETY: the header says that it is of the caller's thread, which is in no callback
            // of it, nor in `end`.
            let $name = unsafe { &mut *$events.events.get() };
            $result
        } else {
            // SAFETY: of the callback that the caller is in, which does not use it meanwhile.
            let $name = unsafe { &mut *$events.inside.get() };
            $result
        }
    };
}

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

exports! {
    /// Makes a loop.
    fn antiphon_loop_create(events: &mut *mut Loop) -> c_int {
        match rust::Loop::new() {
            Ok(made) => {
                let inside = Cell::new(ptr::null_mut());
                *events = Box::into_raw(Box::new(Loop { events: UnsafeCell::new(made), inside }));
                0
            }
            Err(error) => error.raw_os_error().unwrap_or(EIO),
        }
    }

    /// Lets go of the loop and its events.
    fn antiphon_loop_destroy(events: *mut Loop) {
        // SAFETY: made above, and not used from now on.
        drop(unsafe { Box::from_raw(events) });
    }

    /// Has the loop do something.
    fn antiphon_loop_submit(events: &Loop, event: &LoopEvent, id: *mut u64) -> c_int {
        // SAFETY: the caller's name.
        let Some(event) = (unsafe { event.event(events) }) else { return EINVAL };
        let number = with!(events, events => events.submit(event)).number();
        if !id.is_null() {
            // SAFETY: the caller's memory for one.
            unsafe { id.write(number) }
        }
        0
    }

    /// Has the loop do something when a file is ready.
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
        // SAFETY: the caller has it open until the event is over.
        let file = Borrowed(unsafe { BorrowedFd::borrow_raw(fd) });
        let source = match ways & 3 {
            1 => Source::readable(file),
            2 => Source::writable(file),
            _ => Source::both(file),
        };
        let source = if ways & 4 == 0 { source } else { source.edge_triggered() };
        // SAFETY: the caller's name.
        let Some(event) = (unsafe { event.event(events) }) else { return EINVAL };
        match with!(events, events => events.watch(source, event)) {
            Ok(number) => {
                if !id.is_null() {
                    // SAFETY: the caller's memory for one.
                    unsafe { id.write(number.number()) }
                }
                0
            }
            Err(error) => error.raw_os_error().unwrap_or(EIO),
        }
    }

    /// Forgets about an event.
    fn antiphon_loop_cancel(events: &Loop, id: u64) -> c_int {
        unless(with!(events, events => events.cancel(EventId::of(id))), ENOENT)
    }

    /// Has an event called.
    fn antiphon_loop_wake(events: &Loop, id: u64) -> c_int {
        unless(with!(events, events => events.wake(EventId::of(id))), ENOENT)
    }

    /// Has the loop stop.
    fn antiphon_loop_stop(events: &Loop) {
        with!(events, events => events.stop());
    }

    /// Does what is to be done.
    fn antiphon_loop_run(events: &Loop) -> c_int {
        if !events.inside.get().is_null() {
            return EDEADLK;
        }
        // SAFETY: of the caller's thread, which is in no callback of it.
        end(unsafe { &mut *events.events.get() }.run())
    }

    /// Does some of what is to be done now.
    fn antiphon_loop_turn(events: &Loop, most: u32, turn: &mut LoopTurn) -> c_int {
        if !events.inside.get().is_null() {
            return EDEADLK;
        }
        // SAFETY: as above.
        let did = unsafe { &mut *events.events.get() }.turn(most as usize);
        turn.next_ns = did.next_ns.unwrap_or(u64::MAX);
        turn.called = did.called as u32;
        turn.end = did.end.map_or(-1, end);
        0
    }

    /// A file that is readable when there is something to do.
    fn antiphon_loop_fd(events: &Loop) -> c_int {
        if !events.inside.get().is_null() {
            return -1;
        }
        // SAFETY: as above.
        unsafe { &*events.events.get() }.as_fd().as_raw_fd()
    }

    /// What the file of the callback's event has said.
    fn antiphon_loop_ready(events: &Loop) -> c_int {
        // SAFETY: null, or of the callback that the caller is in.
        let ready = unsafe { events.inside.get().as_ref() }.map(Context::ready).unwrap_or_default();
        c_int::from(ready.read) | c_int::from(ready.write) << 1
    }

    /// Until when the callback may go on.
    fn antiphon_loop_until_ns(events: &Loop) -> u64 {
        // SAFETY: as above.
        unsafe { events.inside.get().as_ref() }.map_or(0, Context::until_ns)
    }

    /// Whether the callback is to return soon.
    fn antiphon_loop_is_over(events: &Loop) -> c_int {
        // SAFETY: as above.
        c_int::from(unsafe { events.inside.get().as_mut() }.is_none_or(Context::is_over))
    }

    /// The time that releases are given in.
    fn antiphon_loop_now_ns() -> u64 {
        rust::now_ns()
    }

    /// What is known of the events of a name.
    fn antiphon_loop_stats(events: &Loop, name: *const c_char, stats: *mut LoopStats) -> c_int {
        // SAFETY: the caller's string.
        let name = unsafe { CStr::from_ptr(name) };
        let all = with!(events, events => events.stats());
        let is = |stats: &&rust::Stats| match stats.name {
            rust::Name::Given(given) => given.as_bytes() == name.to_bytes(),
            rust::Name::Place(_) => false,
        };
        let Some(found) = all.iter().find(is) else { return ENOENT };
        let late = |share| found.tardiness.percentile_ns(share);
        let found = LoopStats {
            called: found.run.count(),
            long_calls: found.long,
            timers: found.tardiness.count(),
            late_p50_ns: late(50_000),
            late_p99_ns: late(99_000),
            late_max_ns: found.tardiness.max_ns(),
            ran_p99_ns: found.run.percentile_ns(99_000),
            ran_max_ns: found.run.max_ns(),
        };
        // SAFETY: the caller's memory for one.
        unsafe { stats.write(found) }
        0
    }

    /// For other threads.
    fn antiphon_loop_handle_create(events: &Loop) -> *mut Handle {
        let handle = with!(events, events => events.handle());
        Box::into_raw(Box::new(Handle { handle, events }))
    }

    /// Nothing is submitted by this any more.
    fn antiphon_loop_handle_destroy(handle: *mut Handle) {
        // SAFETY: made above, and not used from now on.
        drop(unsafe { Box::from_raw(handle) });
    }

    /// Has the loop do something.
    fn antiphon_loop_handle_submit(handle: &Handle, event: &LoopEvent, id: *mut u64) -> c_int {
        // SAFETY: the caller's name.
        let Some(event) = (unsafe { event.event(handle.events) }) else { return EINVAL };
        let Ok(number) = handle.handle.submit(event) else { return ESRCH };
        if !id.is_null() {
            // SAFETY: the caller's memory for one.
            unsafe { id.write(number.number()) }
        }
        0
    }

    /// Has the loop forget about an event.
    fn antiphon_loop_handle_cancel(handle: &Handle, id: u64) -> c_int {
        unless(handle.handle.cancel(EventId::of(id)).is_ok(), ESRCH)
    }

    /// Has an event called.
    fn antiphon_loop_handle_wake(handle: &Handle, id: u64) -> c_int {
        unless(handle.handle.wake(EventId::of(id)).is_ok(), ESRCH)
    }

    /// Has the loop stop.
    fn antiphon_loop_handle_stop(handle: &Handle) -> c_int {
        unless(handle.handle.stop().is_ok(), ESRCH)
    }
}
