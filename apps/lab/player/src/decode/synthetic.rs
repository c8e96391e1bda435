//! Decoders that spend the time of a trace, in pieces.

use std::collections::HashMap;
use std::time::Instant;

use super::{Costs, Decode, Progress, UnitId};
use crate::counter;
use crate::picture::Picture;
use crate::{Clip, Error};

/// The longest piece of a frame's decoding, in nanoseconds.
const PIECE_NS: u64 = 250_000;

/// Spins for `ns` nanoseconds.
pub fn spin(ns: u64) {
    let start = Instant::now();
    while (start.elapsed().as_nanos() as u64) < ns {
        std::hint::spin_loop();
    }
}

/// The remaining costs of frames that have been begun.
struct Spending<F> {
    costs: Costs,
    spend: F,
    left: HashMap<(u64, usize), u64>,
}

impl<F: FnMut(u64)> Spending<F> {
    /// Spends a piece; returns whether the whole cost of the frame is spent.
    fn piece(&mut self, frame: usize, pass: u64) -> bool {
        let left = self.left.entry((pass, frame)).or_insert_with(|| self.costs.of(frame));
        let piece = PIECE_NS.min(*left);
        *left -= piece;
        let is_over = *left == 0;
        if is_over {
            self.left.remove(&(pass, frame));
        }
        (self.spend)(piece);
        is_over
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        let frames = &clip.units()[unit.unit].frames;
        self.left.retain(|&(pass, frame), _| pass != unit.pass || !frames.contains(&frame));
    }
}

/// A decoder that spends the time of a trace, and draws only the [counter](crate::counter).
pub struct Synthetic<F> {
    spending: Spending<F>,
}

impl<F: FnMut(u64)> Synthetic<F> {
    /// A decoder with `costs` of its clip; `spend` computes for a number of nanoseconds, as
    /// [`spin`] does.
    pub fn new(costs: Costs, spend: F) -> Self {
        Self { spending: Spending { costs, spend, left: HashMap::new() } }
    }
}

impl<F: FnMut(u64)> Decode for Synthetic<F> {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        if !self.spending.piece(frame, pass) {
            return Ok(Progress::More);
        }
        let mut picture = Picture::gray(counter::ROOM.0, counter::ROOM.1);
        // The counter has 16 bits, and then starts again.
        counter::draw(&mut picture, clip.frames()[frame].shown as u16);
        Ok(Progress::Done(picture))
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        self.spending.close(clip, unit);
    }

    fn name(&self) -> String {
        "synthetic (spends time, decodes nothing)".to_owned()
    }
}

/// A decoder that spends the time of a trace before another decoder runs.
pub struct Costly<D, F> {
    decoder: D,
    spending: Spending<F>,
}

impl<D: Decode, F: FnMut(u64)> Costly<D, F> {
    /// Wraps `decoder`, with `costs` of its clip; `spend` computes for a number of nanoseconds.
    pub fn new(decoder: D, costs: Costs, spend: F) -> Self {
        Self { decoder, spending: Spending { costs, spend, left: HashMap::new() } }
    }
}

impl<D: Decode, F: FnMut(u64)> Decode for Costly<D, F> {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        if !self.spending.piece(frame, pass) {
            return Ok(Progress::More);
        }
        self.decoder.decode(clip, frame, pass)
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        self.spending.close(clip, unit);
        self.decoder.close(clip, unit);
    }

    fn name(&self) -> String {
        format!("{}, with costs of a trace", self.decoder.name())
    }
}
