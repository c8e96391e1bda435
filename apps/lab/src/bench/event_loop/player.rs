//! An adaptive player, as a state machine without a clock: what is due, and what to decode next.
//!
//! Each frame has one timer, at its release time: the frame is then shown if it is decoded, and
//! dropped otherwise. Until then, decoding it is best-effort work, least user virtual time first:
//! its time, plus some frames for each layer, so that frames which others depend on are decoded far
//! ahead.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::clip::{AHEAD, Clip, Frame};
use crate::compete::tier_stats::TierStats;
use crate::compete::work::CHUNK_NS;

/// How many frames later a frame of one layer is as important as a frame of the next layer.
const LAYER: u64 = AHEAD / 3;

/// A player in the middle of its clip.
pub struct Player {
    clip: Clip,
    window: Window,
    frames: VecDeque<Waiting>,
    /// Number of frames shown, including those that don't count.
    shown: u64,
    seen: Seen,
}

/// The time in which a player plays, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Time at which the first frame is due.
    pub begin_ns: u64,
    /// Time from one frame to the next.
    pub period_ns: u64,
    /// Time from which the player counts; before it, everything warms up.
    pub count_ns: u64,
    /// Frames due at this time or later are not played.
    pub end_ns: u64,
}

/// A frame that is not due yet.
struct Waiting {
    frame: Frame,
    left_ns: u64,
}

impl Waiting {
    /// Key of importance, least first: the frame's number, plus [`LAYER`] frames for each layer.
    fn key(&self) -> u64 {
        self.frame.number + self.frame.layer * LAYER
    }
}

/// What a player observed while it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Release time of the first timer that counts.
    pub first_ns: u64,
    /// Tardiness of each timer at its dispatch, in nanoseconds, in the order of release times.
    pub tardiness_ns: Vec<u64>,
    /// Number of frames shown.
    pub shown: u64,
    /// Number of chunks decoded.
    pub chunks: u64,
    /// Statistics of its tier from its first frame on, including the warm-up.
    pub tier_stats: TierStats,
}

impl Player {
    /// A player at the start of its clip.
    pub fn new(clip: Clip, window: Window) -> Self {
        let seen = Seen::default();
        let mut player = Self { clip, window, frames: VecDeque::new(), shown: 0, seen };
        (0..AHEAD).for_each(|_| player.look_ahead());
        player
    }

    /// Returns the window in which it plays.
    pub fn window(&self) -> Window {
        self.window
    }

    fn look_ahead(&mut self) {
        let frame = self.clip.frame();
        self.frames.push_back(Waiting { frame, left_ns: frame.cost_ns });
    }

    /// Returns the release time of its next timer, or `None` if the run is over by then.
    pub fn release_ns(&self) -> Option<u64> {
        let next = self.frames.front()?.frame.number;
        let at_ns = self.window.begin_ns + next * self.window.period_ns;
        (at_ns < self.window.end_ns).then_some(at_ns)
    }

    /// Returns whether a timer is due.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.release_ns().is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// Dispatches the timer that is due, if any. Returns whether there is a frame to show, or
    /// `None` if no timer is due.
    pub fn dispatch(&mut self, now_ns: u64) -> Option<bool> {
        let release_ns = self.release_ns().filter(|&at_ns| at_ns <= now_ns)?;
        let shows = self.frames.pop_front().is_some_and(|frame| frame.left_ns == 0);
        self.look_ahead();
        self.shown += u64::from(shows);
        if release_ns >= self.window.count_ns {
            if self.seen.tardiness_ns.is_empty() {
                self.seen.first_ns = release_ns;
            }
            self.seen.tardiness_ns.push(now_ns - release_ns);
            self.seen.shown += u64::from(shows);
        }
        Some(shows)
    }

    /// Returns the number of the frame to decode next, or `None` if all are decoded.
    pub fn best(&self) -> Option<u64> {
        self.most_important().map(|waiting| waiting.frame.number)
    }

    fn most_important(&self) -> Option<&Waiting> {
        let undecoded = self.frames.iter().filter(|waiting| waiting.left_ns > 0);
        undecoded.min_by_key(|waiting| waiting.key())
    }

    /// Returns how long the next chunk of this frame takes, in nanoseconds of a CPU.
    pub fn chunk_ns(&self, number: u64) -> u64 {
        self.waiting(number).map_or(0, |waiting| waiting.left_ns.min(CHUNK_NS))
    }

