//! Converts the notes of one thread, as the thread wrote them, to events of a trace.

use std::collections::BTreeMap;
use std::io;

use antiphon_record::Recording;
use antiphon_record::events::{
    ALL, Batch, Clock, Code, NOTIFIED, Note, SHARED, TRIED, address_tag,
};
use antiphon_trace::{Event, What};

use super::names::Names;

/// Less does not count as time off the CPU: asking the kernel takes time itself, and a switch to
/// another thread and back takes longer.
const LEAST_OFF_NS: u64 = 2_000;

/// One thread's part of the trace, so far.
#[derive(Default)]
pub struct Story {
    /// Batches that arrived before one that precedes them.
    early: BTreeMap<u32, Batch>,
    /// The sequence number of the next batch.
    next: u32,
    /// The record of its process.
    pub process: u32,
    /// The kernel's id of the thread.
    pub tid: u32,
    /// 1 + the site of the function in which it began; 0 if that is not known.
    pub role: u32,
    /// Number of events that found no room.
    pub dropped: u64,
    /// The time of the last event.
    last_ns: u64,
    /// Whether the last event begins a wait.
    waits: bool,
    /// How long the thread ran in the span that ends with the next note, and how often it left the
    /// CPU.
    ran: Option<(u64, u32)>,
    /// Time that the recorder spent asking the kernel after the last event.
    asked_ns: u64,
    /// Time in a run queue from the thread's start to the end of that span.
    queued_ns: Option<u64>,
    /// Time in a run queue from the thread's start to the start of that span; `None` if the thread
    /// has been in a run queue in between, for an unknown time.
    queued_before_ns: Option<u64>,
    /// A sleep whose mutex may be released in the next note.
    sleeps: Option<Event>,
    /// The locks that the thread holds, to find those that are released by their address.
    held: Vec<u32>,
}

/// The state that all threads share.
pub struct Shared<'a> {
    pub recording: &'a Recording,
    pub clock: Clock,
    pub names: &'a mut Names,
    /// Maps a thread's number in the recording to its number in the trace.
    pub thread: &'a mut dyn FnMut(u32) -> u32,
}

