//! Frames whose bytes come while their clip is played.
//!
//! A frame that was taken in and whose bytes are not there is *parked*, and so is what needs it: no
//! event is theirs but their expiry, until the bytes come. What comes too late to be decoded is
//! forgotten.

use super::{Flight, Player};
use crate::clip::Layer;
use crate::decode::Decode;
use crate::picture::Screen;
use crate::program::Timeline;

impl<D: Decode, S: Screen> Player<D, S> {
    /// The bytes of a frame of the clip have come; its layer, if they are of use.
    pub(crate) fn arrive(
        &mut self,
        frame: usize,
        bytes: Vec<u8>,
        timeline: &mut dyn Timeline,
    ) -> Option<Layer> {
        // A clip that comes is played once.
        let number = frame as u64;
        let is_to_come = number >= self.next && !self.is_received();
        let waits = self.waiting(number);
        if (!is_to_come && waits.is_none()) || self.schedule.clip().has(frame) {
            return None;
        }
        self.schedule.clip_mut().put(frame, bytes);
        if let (true, Some(importance)) = (self.parked.contains(&number), waits) {
            self.wait(number, importance, timeline);
        }
        Some(self.schedule.layer(number))
    }

    /// No more bytes come, though frames are missing: it plays what it has.
    pub(crate) fn cut(&mut self, timeline: &mut dyn Timeline) {
        let clip = self.schedule.clip();
        let last = (self.next as usize..clip.frames().len()).rev().find(|&frame| clip.has(frame));
        let end = last.map_or(self.next, |last| last as u64 + 1);
        self.end = Some(self.end.map_or(end, |old| old.min(end)));
        let missing: Vec<_> =
            self.flights.keys().copied().filter(|&number| !self.has_come(number)).collect();
        for number in missing {
            if self.is_waiting(number) {
                self.drop_frame(number, timeline);
            }
        }
    }

    /// The bytes of frames that wait here, or will.
    pub(crate) fn held_bytes(&self) -> usize {
        self.schedule.clip().held()
    }

    /// Whether there is something to decode.
    pub(super) fn has_come(&self, number: u64) -> bool {
        let clip = self.schedule.clip();
        !clip.is_in_parts() || clip.has(self.schedule.split(number).0)
    }

    /// A frame is decoded: what waits for it, and is there, goes on.
    pub(super) fn unpark_after(&mut self, number: u64, timeline: &mut dyn Timeline) {
        if self.parked.is_empty() {
            return;
        }
        let after = self.parked.range(number..self.schedule.unit_end(number));
        let freed: Vec<_> = after
            .copied()
            .filter(|&other| self.schedule.needs(other) == Some(number) && self.has_come(other))
            .collect();
        for other in freed {
            if let Some(&Flight::Waiting(importance)) = self.flights.get(&other) {
                self.wait(other, importance, timeline);
            }
        }
    }

    /// Frees the bytes of a frame that is decoded or dropped.
    pub(super) fn forget_bytes(&mut self, number: u64) {
        if self.schedule.clip().is_in_parts() {
            let frame = self.schedule.split(number).0;
            self.schedule.clip_mut().put(frame, Vec::new());
        }
    }
}
