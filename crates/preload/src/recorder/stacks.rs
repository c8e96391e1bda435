//! Records the stacks of waiting threads: the callers of the function that locks.
//!
//! A thread's stack is taken before it joins the queue of a lock; where it waits for a condition,
//! after it has released the mutex. So it prolongs the holds only of other locks that the thread
//! holds. A stack is taken at most once in half a millisecond, which costs a thread that only waits
//! a fiftieth of its time; the first stacks cost more, because the files of their frames must be
//! found. A stack counts only for the wait in which it was taken, and the report says for how many
//! waits there is one.
//!
//! No stack is taken on an alternative signal stack, which may be as small as the kernel allows.

use core::mem::MaybeUninit;

use antiphon_record::layout::FRAMES;
use antiphon_record::{RowWriter, StackWriter, ThreadWriter, Writer};

use crate::{maps, sys, unwind};

/// Most frames of this library above the call site.
const OURS: usize = 16;

/// Takes the stack of the calling thread, which is about to wait at `row`, called from `site`.
/// `None` if the last one is too recent, or if the stack can't be read.
pub(super) fn take(
    writer: Writer,
    process: u32,
    thread: ThreadWriter,
    row: RowWriter,
    site: usize,
) -> Option<StackWriter> {
    if !writer.stack_is_due(thread, super::now_ns()) {
        return None;
    }
    let stack = on_usual_stack().then(|| walk(writer, process, row, site)).flatten();
    writer.stack_taken(thread, super::now_ns());
    stack
}

/// Not inlined, so that its buffer of addresses is on the stack only during the call.
#[inline(never)]
fn walk(writer: Writer, process: u32, row: RowWriter, site: usize) -> Option<StackWriter> {
    let mut addresses = [0; FRAMES];
    let (mut count, mut above, mut is_callers) = (0, 0, false);
    let whole = unwind::return_addresses(|address| {
        if !is_callers {
            // The frames of this library come first, then the call site.
            is_callers = address == site;
            above += 1;
            return is_callers || above < OURS;
        }
        let Some(place) = addresses.get_mut(count) else { return false };
        *place = address;
        count += 1;
        true
    });
    if !is_callers {
        return None;
    }
    let mut frames = [0; FRAMES];
    let (mut fresh, mut fresh_count) = ([(0, 0); FRAMES], 0);
    for (frame, &address) in frames.iter_mut().zip(&addresses[..count]) {
        let (number, is_fresh) = writer.site(process, address as u64);
        *frame = number;
        if let Some(site) = is_fresh {
            fresh[fresh_count] = (site, address);
            fresh_count += 1;
        }
    }
    maps::place_all(writer, &fresh[..fresh_count]);
    writer.stack(row, &frames[..count], whole)
}

/// Returns whether the thread is not on an alternative signal stack, if the kernel says so.
fn on_usual_stack() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the kernel writes the structure, which lives for the call.
    let asked = unsafe { sys::call(libc::SYS_sigaltstack, [0, stack.as_mut_ptr() as usize, 0, 0]) };
    // SAFETY: written by the kernel, and zero is valid for all fields.
    asked.is_some() && unsafe { stack.assume_init() }.ss_flags & libc::SS_ONSTACK == 0
}
