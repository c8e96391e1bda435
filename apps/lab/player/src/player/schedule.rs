//! The schedule of a clip that is played repeatedly: when each frame arrives, is due and expires,
//! and its importance. A frame's number is its place in decode order, over all passes.

use std::sync::Arc;

use super::Options;
use crate::clip::{Clip, Layer};
use crate::decode::UnitId;
use crate::importance::{Rank, Scale, spread};

/// The times of a frame that are equal in each pass, in nanoseconds after the pass begins.
struct Frame {
    rank: Rank,
    due_ns: u64,
    /// The last time at which the frame, or one that needs it, is due.
    useful_ns: u64,
    /// The time when it is taken in: after frames that are decoded before it. In nanoseconds,
    /// counted from a look-ahead before the pass.
    arrival_ns: u64,
    /// Its importance, in nanoseconds, counted from a look-ahead before the pass.
    importance: u64,
}

/// The times of a player's frames.
pub(crate) struct Schedule {
    clip: Arc<Clip>,
    scale: Scale,
    margin_ns: u64,
    frames: Vec<Frame>,
    /// The time when the player was started.
    start_ns: u64,
}

impl Schedule {
    pub(crate) fn new(clip: Arc<Clip>, &Options { scale, margin_ns, phase, .. }: &Options) -> Self {
        let frames = frames(&clip, scale, phase);
        Self { clip, scale, margin_ns, frames, start_ns: 0 }
    }

    pub(crate) fn start(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
    }

    pub(crate) fn clip(&self) -> &Clip {
        &self.clip
    }

    /// The clip, to store bytes of frames in it: other owners of the clip keep their version.
    pub(crate) fn clip_mut(&mut self) -> &mut Clip {
        Arc::make_mut(&mut self.clip)
    }

    /// Number of frames in a pass.
    pub(crate) fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    /// How far ahead frames are taken in at once, in nanoseconds: at least a millisecond, so that
    /// time advances with any look-ahead.
    pub(crate) fn batch_ns(&self) -> u64 {
        (self.scale.look_ahead_ns / 4).max(1_000_000)
    }

    /// The index of the frame in the clip, and the pass.
    pub(crate) fn split(&self, number: u64) -> (usize, u64) {
        ((number % self.len()) as usize, number / self.len())
    }

    fn frame(&self, number: u64) -> (&Frame, u64) {
        let (frame, pass) = self.split(number);
        (&self.frames[frame], self.start_ns + pass * self.len() * self.clip.frame_ns())
    }

    /// The number of another frame of the clip in the same pass.
    fn beside(&self, number: u64, frame: usize) -> u64 {
        number - number % self.len() + frame as u64
    }

    pub(crate) fn layer(&self, number: u64) -> Layer {
        self.clip.frames()[self.split(number).0].layer
    }

    /// Its number in the clip, in display order.
    pub(crate) fn shown(&self, number: u64) -> usize {
        self.clip.frames()[self.split(number).0].shown
    }

    /// Its place in display order, over all passes.
    pub(crate) fn place(&self, number: u64) -> u64 {
        self.beside(number, self.shown(number))
    }

    pub(crate) fn needs(&self, number: u64) -> Option<u64> {
        let needed = self.clip.frames()[self.split(number).0].needs?;
        Some(self.beside(number, needed))
    }

    pub(crate) fn unit(&self, number: u64) -> UnitId {
        let (frame, pass) = self.split(number);
        UnitId { pass, unit: self.clip.frames()[frame].unit }
    }

    fn frames_of_unit(&self, number: u64) -> &std::ops::Range<usize> {
        &self.clip.units()[self.unit(number).unit].frames
    }

    pub(crate) fn unit_len(&self, number: u64) -> usize {
        self.frames_of_unit(number).len()
    }

    pub(crate) fn unit_start(&self, number: u64) -> u64 {
        self.beside(number, self.frames_of_unit(number).start)
    }

    /// The number after the last frame of its unit.
    pub(crate) fn unit_end(&self, number: u64) -> u64 {
        self.beside(number, self.frames_of_unit(number).end)
    }

    pub(crate) fn arrival_ns(&self, number: u64) -> u64 {
        let (frame, pass_ns) = self.frame(number);
        pass_ns + frame.arrival_ns
    }

    pub(crate) fn importance(&self, number: u64) -> u64 {
        let (frame, pass_ns) = self.frame(number);
        pass_ns + frame.importance
    }

    /// The importance of a frame whose decoding has begun: higher by one rank, because work on a
    /// frame that is then dropped is wasted.
    pub(crate) fn importance_begun(&self, number: u64) -> u64 {
        self.importance(number).saturating_sub(self.scale.look_ahead_ns / 4)
    }

