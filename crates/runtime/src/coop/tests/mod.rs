//! The scheduler, driven by a loop that simulates a CPU, and by random events.

mod cpu;
mod layout;
mod lots;
mod police;
mod shares;

use alloc::boxed::Box;

use antiphon_linux::Linux;
use antiphon_platform::ThreadId;

use super::line::Page;
use super::lines::Lines;
use super::options::Options;

/// An empty page, with no other thread at its table.
fn lines() -> Lines<'static, Linux> {
    let (page, thread) = (Box::leak(Box::new(Page::NEW)), ThreadId(1));
    let at = page.now.relay.enter(thread, 0).expect("it is free");
    Lines::new(page, at, thread, &Options::default(), 0)
}
