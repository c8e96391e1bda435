//! The kinds of programs that play, and what each reports.

use antiphon_player::decode::Decode;
use antiphon_player::game::Game;
use antiphon_player::program::Program;
use antiphon_player::sound::Sink;
use antiphon_player::{Layer, Player, Report, Screen, Sound, Steady, Tardiness};
use serde::{Deserialize, Serialize};

/// The kind of program that plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Plays a clip, and drops frames that it has no time for.
    Video,
    /// Plays chunks of samples of 10 ms each.
    Sound,
    /// Runs a game of 100 steps per second.
    Game,
    /// Plays a clip, and drops nothing.
    Steady,
}

impl Kind {
    /// Returns its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Sound => "sound",
            Self::Game => "game",
            Self::Steady => "steady",
        }
    }
}

/// Numbers of frames of a layer that were shown and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Frames shown.
    pub shown: u64,
    /// Frames that were due but not shown.
    pub dropped: u64,
}

/// The progress of a program so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Tardiness of each frame, chunk or step, in nanoseconds, in order.
    pub tardiness_ns: Vec<u64>,
    /// Number of frames shown, chunks played, or steps made.
    pub shown: u64,
    /// Number of frames and chunks that were due but not ready, or of details of a game not drawn.
    pub dropped: u64,
    /// Share of the due work that was done in time, from 0 to 1.
    pub quality: f64,
    /// Counts by layer, in the order of [`Layer::ALL`]; empty without layers.
    pub layers: Vec<Count>,
    /// Frames shown, by the second in which they were due; empty without frames.
    pub per_second: Vec<u32>,
    /// The name of the decoder, if there is one.
    pub decoder: Option<String>,
    /// Number of frames that were shown after a later one.
    pub disorder: u64,
    /// Number of frames whose number was read and was right.
    pub read: u64,
    /// Number of frames whose number was wrong or unreadable.
    pub misread: u64,
    /// Number of frames that the decoder refused.
    pub refused: u64,
    /// Why it refused the first of them.
    pub refusal: Option<String>,
    /// Why the window did not show it to the end, if it was shown in one.
    pub unseen: Option<String>,
}

/// A program that reports what it has played.
pub trait Tells: Program {
    /// Returns what it has played so far, without the tardiness of the first `since` timers.
    fn played(&self, since: usize) -> Played;
}

impl<D: Decode, S: Screen> Tells for Player<D, S> {
    fn played(&self, since: usize) -> Played {
        Played::of_frames(self.report(), since)
    }
}

impl<D: Decode, S: Screen> Tells for Steady<D, S> {
    fn played(&self, since: usize) -> Played {
        Played::of_frames(self.report(), since)
    }
}

impl<W: FnMut(&mut [i16]), S: Sink> Tells for Sound<W, S> {
    fn played(&self, since: usize) -> Played {
        let of = self.played();
        let due = (of.chunks + of.underruns).max(1);
        Played {
            tardiness_ns: tail(&of.tardiness, since),
            shown: of.chunks,
            dropped: of.underruns,
            quality: of.chunks as f64 / due as f64,
            ..Played::default()
        }
    }
}

/// Number of details of a step of a game.
pub const DETAILS: u64 = 4;

impl<W: FnMut(u64)> Tells for Game<W> {
    fn played(&self, since: usize) -> Played {
        let of = self.drawn();
        Played {
            tardiness_ns: tail(&of.tardiness, since),
            shown: of.ticks,
            dropped: of.ticks * DETAILS - of.details,
            quality: self.quality(),
            ..Played::default()
        }
    }
}

impl Played {
    fn of_frames(report: &Report, since: usize) -> Self {
        let count = |layer| {
            let of = report.layer(layer);
            Count { shown: of.shown, dropped: of.dropped }
        };
        let total = report.total();
        Self {
            tardiness_ns: tail(&report.tardiness, since),
            shown: total.shown,
            dropped: total.dropped,
            quality: report.quality(),
            layers: Layer::ALL.map(count).to_vec(),
            per_second: report.per_second.clone(),
            decoder: Some(report.decoder.clone()),
            disorder: report.disorder,
            read: report.read,
            misread: report.misread + report.unread,
            refused: report.refused,
            refusal: report.refusal.clone(),
            unseen: match report.is_closed {
                true => Some("its window was closed, and it stopped".to_owned()),
                false => report.screen_fault.clone(),
            },
        }
    }

    /// Returns the fault in what it has played, if there is one. Running out of time is not a
    /// fault.
    pub fn fault(&self) -> Option<String> {
        let faults = [
            (self.disorder, "shown after a later one"),
            (self.misread, "with another number than they should have"),
            (self.refused, "refused by the decoder"),
        ];
        let (count, what) = faults.into_iter().find(|(count, _)| *count > 0)?;
        let why = self.refusal.as_deref().filter(|_| what.starts_with("refused"));
        let why = why.map_or(String::new(), |why| format!(" ({why})"));
        Some(format!("{count} frames {what}{why}"))
    }
}

fn tail(of: &Tardiness, since: usize) -> Vec<u64> {
    of.samples().get(since..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_what_no_want_of_time_explains() {
        let fine = Played { dropped: 100, quality: 0.1, ..Played::default() };
        assert_eq!(fine.fault(), None);
        let of = |played: Played| played.fault().unwrap_or_default();
        assert!(of(Played { disorder: 2, ..fine.clone() }).starts_with("2 frames shown after"));
        assert!(of(Played { misread: 1, ..fine.clone() }).contains("another number"));
        let refused = Played { refused: 3, refusal: Some("broken".to_owned()), ..fine };
        assert!(of(refused).ends_with("refused by the decoder (broken)"));
    }
}
