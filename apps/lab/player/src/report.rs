//! The figures that a program reports.

use std::fmt;

use crate::clip::Layer;
use crate::counter;
use crate::picture::Picture;

/// Tardiness samples: the times from a release to its answer, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tardiness {
    samples: Vec<u64>,
}

impl Tardiness {
    /// Adds a sample.
    pub fn note(&mut self, release_ns: u64, now_ns: u64) {
        self.samples.push(now_ns.saturating_sub(release_ns));
    }

    /// All samples, in the order in which they were added.
    pub fn samples(&self) -> &[u64] {
        &self.samples
    }

    /// The tardiness that `permille` of a thousand samples do not exceed; 0 without samples.
    pub fn quantile(&self, permille: usize) -> u64 {
        let mut sorted = self.samples.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * permille).div_ceil(1000).saturating_sub(1);
        sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}

/// Frame counts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Frames that were shown.
    pub shown: u64,
    /// Frames that were due but not shown: decoded too late, or not at all.
    pub dropped: u64,
}

/// The frames that a player has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The name of the decoder.
    pub decoder: String,
    /// Tardiness of the frames that were shown.
    pub tardiness: Tardiness,
    pub(crate) layers: [Count; 4],
    /// Frames shown in each second, counted from the time when the first was due.
    pub per_second: Vec<u32>,
    /// Frames shown after one that follows them: 0 unless the player is faulty.
    pub disorder: u64,
    /// Frames whose drawn number is not that of the frame: 0 unless the player is faulty.
    pub misread: u64,
    /// Frames in which no number was found.
    pub unread: u64,
    /// Frames whose number was read, and matched.
    pub read: u64,
    /// Frames that were decoded for other frames after their own time had passed.
    pub late: u64,
    /// Frames that the decoder refused: 0 unless the stream is damaged.
    pub refused: u64,
    /// Why the decoder refused the first of them.
    pub refusal: Option<String>,
    /// Whether the user has closed the screen, which stopped the player: frames not due by then are
    /// not counted.
    pub is_closed: bool,
    /// Why the screen showed nothing from some time on.
    pub screen_fault: Option<String>,
}

impl Report {
    /// The counts of a layer.
    pub fn layer(&self, layer: Layer) -> Count {
        self.layers[layer as usize]
    }

    pub(crate) fn layer_mut(&mut self, layer: Layer) -> &mut Count {
        &mut self.layers[layer as usize]
    }

    /// Counts a frame shown `late_ns` after its due time, in that second, counted from the time
    /// when the first was due.
    pub(crate) fn count_shown(&mut self, layer: Layer, second: usize, late_ns: u64) {
        self.tardiness.note(0, late_ns);
        self.layer_mut(layer).shown += 1;
        if self.per_second.len() <= second {
            self.per_second.resize(second + 1, 0);
        }
        self.per_second[second] += 1;
    }

    /// Compares the number in a picture with that of the frame, in display order.
    pub(crate) fn check(&mut self, picture: &Picture, shown: usize) {
        *match counter::read(picture) {
            // The counter has 16 bits.
            Some(number) if number == shown as u16 => &mut self.read,
            Some(_) => &mut self.misread,
            None => &mut self.unread,
        } += 1;
    }

    /// The counts of all layers.
    pub fn total(&self) -> Count {
        let add = |sum: Count, one: &Count| Count {
            shown: sum.shown + one.shown,
            dropped: sum.dropped + one.dropped,
        };
        self.layers.iter().fold(Count::default(), add)
    }

    /// The share of due frames that were shown, 0 to 1; 1 if none was due.
    pub fn quality(&self) -> f64 {
        let Count { shown, dropped } = self.total();
        if shown + dropped == 0 { 1.0 } else { shown as f64 / (shown + dropped) as f64 }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count { shown, dropped } = self.total();
        write!(f, "{shown} of {} frames", shown + dropped)?;
        for layer in Layer::ALL {
            let Count { shown, dropped } = self.layer(layer);
            write!(f, ", {} {shown}/{}", layer.letter(), shown + dropped)?;
        }
        let ms = |permille| self.tardiness.quantile(permille) as f64 / 1e6;
        write!(f, "; late by {:.3} ms (half), {:.3} (99 %), ", ms(500), ms(990))?;
        write!(f, "{:.3} (all); {}", ms(1000), self.decoder)?;
        if self.is_closed {
            f.write_str("; stopped because its window was closed")?;
        }
        match &self.screen_fault {
            Some(fault) => write!(f, "; not seen to the end: {fault}"),
            None => Ok(()),
        }
    }
}

/// Jain's index of fairness of `shares` (after Jain, 1984): 1 if all are equal, `1 / n` if one has
/// everything. 1 if there is nothing to share.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut tardiness = Tardiness::default();
        assert_eq!(tardiness.quantile(990), 0);
        for late in (0..100).rev() {
            tardiness.note(1000, 1000 + late);
        }
        tardiness.note(1000, 900);
        assert_eq!((tardiness.quantile(0), tardiness.quantile(1000)), (0, 99));
        assert_eq!(tardiness.quantile(500), 49);
    }

    #[test]
    fn fairness_is_between_one_and_its_part() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[4.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[]), 1.0);
    }
}
