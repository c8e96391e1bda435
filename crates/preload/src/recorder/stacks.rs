//! The stacks with which threads wait: the callers of the function that locks.
//!
//! A thread's stack is taken before it stands in a queue for a lock; and where it waits for a
//! condition, after it has released the mutex of that. So no lock is held any longer for it, but
//! for those that the thread holds beside. It is taken at most once in half a millisecond, which
//! costs a thread that does nothing but wait a fiftieth of its time; the first stacks cost more,
//! because files have to be found that their frames are in. A stack stands for the wait that it was
//! taken for, and the report says for how many waits there is one.
//!
//! On an alternative stack for signals none is taken: it may be as small as the kernel allows.

use core::mem::MaybeUninit;

use antiphon_record::layout::FRAMES;
use antiphon_record::{RowWriter, StackWriter, ThreadWriter, Writer};

use crate::{maps, sys, unwind};

/// Frames of ours above the call site, at most.
const OURS: usize = 16;

/// Takes the stack of the calling thread, which is about to wait at `row`, having called from
/// `site`. `None` if it is not time for one, or if it can't be had.
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

/// Not inlined: it has room for addresses on the stack only meanwhile.
#[inline(never)]
fn walk(writer: Writer, process: u32, row: RowWriter, site: usize) -> Option<StackWriter> {
    let mut addresses = [0; FRAMES];
    let (mut count, mut above, mut is_callers) = (0, 0, false);
    let whole = unwind::return_addresses(|address| {
        if !is_callers {
            // The functions of this library come first, and then the call.
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

/// Whether the thread is not on an alternative stack, as far as the kernel says.
fn on_usual_stack() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the kernel writes the structure, which is there for the call.
    let asked = unsafe { sys::call(libc::SYS_sigaltstack, [0, stack.as_mut_ptr() as usize, 0, 0]) };
    // SAFETY: written by the kernel, and zero is a value of all fields.
    asked.is_some() && unsafe { stack.assume_init() }.ss_flags & libc::SS_ONSTACK == 0
}
