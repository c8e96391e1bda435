//! Frames whose bytes arrive while their clip is played.
//!
//! A frame that was taken in but whose bytes are missing is *parked*, with the frames that need it:
//! their only event is the expiry, until the bytes arrive. Bytes that arrive too late to be decoded
//! are discarded.

use super::{Flight, Player};
use crate::clip::Layer;
use crate::decode::Decode;
use crate::picture::Screen;
use crate::program::Timeline;

impl<D: Decode, S: Screen> Player<D, S> {
    /// Takes the bytes of a frame of the clip; returns its layer, if they are of use.
    pub(crate) fn arrive(
        &mut self,
        frame: usize,
        bytes: Vec<u8>,
        timeline: &mut dyn Timeline,
    ) -> Option<Layer> {
        // A clip that arrives is played only once.
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

    /// Ends the arrivals although frames are missing: the player plays what it has.
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

    /// Number of bytes held of frames that are not decoded yet.
    pub(crate) fn held_bytes(&self) -> usize {
        self.schedule.clip().held()
    }

    /// Returns whether the bytes of a frame are present.
    pub(super) fn has_come(&self, number: u64) -> bool {
        let clip = self.schedule.clip();
        !clip.is_in_parts() || clip.has(self.schedule.split(number).0)
    }

    /// A frame is decoded: parked frames that need it go on, if their bytes are present.
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
