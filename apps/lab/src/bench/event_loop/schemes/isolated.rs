//! Two threads, by [`Split`]: one for timers, and one that decodes; they share only marks and mail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;

use antiphon_coop::{Split, SplitOptions};

use super::super::clip::AHEAD;
use super::super::player::{Player, Seen};
use super::Seat;
use crate::compete::tier_stats::TierStats;
use crate::compete::work::now_ns;

/// Plays with the timers in a thread of this real-time priority, or with a short slice if `None`.
///
/// # Errors
///
/// One line, if this is not permitted.
pub fn play(player: Player, seat: Seat, priority: Option<u8>) -> Result<Seen, String> {
    let options = SplitOptions { priority, ..SplitOptions::default() };
    let timers = Split::start(options).map_err(|refused| refused.to_string())?;
    let _slice = timers.worker().map_err(|refused| refused.to_string())?;
    let seen = Playing::new(player, seat, timers.clone()).through();
    Ok(Seen { tier_stats: TierStats::of_split(&timers), ..seen })
}

struct Playing {
    player: Player,
    seat: Seat,
    timers: Split,
    /// Numbers of decoded frames: a ring with more places than frames can wait.
    decoded: Arc<[AtomicU64]>,
    /// Sends the times at which timers were dispatched, in order.
    tell: mpsc::Sender<u64>,
    told: mpsc::Receiver<u64>,
    /// Number of frames whose timer has been set.
    set: u64,
}

const MARKS: u64 = 2 * AHEAD;

impl Playing {
    fn new(player: Player, seat: Seat, timers: Split) -> Self {
        let (tell, told) = mpsc::channel();
        let decoded = (0..MARKS).map(|_| AtomicU64::new(u64::MAX)).collect();
        Self { player, seat, timers, decoded, tell, told, set: 0 }
    }

    fn through(mut self) -> Seen {
        let mut dispatched = 0;
        while self.player.release_ns().is_some() {
            while self.set < dispatched + AHEAD && self.sets_timer() {}
            let best = self.player.best();
            if let Some(frame) = best {
                self.seat.decode(self.player.chunk_ns(frame));
            }
            dispatched += self.hears(best.is_none());
            if let Some(frame) = best {
                self.player.decoded(frame, now_ns());
                if self.player.chunk_ns(frame) == 0 {
                    // Relaxed: the timer needs no other data of the frame than this mark.
                    self.decoded[(frame % MARKS) as usize].store(frame, Relaxed);
                }
            }
        }
        self.player.into_seen()
    }

    /// Sets the timer of the next frame, if the frame is part of the run.
    fn sets_timer(&mut self) -> bool {
        let (window, frame) = (self.player.window(), self.set);
        let release_ns = window.begin_ns + frame * window.period_ns;
        if release_ns >= window.end_ns {
            return false;
        }
        let (decoded, tell) = (Arc::clone(&self.decoded), self.tell.clone());
        let show = self.seat.shower();
        self.timers.submit(release_ns, move |late_ns| {
            if decoded[(frame % MARKS) as usize].load(Relaxed) == frame {
                show();
            }
            // The receiver is gone once the run is over.
            let _ = tell.send(release_ns + late_ns);
        });
        self.set += 1;
        true
    }

    /// Dispatches the timers that were announced meanwhile, and returns their number; with `waits`,
    /// waits for the first.
    fn hears(&mut self, waits: bool) -> u64 {
        let first = if waits { self.told.recv().ok() } else { None };
        let mut count = 0;
        for at_ns in first.into_iter().chain(self.told.try_iter()) {
            self.player.dispatch(at_ns);
            count += 1;
        }
        count
    }
}
