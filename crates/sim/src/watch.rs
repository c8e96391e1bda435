//! Spinning: a thread waits for a line to change, at no cost until it does.
//!
//! When the line is written, each watcher's core requests it again at the watcher's next load
//! ([`spin`](crate::spin)). The event loop then checks the word for the watcher ([`Look`]), and
//! resumes the thread only if the wait ends. Otherwise, unsuccessful checks by many watchers of one
//! word would take most of the simulator's time.

use std::ptr::NonNull;

use crate::events::Event;
use crate::line::{By, Kind, LineId};
use crate::requests::Issued;
use crate::spin::Spin;
use crate::thread::State;
use crate::world::{World, suspend, with};

/// A wait for a line to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) line: LineId,
    /// Waits while the line has this version (LINE-2).
    pub(crate) version: u64,
    /// The offset of the word in the line and, in the next field, the value that the thread saw;
    /// for reports.
    pub(crate) offset: u8,
    pub(crate) value: u64,
    pub(crate) deadline_ns: Option<u64>,
}

/// The action of a spinning thread when it has its line again: it loads the word, and returns the
/// value and whether the wait goes on.
pub(crate) type Look<'a> = dyn Fn(&mut World, usize, LineId) -> (u64, bool) + 'a;

/// The result of a wait for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Watched {
    /// The line was read, and the word holds this value, which ends the wait.
    Found(u64),
    /// The deadline has passed; the word held this value when it was last read.
    Expired(u64),
}

/// Spins until `look` returns that the wait is over, or the deadline comes. With `backoff_ns`,
/// loads become less frequent, from that first distance on.
pub(crate) fn watch(watch: Watch, backoff_ns: Option<u32>, look: &Look<'_>) -> Watched {
    if watch.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= with(|world| world.now_ns)) {
        return Watched::Expired(watch.value);
    }
    with(|world| world.begin_watch(watch, backoff_ns, look));
    loop {
        suspend();
        if let Some(watched) = with(World::end_watch) {
            return watched;
        }
    }
}

impl World {
    fn begin_watch(&mut self, watch: Watch, backoff_ns: Option<u32>, look: &Look<'_>) {
        let me = self.me();
        let look: *const Look<'_> = look;
        // SAFETY: only the lifetime changes. `looks_on` calls the closure only while the thread is
        // in the loop of `watch`, which borrows it for that time; `end_watch` removes the pointer
        // before that loop ends.
        let look = unsafe { std::mem::transmute::<*const Look<'_>, *const Look<'static>>(look) };
        let watcher = &mut self.threads[me];
        watcher.look = NonNull::new(look.cast_mut());
        watcher.state = State::Watching(watch);
        watcher.spin = Spin::new(self.now_ns, watch.deadline_ns.is_some(), backoff_ns);
        let core = watcher.core;
        self.foresee_expiry(me, watch.deadline_ns);
        self.lines.get_mut(watch.line).watchers.push(me);
        // Checks the version and not the sharers: a write may have come and gone after the read.
        if self.has_changed(watch) {
            self.line_changed(me, watch.line);
        }
        self.foresee_yield(core);
        // The slice may have ended during the read before.
        if self.cores[core as usize].slice_over {
            self.preempt(me);
        }
    }

    /// Handles a write to a watcher's line. A watcher off its core will check when it runs again.
    pub(crate) fn line_changed(&mut self, thread: usize, line: LineId) {
        let State::Watching(watch) = self.threads[thread].state else { return };
        let core = &self.cores[self.threads[thread].core as usize];
        if watch.line == line && core.current == Some(thread) {
            self.look_again(thread, watch);
        }
    }

    /// Makes a watcher that has its core, or is about to return to it, request its changed line at
    /// its next load.
    fn look_again(&mut self, thread: usize, watch: Watch) {
        let number = self.threads[thread].core;
        let core = &self.cores[number as usize];
        let back_ns = core.slice_began_ns.max(core.back_ns);
        let at_ns = self.next_look_ns(thread, watch).max(back_ns);
        if at_ns > self.now_ns {
            return self.resume_at(thread, at_ns);
        }
        let watcher = &mut self.threads[thread];
        watcher.state = State::Rereading(watch);
        // Voids its scheduled events: its deadline, or its return to its core.
        watcher.turn = watcher.turn.wrapping_add(1);
        match self.request(watch.line, number, Kind::Load, By::Access(thread as u32)) {
            Issued::At(done_ns) => self.resume_at(thread, done_ns),
            Issued::Alone(done_ns) => self.events.push(done_ns, Event::Served { line: watch.line }),
            Issued::Queued => {}
        }
    }

    /// Called at a thread's turn: returns whether it watches and its wait goes on. It then loads
    /// the word again if its line has changed.
    pub(crate) fn watches_on(&mut self, thread: usize) -> bool {
        let State::Watching(watch) = self.threads[thread].state else { return false };
        if self.yields_spinning(thread) {
            return true;
        }
        self.foresee_yield(self.threads[thread].core);
        let changed = self.has_changed(watch);
        if changed {
            self.look_again(thread, watch);
        }
        changed || watch.deadline_ns.is_none_or(|deadline_ns| deadline_ns > self.now_ns)
    }

    /// If the thread was rereading its line, checks the word for it. Returns whether its wait goes
    /// on; if not, the thread must run.
    pub(crate) fn looks_on(&mut self, thread: usize) -> bool {
        let State::Rereading(watch) = self.threads[thread].state else { return false };
        let look = self.threads[thread].look.expect("a watcher has a look");
        // SAFETY: the closure is valid as long as the thread is in its wait (`begin_watch`), and it
        // is.
        let (value, keep) = unsafe { look.as_ref() }(self, thread, watch.line);
        let version = self.commit(thread, watch.line, Kind::Load, false);
        if !keep {
            self.threads[thread].state = State::Step;
            self.threads[thread].found = Some(value);
            return false;
        }
        self.threads[thread].state = State::Watching(Watch { version, value, ..watch });
        self.lines.get_mut(watch.line).watchers.push(thread);
        if watch.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= self.now_ns) {
            return false;
        }
        if self.cores[self.threads[thread].core as usize].slice_over {
            self.preempt(thread);
        } else {
            self.yields_spinning(thread);
        }
        true
    }

    pub(crate) fn resume_if_current(&mut self, thread: usize) {
        let core = &self.cores[self.threads[thread].core as usize];
        if core.current == Some(thread) {
            let at_ns = self.now_ns.max(core.slice_began_ns).max(core.back_ns);
            self.resume_at(thread, at_ns);
        }
    }

    /// The result of the running thread's wait; `None` if the wait goes on.
    fn end_watch(&mut self) -> Option<Watched> {
        let me = self.me();
        let watched = match (self.threads[me].found.take(), self.threads[me].state) {
            (Some(value), _) => Watched::Found(value),
            (None, State::Watching(watch))
                if watch.deadline_ns.is_some_and(|deadline_ns| deadline_ns <= self.now_ns) =>
            {
                // Otherwise a line that is never written would collect watchers for ever.
                self.lines.get_mut(watch.line).watchers.retain(|&watcher| watcher != me);
                Watched::Expired(watch.value)
            }
            _ => return None,
        };
        let thread = &mut self.threads[me];
        thread.wait = thread.wait.wrapping_add(1);
        thread.state = State::Step;
        thread.look = None;
        Some(watched)
    }

    pub(crate) fn has_changed(&self, watch: Watch) -> bool {
        self.lines.get(watch.line).version != watch.version
    }
}
