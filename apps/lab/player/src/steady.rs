//! A player that does not adapt: it decodes and shows every frame.
//!
//! It knows no importance: it decodes frames in their order, a few ahead, and shows each when it is
//! due, or as soon as it is decoded if that is later. With too little of the CPU it falls behind
//! without bound. It runs beside players that adapt, with a nice value that keeps it on time.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::decode::{Decode, Progress, UnitId};
use crate::picture::{Picture, Screen};
use crate::player::Options;
use crate::program::{Act, Job, Program, Timeline};
use crate::{Clip, Layer, Report};

/// The number of frames that it decodes ahead, if these are the next ones to show.
const AHEAD: usize = 6;

/// A player of one clip that does not adapt.
pub struct Steady<D, S> {
    clip: Arc<Clip>,
    /// The layers of the clip's frames, in display order.
    layers: Vec<Layer>,
    decoder: D,
    screen: S,
    options: Options,
    start_ns: u64,
    /// The first frame that was not decoded, numbered over all passes.
    next: u64,
    /// Whether the decoding of that frame is submitted.
    decodes: bool,
    /// Decoded frames by their place in display order, over all passes; `None` for a frame that the
    /// decoder refused.
    decoded: BTreeMap<u64, Option<Picture>>,
    /// The place of the next frame to show.
    place: u64,
    /// Whether a frame is due but not decoded.
    waits: bool,
    report: Report,
}

impl<D: Decode, S: Screen> Steady<D, S> {
    /// A player that shows `clip` on `screen`. It ignores the options margin and phase; the first
    /// frame is due one look-ahead after the start.
    pub fn new(clip: Arc<Clip>, decoder: D, screen: S, options: Options) -> Self {
        let report = Report { decoder: decoder.name(), ..Report::default() };
        let mut layers = vec![Layer::Disposable; clip.frames().len()];
        for frame in clip.frames() {
            layers[frame.shown] = frame.layer;
        }
        Self {
            clip,
            layers,
            decoder,
            screen,
            options,
            start_ns: 0,
            next: 0,
            decodes: false,
            decoded: BTreeMap::new(),
            place: 0,
            waits: false,
            report,
        }
    }

    /// The frames shown so far. Each frame counts for the second in which it was due.
    pub fn report(&self) -> &Report {
        &self.report
    }

    fn len(&self) -> u64 {
        self.clip.frames().len() as u64
    }

    fn is_end(&self, number: u64) -> bool {
        let passes = self.options.passes;
        self.report.is_closed || passes.is_some_and(|passes| number >= passes * self.len())
    }

    /// Stops if the screen was closed; records its fault, if it has one.
    fn look_at_screen(&mut self) {
        self.report.is_closed |= self.screen.is_closed();
        if self.report.screen_fault.is_none() {
            self.report.screen_fault = self.screen.fault();
        }
    }

    fn due_ns(&self, place: u64) -> u64 {
        self.start_ns + self.options.scale.look_ahead_ns + place * self.clip.frame_ns()
    }

    /// Submits the next decoding, if it is time for it.
    fn go_on(&mut self, timeline: &mut dyn Timeline) {
        let is_far = self.decoded.len() >= AHEAD && self.decoded.contains_key(&self.place);
        if !self.decodes && !is_far && !self.is_end(self.next) {
            self.decodes = true;
            let importance = self.due_ns(self.next);
            timeline.best_effort(importance, Job { act: Act::Prepare, number: self.next });
        }
    }

    fn await_next(&self, timeline: &mut dyn Timeline) {
        if !self.is_end(self.place) {
            let job = Job { act: Act::Present, number: self.place };
            timeline.timer(self.due_ns(self.place), job);
        }
    }

    fn prepare(&mut self, number: u64, timeline: &mut dyn Timeline) {
        self.decodes = false;
        let (index, pass) = ((number % self.len()) as usize, number / self.len());
        let picture = loop {
            match self.decoder.decode(&self.clip, index, pass) {
                Ok(Progress::Done(picture)) => break Some(picture),
                Ok(Progress::More) => {
                    if timeline.until_ns().is_none_or(|until_ns| until_ns <= timeline.now_ns()) {
                        return self.go_on(timeline);
                    }
                }
                Err(error) => {
                    self.report.refused += 1;
                    self.report.refusal.get_or_insert_with(|| error.to_string());
                    break None;
                }
            }
        };
        let frame = &self.clip.frames()[index];
        self.decoded.insert(pass * self.len() + frame.shown as u64, picture);
        let unit = UnitId { pass, unit: frame.unit };
        if self.clip.units()[unit.unit].frames.end == index + 1 {
            self.decoder.close(&self.clip, unit);
        }
        self.next += 1;
        if self.waits && self.decoded.contains_key(&self.place) {
            self.waits = false;
            self.await_next(timeline);
        }
        self.go_on(timeline);
    }

    fn present(&mut self, place: u64, timeline: &mut dyn Timeline) {
        let Some(picture) = self.decoded.remove(&place) else {
            self.waits = true;
            return;
        };
        let shown = (place % self.len()) as usize;
        let layer = self.layers[shown];
        match picture {
            Some(picture) => {
                let late_ns = timeline.now_ns().saturating_sub(self.due_ns(place));
                self.screen.show(&picture, shown);
                let second = place * self.clip.frame_ns() / 1_000_000_000;
                self.report.count_shown(layer, second as usize, late_ns);
                if self.options.has_counter {
                    self.report.check(&picture, shown);
                }
            }
            None => self.report.layer_mut(layer).dropped += 1,
        }
        self.place += 1;
        self.look_at_screen();
        self.await_next(timeline);
        self.go_on(timeline);
    }
}

impl<D: Decode, S: Screen> Program for Steady<D, S> {
    fn start(&mut self, timeline: &mut dyn Timeline) {
        self.start_ns = timeline.now_ns();
        self.await_next(timeline);
        self.go_on(timeline);
    }

    fn run(&mut self, job: Job, timeline: &mut dyn Timeline) {
        match job.act {
            Act::Prepare => self.prepare(job.number, timeline),
            Act::Present => self.present(job.number, timeline),
            Act::Receive | Act::Expire => {}
        }
    }
}
