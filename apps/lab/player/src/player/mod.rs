//! A player: Priority-Progress over the CPU.
//!
//! | event | kind | time | action |
//! |---|---|---|---|
//! | receive | timer | a look-ahead before | takes frames in: a decode and an expiry for each |
//! | decode | best effort | by [importance](crate::importance) | decodes; submits the display |
//! | expire | timer | when it is no longer of use | cancels the decode: the frame is dropped |
//! | display | timer | start + time in the clip | shows the picture |
//!
//! The states of a frame, after figure 3 of the document:
//!
//! ```text
//!            receive            decoded in time            display
//!   (coded) ────────► Waiting ──────────────────► Decoded ────────► shown
//!                      │   │   decoded late, for what needs it
//!                      │   └─────────────────────────────────────► late
//!                      └── expired, refused, or what it needs is ► dropped
//! ```
//!
//! - PLAY-1: a frame is decoded after the frame that it needs; with a dropped frame, those that
//!   need it are dropped.
//! - PLAY-2: no frame is shown before its time, after a later one, or when it was decoded late:
//!   frames are shown late only by the tardiness of the loop.
//! - PLAY-3: nothing is estimated. Which frames are dropped follows from what was done in time.
//!
//! The differences from figure 3: the expiry stays until a frame is *decoded*, so a frame that was
//! begun but is too late is given up; and a frame that others need is dropped with the last of
//! them. Until then it waits, but only until its own due time does it come before frames that can
//! be shown.
//!
//! In units that are not [free](crate::clip::Unit::is_free), frames are decoded in the order of
//! coding, and a player that needs time drops details early instead: a `b` expires when the time
//! left until it is due is less than the advance that its rank would have over the rest. So both
//! kinds of units lose the same ranks when a group is behind by the same time.

mod arrivals;
mod options;
mod schedule;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::options::Options;
pub(crate) use self::schedule::Schedule;
use crate::Report;
use crate::clip::{Clip, Layer};
use crate::decode::{Decode, Progress, UnitId};
use crate::picture::{Picture, Screen};
use crate::program::{Act, Job, Program, Timeline};

/// A frame in flight.
enum Flight {
    /// Not decoded yet, with its current importance.
    Waiting(u64),
    Decoded(Picture),
    /// Decoded, and held by the screen, which shows it by itself.
    Kept,
}

/// How long after its due time the player checks again whether the screen has shown a frame, in
/// nanoseconds.
const KEPT_NS: u64 = 1_000_000;

/// A player of one clip.
pub struct Player<D, S> {
    schedule: Schedule,
    decoder: D,
    screen: S,
    options: Options,
    /// Frames that were taken in and are neither shown nor dropped.
    flights: BTreeMap<u64, Flight>,
    /// Decoded frames that others may need, of units in flight.
    references: BTreeSet<u64>,
    /// Number of frames that are neither decoded nor dropped, by unit in flight.
    open: BTreeMap<UnitId, usize>,
    /// Frames that wait for their bytes, or for a needed frame that does: their only event is the
    /// expiry.
    parked: BTreeSet<u64>,
    /// The first frame that was not taken in yet.
    next: u64,
    /// The first frame that will not be taken in, if there is one.
    end: Option<u64>,
    last_shown: Option<u64>,
    /// Whether its screen was closed.
    is_stopped: bool,
    report: Report,
}

impl<D: Decode, S: Screen> Player<D, S> {
    /// A player that shows `clip` on `screen`. The first frame is due one look-ahead after the
    /// start.
    pub fn new(clip: Arc<Clip>, decoder: D, screen: S, options: Options) -> Self {
        let report = Report { decoder: decoder.name(), ..Report::default() };
        let schedule = Schedule::new(clip, &options);
        Self {
            end: options.passes.map(|passes| passes * schedule.len()),
            schedule,
            decoder,
            screen,
            options,
            flights: BTreeMap::new(),
            references: BTreeSet::new(),
            open: BTreeMap::new(),
            parked: BTreeSet::new(),
            next: 0,
            last_shown: None,
            is_stopped: false,
            report,
        }
    }

    /// The frames shown so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The screen.
    pub fn screen(&self) -> &S {
        &self.screen
    }

    /// The decoder.
    pub fn decoder(&self) -> &D {
        &self.decoder
    }

    /// Returns whether it has shown or dropped all frames, or its screen was closed.
    pub fn is_over(&self) -> bool {
        self.is_received() && self.flights.is_empty()
    }

    fn is_received(&self) -> bool {
        self.is_stopped || self.end.is_some_and(|end| self.next >= end)
    }