impl Story {
    /// Takes a batch, and returns the events that are now complete: at the end, those of all
    /// batches.
    pub fn takes(
        &mut self,
        batch: Batch,
        shared: &mut Shared<'_>,
        at_end: bool,
    ) -> io::Result<Vec<Event>> {
        self.process = batch.of.process;
        self.tid = batch.of.tid;
        self.early.insert(batch.of.sequence, batch);
        let mut events = Vec::new();
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() != self.next && !at_end {
                return Ok(events);
            }
            let batch = entry.remove();
            self.next = batch.of.sequence.wrapping_add(1);
            self.dropped += u64::from(batch.of.lost);
            for note in batch.notes {
                self.tells(note, shared, &mut events)?;
            }
        }
        Ok(events)
    }

    /// The event that remains when all batches have been taken.
    pub fn ends(&mut self) -> Option<Event> {
        self.sleeps.take()
    }

    fn tells(
        &mut self,
        note: Note,
        shared: &mut Shared<'_>,
        events: &mut Vec<Event>,
    ) -> io::Result<()> {
        match note.code {
            Code::Ran => {
                self.ran = Some((note.time, note.object));
                return Ok(());
            }
            Code::Queued => {
                self.queued_ns = Some(note.time);
                return Ok(());
            }
            Code::Asked => {
                self.asked_ns = shared.clock.span_ns(note.time);
                // In a wait, that time does not matter.
                if !self.waits {
                    let what = What::Asked { ns: self.asked_ns };
                    events.push(Event { at_ns: self.last_ns, what });
                }
                return Ok(());
            }
            Code::Role => {
                let record = note.object.checked_sub(1);
                self.role = record.map_or(0, |record| shared.names.role(record) + 1);
                return Ok(());
            }
            _ => {}
        }
        // A signal handler's note may follow a later one.
        let at_ns = shared.clock.ns(note.time).max(self.last_ns);
        let off = self.off(at_ns);
        let Some(what) = self.what(note, shared)? else { return Ok(()) };
        if let Some(mut sleeps) = self.sleeps.take() {
            if matches!(what, What::Releases { .. }) {
                events.push(Event { at_ns: sleeps.at_ns, what });
                sleeps.at_ns = at_ns;
                events.push(sleeps);
                self.last_ns = at_ns;
                self.waits = true;
                return Ok(());
            }
            events.push(sleeps);
        }
        events.extend(off.map(|what| Event { at_ns, what }));
        self.last_ns = at_ns;
        self.waits = matches!(what, What::Waits { .. } | What::Sleeps { .. } | What::Joins { .. });
        let event = Event { at_ns, what };
        if matches!(what, What::Sleeps { .. }) {
            self.sleeps = Some(event);
        } else {
            events.push(event);
        }
        Ok(())
    }

    /// The time off the CPU in the span that ends now, if the thread was not in a wait.
    fn off(&mut self, at_ns: u64) -> Option<What> {
        let queued_ns = self.queued_ns.take();
        let asked_ns = std::mem::take(&mut self.asked_ns);
        let Some((ran_ns, left)) = self.ran.take() else {
            // The first span, or the thread never left the CPU.
            self.queued_before_ns = queued_ns.or(self.queued_before_ns);
            return None;
        };
        // The reported running time excludes the time that asking took.
        let span_ns = at_ns.saturating_sub(self.last_ns).saturating_sub(asked_ns);
        let off_ns = span_ns.saturating_sub(ran_ns);
        let before_ns = self.queued_before_ns.take();
        let queued_here_ns = if left == 0 {
            self.queued_before_ns = before_ns.filter(|_| !self.waits).map(|ns| ns + off_ns);
            off_ns
        } else {
            self.queued_before_ns = queued_ns;
            // If that is not known, all of the time is taken for a wait of the thread's own accord.
            let here_ns = queued_ns.zip(before_ns).map(|(now, before)| now.saturating_sub(before));
            here_ns.unwrap_or(0).min(off_ns)
        };
        (!self.waits && off_ns >= LEAST_OFF_NS)
            .then_some(What::Off { blocked_ns: off_ns - queued_here_ns, queued_ns: queued_here_ns })
    }

    /// The event for a note; `None` if the note is about a lock that the recording does not know.
    fn what(&mut self, note: Note, shared: &mut Shared<'_>) -> io::Result<Option<What>> {
        let flag = |bit| note.flags & bit != 0;
        let mut row = || shared.names.row(shared.recording, note.object);
        Ok(Some(match note.code {
            Code::Begins => What::Begins,
            Code::Ends => What::Ends,
            Code::Waits => {
                let (lock, site) = row()?;
                What::Waits { lock, site }
            }
            Code::Takes => {
                let (lock, site) = row()?;
                self.held.push(lock);
                What::Takes { lock, site, shared: flag(SHARED), tried: flag(TRIED) }
            }
            Code::GivesUp => What::GivesUp { lock: row()?.0 },
            Code::Releases => {
                let lock = row()?.0;
                if let Some(at) = self.held.iter().rposition(|held| *held == lock) {
                    self.held.remove(at);
                }
                What::Releases { lock }
            }
            Code::ReleasesAt => {
                let is =
                    |lock: &u32| address_tag(shared.names.address(*lock) as usize) == note.object;
                let Some(at) = self.held.iter().rposition(is) else { return Ok(None) };
                What::Releases { lock: self.held.remove(at) }
            }
            Code::Sleeps => {
                let (condition, site) = row()?;
                What::Sleeps { condition, site }
            }
            Code::Wakes => What::Wakes { condition: row()?.0, notified: flag(NOTIFIED) },
            Code::Notifies => What::Notifies { condition: row()?.0, all: flag(ALL) },
            Code::Creates => What::Creates { thread: (shared.thread)(note.object) },
            Code::Joins => What::Joins { thread: (shared.thread)(note.object) },
            Code::Joined => What::Joined { thread: (shared.thread)(note.object) },
            Code::Ran | Code::Role | Code::Queued | Code::Asked => return Ok(None),
        }))
    }
}
