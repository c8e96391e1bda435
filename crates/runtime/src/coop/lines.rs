//! A shared page as the table of a scheduler, while the owner of this value is at the table.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, SharedWait, ThreadId};

use super::line::{Line, PLACES, Page, pack, put};
use super::member::{Demotion, Member};
use super::options::Options;
use super::relay::{AtTable, Held};
use super::table::{Head, Running, Table};
use super::virtual_time::VirtualTime;

/// A page with a copy of its head, which `commit` writes back.
pub(super) struct Lines<'a, P: SharedWait> {
    pub(super) page: &'a Page<P>,
    at: AtTable<'a, P>,
    /// The thread that is at the table; lines that it fills are its own.
    thread: ThreadId,
    now_ns: u64,
    found: Held,
    head: Head,
    pub(super) since_ns: u64,
    moved: bool,
}

/// Mask for counts that are read from a page: no thread has had more turns than this.
const MOST_TURNS: u64 = u64::MAX >> 1;

impl<'a, P: SharedWait> Lines<'a, P> {
    /// Reads the head. A slice whose end is further away than any slice is long has ended (PAGE-1).
    pub(super) fn new(
        page: &'a Page<P>,
        at: AtTable<'a, P>,
        thread: ThreadId,
        options: &Options,
        now_ns: u64,
    ) -> Self {
        let (now, found) = (&page.now, page.now.relay.held());
        let longest_ns = options.period_ns.max(options.min_slice_ns) + options.slack_ns;
        let sane = |at_ns: u64| if at_ns.saturating_sub(now_ns) > longest_ns { 0 } else { at_ns };
        // Relaxed, all: the thread that wrote them has left the table.
        let until_ns = sane(now.until_ns.load(Relaxed));
        let slice_end_ns = sane(now.slice_end_ns.load(Relaxed)).min(until_ns);
        let running = found.place().filter(|&id| page.thread(id).is_some()).map(|id| Running {
            id,
            slice_end_ns,
            until_ns,
        });
        let head = Head {
            least: VirtualTime(now.least.load(Relaxed)),
            turns: now.turns.load(Relaxed) & MOST_TURNS,
            running,
        };
        let since_ns = now.since_ns.load(Relaxed).min(now_ns);
        // A baton whose place is free must be handed over.
        let moved = running.is_none() && found.place().is_some();
        Self { page, at, thread, now_ns, found, head, since_ns, moved }
    }

    /// The line of a place.
    pub(super) fn line(&self, id: usize) -> Option<&'a Line<P>> {
        self.page.lines.get(id)
    }

    /// Makes a place visible, whatever the header contains: its thread is at the table.
    pub(super) fn cover(&self, id: usize) {
        if self.page.used() <= id && self.at.stands() {
            // Relaxed: a place is taken at the table, whose guard orders this.
            self.page.header.used.store(id as u32 + 1, Relaxed);
        }
    }

    /// Moves the end of the running thread's slice to an earlier time.
    pub(super) fn hasten(&mut self, slice_end_ns: u64, until_ns: u64) {
        if let Some(running) = &mut self.head.running {
            running.slice_end_ns = running.slice_end_ns.min(slice_end_ns);
            running.until_ns = running.until_ns.min(until_ns);
        }
    }

    /// Begins a turn of the thread at place `id`.
    pub(super) fn begin(&self, id: usize) {
        if let Some(line) = self.line(id).filter(|_| self.at.stands()) {
            // Relaxed: see `put`.
            put::<P>(&self.page.tallies[id].began_ns, line.charged_ns.load(Relaxed));
        }
    }

    /// Writes the answer for a thread that continues.
    pub(super) fn tell(&self, id: usize, release_ns: Option<u64>, importance: Option<u64>) {
        if let Some(line) = self.line(id) {
            put::<P>(&line.others_release, pack(release_ns));
            put::<P>(&line.others_importance, pack(importance));
        }
    }

    /// Makes `place` watch the running thread (BATON-4).
    pub(super) fn watch_by(&self, place: Option<usize>) {
        self.at.set_watcher(place);
    }

    /// Counts a dead thread.
    pub(super) fn count_dead(&self) {
        let died = &self.page.now.died;
        // Relaxed: a count, written by the thread at the table.
        died.store(died.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Writes the head, and hands the baton over if another thread was picked. Returns whether all
    /// changes are valid: not if another thread has given up on the caller.
    pub(super) fn commit(&mut self) -> bool {
        if !self.at.stands() {
            return false;
        }
        let now = &self.page.now;
        put::<P>(&now.least, self.head.least.0);
        put::<P>(&now.turns, self.head.turns);
        if let Some(running) = self.head.running {
            put::<P>(&now.since_ns, self.since_ns);
            put::<P>(&now.slice_end_ns, running.slice_end_ns);
            put::<P>(&now.until_ns, running.until_ns);
        }
        let to = self.head.running.map(|running| running.id);
        !self.moved || self.at.hand(self.found, to)
    }

    fn clear(&self, id: usize, line: &Line<P>) {
        // Relaxed, all: a place is taken at the table, whose guard orders this. The thread is
        // cleared first, so that no reader takes a half-cleared line for a member.
        line.thread.store(0, Relaxed);
        for word in [&line.release, &line.importance, &line.virtual_time, &line.charged_ns] {
            put::<P>(word, 0);
        }
        self.tell(id, None, None);
        // The count of calls is kept.
        line.group.store(0, Relaxed);
        line.bits.store(0, Relaxed);
        self.page.tallies[id].clear();
        let mut used = self.page.used();
        while used > 0 && self.page.thread(used - 1).is_none() {
            used -= 1;
        }
        self.page.header.used.store(used as u32, Relaxed);
    }
}

impl<P: SharedWait> Table for Lines<'_, P> {
    fn places(&self) -> usize {
        // One more than are used, so that a thread that joins finds a place.
        (self.page.used() + 1).min(PLACES)
    }

    fn get(&self, id: usize) -> Option<Member> {
        self.page.thread(id)?;
        // Relaxed: see `put`.
        let turn = self.page.tallies[id].last_turn.load(Relaxed) & MOST_TURNS;
        Some(self.page.lines[id].member(self.head.least, turn))
    }

    fn set(&mut self, id: usize, member: Option<Member>) {
        // BATON-1: a thread that was given up on no longer writes.
        let Some(line) = self.line(id).filter(|_| self.at.stands()) else { return };
        let Some(member) = member else { return self.clear(id, line) };
        line.set_member(&member, self.head.least);
        put::<P>(&self.page.tallies[id].last_turn, member.turn);
        if self.page.thread(id).is_none() {
            // Relaxed: as in `clear`. Written last, so that no reader takes a half-written line for
            // a member.
            line.thread.store(self.thread.0, Relaxed);
            self.cover(id);
        }
    }

    fn head(&self) -> Head {
        self.head
    }

    fn set_head(&mut self, head: Head) {
        if head.running.map(|r| r.id) != self.head.running.map(|r| r.id) {
            self.moved = true;
            self.since_ns = self.now_ns;
        }
        self.head = head;
    }

    fn count(&mut self, id: usize, demotion: Demotion) {
        if let Some(tally) = self.page.tallies.get(id).filter(|_| self.at.stands()) {
            tally.count(demotion);
        }
    }
}
