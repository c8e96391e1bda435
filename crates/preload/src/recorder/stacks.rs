//! The stacks with which threads wait: the callers of the function that locks.
//!
//! A thread's stack is taken when it begins to wait, before it stands in any queue, so that no lock
//! is held any longer for it; and at most once in half a millisecond, so that it costs a thread
//! that does nothing but wait a fiftieth of its time. A stack stands for the wait that it was taken
//! for, and the report says for how many waits there is one.

use antiphon_record::layout::FRAMES;
use antiphon_record::{RowWriter, StackWriter, ThreadWriter, Writer};

use crate::{maps, unwind};

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
    let mut frames = [0; FRAMES];
    let (mut count, mut above, mut is_callers) = (0, 0, false);
    let whole = unwind::return_addresses(|address| {
        if !is_callers {
            // The functions of this library come first, and then the call.
            is_callers = address == site;
            above += 1;
            return is_callers || above < OURS;
        }
        let (number, fresh) = writer.site(process, address as u64);
        if let Some(fresh) = fresh {
            maps::place(writer, fresh, address);
        }
        frames[count] = number;
        count += 1;
        count < FRAMES
    });
    let stack = is_callers.then(|| writer.stack(row, &frames[..count], whole)).flatten();
    writer.stack_taken(thread, super::now_ns());
    stack
}