    /// Takes in the frames within the look-ahead, and some more, so that it need not wake for each.
    fn receive(&mut self, timeline: &mut dyn Timeline) {
        self.look_at_screen(timeline);
        let until_ns = timeline.now_ns() + self.schedule.batch_ns();
        while !self.is_received() {
            let number = self.next;
            let arrival_ns = self.schedule.arrival_ns(number);
            if arrival_ns > until_ns {
                timeline.timer(arrival_ns, Job { act: Act::Receive, number });
                return;
            }
            self.next += 1;
            self.take_in(number, timeline);
        }
    }

    /// Stops if the screen was closed; records its fault, if it has one.
    fn look_at_screen(&mut self, timeline: &mut dyn Timeline) {
        if self.report.screen_fault.is_none() {
            self.report.screen_fault = self.screen.fault();
        }
        if !self.screen.is_closed() || self.is_stopped {
            return;
        }
        timeline.cancel(Job { act: Act::Receive, number: self.next });
        for &number in self.flights.keys() {
            for act in [Act::Prepare, Act::Expire, Act::Present] {
                timeline.cancel(Job { act, number });
            }
        }
        for &unit in self.open.keys() {
            self.decoder.close(self.schedule.clip(), unit);
        }
        self.flights.clear();
        self.parked.clear();
        self.open.clear();
        self.references.clear();
        self.is_stopped = true;
        self.report.is_closed = true;
    }

    fn take_in(&mut self, number: u64, timeline: &mut dyn Timeline) {
        let unit = self.schedule.unit(number);
        let size = self.schedule.unit_len(number);
        self.open.entry(unit).or_insert(size);
        // PLAY-1.
        let needed = self.schedule.needs(number);
        if needed
            .is_some_and(|needed| !self.is_waiting(needed) && !self.references.contains(&needed))
        {
            self.count_dropped(number);
            return;
        }
        self.wait(number, self.schedule.importance(number), timeline);
        timeline.timer(self.schedule.expiry_ns(number), Job { act: Act::Expire, number });
    }

    fn wait(&mut self, number: u64, importance: u64, timeline: &mut dyn Timeline) {
        self.parked.remove(&number);
        self.flights.insert(number, Flight::Waiting(importance));
        timeline.best_effort(importance, Job { act: Act::Prepare, number });
    }

    /// Drops a late frame. If others need it, it waits with less importance, so that it does not
    /// delay frames that can be on time.
    fn expire(&mut self, number: u64, timeline: &mut dyn Timeline) {
        let Some(importance) = self.waiting(number) else { return };
        let now_ns = timeline.now_ns();
        let end_ns = self.schedule.end_ns(number);
        if now_ns >= end_ns {
            return self.drop_frame(number, timeline);
        }
        let late = self.schedule.importance_late(now_ns);
        self.wait(number, importance.max(late), timeline);
        let next_ns = end_ns.min(now_ns + self.schedule.batch_ns());
        timeline.timer(next_ns, Job { act: Act::Expire, number });
    }

    /// The importance of a waiting frame; `None` if it does not wait.
    fn waiting(&self, number: u64) -> Option<u64> {
        match self.flights.get(&number) {
            Some(&Flight::Waiting(importance)) => Some(importance),
            _ => None,
        }
    }

    fn is_waiting(&self, number: u64) -> bool {
        self.waiting(number).is_some()
    }

    fn prepare(&mut self, number: u64, timeline: &mut dyn Timeline) {
        let Some(importance) = self.waiting(number) else { return };
        let needed = self.schedule.needs(number);
        if !self.has_come(number) {
            self.parked.insert(number);
            return;
        }
        if let Some(before) = needed.and_then(|needed| self.waiting(needed)) {
            if needed.is_some_and(|needed| self.parked.contains(&needed)) {
                self.parked.insert(number);
                return;
            }
            // PLAY-1: the frame that it needs is late, or the loop does not order events of equal
            // importance.
            return self.wait(number, importance.max(before + 1), timeline);
        }
        let (frame, pass) = self.schedule.split(number);
        loop {
            match self.decoder.decode(self.schedule.clip(), frame, pass) {
                Ok(Progress::Done(picture)) => return self.decoded(number, picture, timeline),
                Ok(Progress::More) => {
                    if timeline.until_ns().is_none_or(|until_ns| until_ns <= timeline.now_ns()) {
                        // A late frame stays late.
                        let is_late = importance > self.schedule.importance(number);
                        let begun = self.schedule.importance_begun(number);
                        let next = if is_late { importance } else { begun };
                        return self.wait(number, next, timeline);
                    }
                }
                Err(error) => {
                    self.report.refused += 1;
                    self.report.refusal.get_or_insert_with(|| error.to_string());
                    return self.drop_frame(number, timeline);
                }
            }
        }
    }