    pub(crate) fn due_ns(&self, number: u64) -> u64 {
        let (frame, pass_ns) = self.frame(number);
        pass_ns + self.scale.look_ahead_ns + frame.due_ns
    }

    /// The time from which it is too late to be shown.
    pub(crate) fn expiry_ns(&self, number: u64) -> u64 {
        let (frame, _) = self.frame(number);
        let is_free = self.clip.units()[self.unit(number).unit].is_free;
        let early_ns = match frame.rank {
            Rank::Fine(_) if !is_free => {
                self.scale.advance_ns(Rank::Refined(0)) - self.scale.advance_ns(frame.rank)
            }
            _ => 0,
        };
        self.due_ns(number).saturating_sub(early_ns.max(self.margin_ns))
    }

    /// The time from which it is of no use any more, not for frames that need it either.
    pub(crate) fn end_ns(&self, number: u64) -> u64 {
        let (frame, pass_ns) = self.frame(number);
        let useful_ns = pass_ns + self.scale.look_ahead_ns + frame.useful_ns;
        let is_needed = frame.useful_ns > frame.due_ns;
        if is_needed { useful_ns.saturating_sub(self.margin_ns) } else { self.expiry_ns(number) }
    }

    /// The importance of late frames at that time: that of the most important details that are due.
    pub(crate) fn importance_late(&self, now_ns: u64) -> u64 {
        self.scale.importance(now_ns, Rank::Fine(0))
    }

    /// The second in which it is due, counted from the first frame's due time.
    pub(crate) fn second(&self, number: u64) -> usize {
        let since_ns = self.due_ns(number) - self.start_ns - self.scale.look_ahead_ns;
        // Times are rounded down; adding half a frame corrects for that.
        ((since_ns + self.clip.frame_ns() / 2) / 1_000_000_000) as usize
    }
}

fn frames(clip: &Clip, scale: Scale, phase: u64) -> Vec<Frame> {
    let useful = last_needed(clip);
    let before_of_layer = before_of_layer(clip);
    let mut frames: Vec<Frame> = Vec::with_capacity(clip.frames().len());
    for (index, coded) in clip.frames().iter().enumerate() {
        let level = spread(before_of_layer[coded.shown].wrapping_add(phase));
        let rank = match coded.layer {
            Layer::Intra => Rank::Essential(level),
            Layer::Predicted => Rank::Main(level),
            Layer::Bidirectional => Rank::Refined(level),
            Layer::Disposable => Rank::Fine(level),
        };
        let due_ns = coded.shown as u64 * clip.frame_ns();
        // Times from here on are counted from a look-ahead before the pass.
        let late_ns = due_ns + scale.look_ahead_ns;
        let importance = if clip.units()[coded.unit].is_free {
            let needed = coded.needs.map_or(0, |needed| frames[needed].importance + 1);
            scale.importance(late_ns, rank).max(needed)
        } else {
            // In decode order; a unit may begin before the previous one is over.
            let is_first = clip.units()[coded.unit].frames.start == index;
            let before = if is_first { 0 } else { frames[index - 1].importance + 1 };
            let rank = if is_first { Rank::Essential(0) } else { Rank::Refined(0) };
            scale.importance(late_ns, rank).max(before)
        };
        let before_ns = frames.last().map_or(0, |frame| frame.arrival_ns);
        frames.push(Frame {
            rank,
            due_ns,
            useful_ns: useful[index] as u64 * clip.frame_ns(),
            arrival_ns: before_ns.max(due_ns),
            importance,
        });
    }
    frames
}

/// For each frame, in decode order: the last display number of a frame that needs it, or its own.
fn last_needed(clip: &Clip) -> Vec<usize> {
    let mut last: Vec<usize> = clip.frames().iter().map(|frame| frame.shown).collect();
    for (index, frame) in clip.frames().iter().enumerate().rev() {
        if let Some(needed) = frame.needs {
            last[needed] = last[needed].max(last[index]);
        }
    }
    last
}

/// For each frame, in display order: the number of frames of its layer that are shown before it.
fn before_of_layer(clip: &Clip) -> Vec<u64> {
    let mut layers = vec![Layer::Disposable; clip.frames().len()];
    for frame in clip.frames() {
        layers[frame.shown] = frame.layer;
    }
    let mut counts = [0; Layer::ALL.len()];
    let mut count = |layer: Layer| {
        let count = &mut counts[layer as usize];
        *count += 1;
        *count - 1
    };
    layers.into_iter().map(&mut count).collect()
}