    /// Records that a chunk of this frame is decoded. Has no effect if the frame was due meanwhile.
    pub fn decoded(&mut self, number: u64, now_ns: u64) {
        let index = self.frames.iter().position(|waiting| waiting.frame.number == number);
        if let Some(waiting) = index.and_then(|index| self.frames.get_mut(index)) {
            waiting.left_ns = waiting.left_ns.saturating_sub(CHUNK_NS);
        }
        if (self.window.count_ns..self.window.end_ns).contains(&now_ns) {
            self.seen.chunks += 1;
        }
    }

    fn waiting(&self, number: u64) -> Option<&Waiting> {
        self.frames.iter().find(|waiting| waiting.frame.number == number)
    }

    /// Returns the user virtual time of the player's next work: that of its most important frame;
    /// or, where all players share one utility, the number of frames it has shown, so that the
    /// player that has shown the fewest runs next. `None` if there is nothing to decode.
    pub fn importance(&self, one_group: bool) -> Option<u64> {
        let next = self.most_important()?;
        Some(if one_group { self.shown } else { next.key() * self.window.period_ns })
    }

    /// Returns the observations.
    pub fn into_seen(self) -> Seen {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window =
        Window { begin_ns: 1_000, period_ns: 1_000_000, count_ns: 4_001_000, end_ns: 10_001_000 };

    fn player(demand: f64) -> Player {
        Player::new(Clip::new(1, WINDOW.period_ns, demand, false), WINDOW)
    }

    /// Decodes at this time until nothing is left to decode.
    fn decode(player: &mut Player, now_ns: u64) {
        while let Some(frame) = player.best() {
            assert!((1..=CHUNK_NS).contains(&player.chunk_ns(frame)));
            player.decoded(frame, now_ns);
        }
    }

    #[test]
    fn each_frame_has_one_timer_and_is_shown_if_it_is_decoded() {
        let mut player = player(0.5);
        assert_eq!(player.dispatch(999), None);
        assert_eq!(player.dispatch(1_000), Some(false), "nothing is decoded yet");
        decode(&mut player, 2_000);
        assert_eq!((player.best(), player.importance(true)), (None, None));
        let mut dispatched = 0;
        while let Some(at_ns) = player.release_ns() {
            assert!(!player.is_due(at_ns - 1) && player.is_due(at_ns));
            assert_eq!(player.dispatch(at_ns + 5), Some(true));
            decode(&mut player, at_ns + 5);
            dispatched += 1;
        }
        assert_eq!((dispatched, player.shown), (9, 9));
        let seen = player.into_seen();
        assert_eq!((seen.first_ns, seen.tardiness_ns, seen.shown), (4_001_000, vec![5; 6], 6));
    }

    #[test]
    fn who_comes_late_dispatches_all_that_is_due() {
        let mut player = player(0.5);
        let mut dropped = 0;
        while player.dispatch(WINDOW.end_ns + 7).is_some_and(|shows| !shows) {
            dropped += 1;
        }
        assert_eq!((dropped, player.release_ns()), (10, None));
        let seen = player.into_seen();
        assert_eq!(seen.tardiness_ns.first(), Some(&6_000_007));
        assert!(seen.tardiness_ns.is_sorted_by(|one, next| one > next));
        assert_eq!((seen.tardiness_ns.len(), seen.shown, seen.chunks), (6, 0, 0));
    }

    #[test]
    fn what_others_build_on_is_decoded_first() {
        let mut player = player(4.0);
        let mut order = Vec::new();
        while let Some(frame) = player.best() {
            if order.last() != Some(&frame) {
                order.push(frame);
            }
            player.decoded(frame, 0);
        }
        assert_eq!(order.len() as u64, AHEAD);
        assert_eq!(order[..3], [0, 4, 2], "of the next group before the rest of this one");
        let place = |number| order.iter().position(|&frame| frame == number);
        assert!((0..AHEAD).step_by(4).all(|base| place(base) < place(base + 1)));
    }

    #[test]
    fn a_chunk_of_a_frame_that_is_gone_helps_nobody() {
        let mut player = player(2.0);
        let best = player.best().expect("work");
        player.dispatch(1_000);
        let next = player.best().map(|frame| player.chunk_ns(frame));
        player.decoded(best, WINDOW.count_ns);
        assert_eq!(player.chunk_ns(best), 0);
        assert_eq!(player.best().map(|frame| player.chunk_ns(frame)), next);
        assert_eq!(player.into_seen().chunks, 1);
    }
}