    fn decoded(&mut self, number: u64, picture: Picture, timeline: &mut dyn Timeline) {
        timeline.cancel(Job { act: Act::Expire, number });
        if self.schedule.layer(number) != Layer::Disposable {
            self.references.insert(number);
        }
        let due_ns = self.schedule.due_ns(number);
        if timeline.now_ns() <= due_ns {
            let shown = self.schedule.shown(number);
            let flight = match self.screen.keep(number, picture, shown, due_ns) {
                Some(picture) => Flight::Decoded(picture),
                None => Flight::Kept,
            };
            self.flights.insert(number, flight);
            timeline.timer(due_ns, Job { act: Act::Present, number });
        } else {
            // PLAY-2.
            self.flights.remove(&number);
            self.report.late += 1;
            self.report.layer_mut(self.schedule.layer(number)).dropped += 1;
        }
        self.settle(number);
        self.unpark_after(number, timeline);
    }

    /// Drops a waiting frame, and those that need it.
    fn drop_frame(&mut self, number: u64, timeline: &mut dyn Timeline) {
        let end = self.schedule.unit_end(number);
        let mut gone = BTreeSet::from([number]);
        let waiting: Vec<_> = self.flights.range(number..end).map(|(&other, _)| other).collect();
        for other in waiting {
            let is_lost = self.schedule.needs(other).is_some_and(|needed| gone.contains(&needed));
            if other == number || (is_lost && self.is_waiting(other)) {
                gone.insert(other);
                timeline.cancel(Job { act: Act::Prepare, number: other });
                timeline.cancel(Job { act: Act::Expire, number: other });
                self.flights.remove(&other);
                self.parked.remove(&other);
                self.count_dropped(other);
            }
        }
    }

    fn count_dropped(&mut self, number: u64) {
        self.report.layer_mut(self.schedule.layer(number)).dropped += 1;
        self.settle(number);
    }

    /// A frame is decoded or dropped: after the last one, the decoder can forget the unit.
    fn settle(&mut self, number: u64) {
        self.forget_bytes(number);
        let unit = self.schedule.unit(number);
        let Some(left) = self.open.get_mut(&unit) else { return };
        *left -= 1;
        if *left == 0 {
            self.open.remove(&unit);
            self.decoder.close(self.schedule.clip(), unit);
            let frames = self.schedule.unit_start(number)..self.schedule.unit_end(number);
            self.references.retain(|reference| !frames.contains(reference));
        }
    }

    fn present(&mut self, number: u64, timeline: &mut dyn Timeline) {
        match self.flights.remove(&number) {
            Some(Flight::Decoded(picture)) => {
                let late_ns = timeline.now_ns().saturating_sub(self.schedule.due_ns(number));
                self.screen.show(&picture, self.schedule.shown(number));
                self.count_shown(number, late_ns, &picture);
            }
            Some(Flight::Kept) => {
                self.flights.insert(number, Flight::Kept);
                self.collect(number, timeline);
            }
            Some(Flight::Waiting(_)) | None => {}
        }
        self.look_at_screen(timeline);
    }

    /// Counts the frames that the screen has shown by itself; checks later if this frame is not
    /// among them.
    fn collect(&mut self, number: u64, timeline: &mut dyn Timeline) {
        while let Some(kept) = self.screen.kept() {
            self.flights.remove(&kept.id);
            self.count_shown(kept.id, kept.late_ns, &kept.picture);
        }
        if self.flights.contains_key(&number) {
            timeline.timer(timeline.now_ns() + KEPT_NS, Job { act: Act::Present, number });
        }
    }

    fn count_shown(&mut self, number: u64, late_ns: u64, picture: &Picture) {
        let (layer, second) = (self.schedule.layer(number), self.schedule.second(number));
        self.report.count_shown(layer, second, late_ns);
        let place = self.schedule.place(number);
        self.report.disorder += u64::from(self.last_shown.is_some_and(|last| last >= place));
        self.last_shown = Some(place);
        if self.options.has_counter {
            self.report.check(picture, self.schedule.shown(number));
        }
    }
}

impl<D: Decode, S: Screen> Program for Player<D, S> {
    fn start(&mut self, timeline: &mut dyn Timeline) {
        self.schedule.start(timeline.now_ns());
        self.receive(timeline);
    }

    fn run(&mut self, job: Job, timeline: &mut dyn Timeline) {
        match job.act {
            Act::Receive => self.receive(timeline),
            Act::Prepare => self.prepare(job.number, timeline),
            Act::Expire => self.expire(job.number, timeline),
            Act::Present => self.present(job.number, timeline),
        }
    }
}
