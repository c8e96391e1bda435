//! Chooses the frame to send next: Priority-Progress over a link.
//!
//! The scale is that of a [player](crate::player): a frame is taken in a window before it is due,
//! the frames in the window are sent by importance, and frames that have expired are not read any
//! more. The capacity of a link is not estimated: it follows from what the socket accepts.
//!
//! - SEND-1: a frame is sent after the frame that it needs, and not without it.
//! - SEND-2: no frame that has expired is sent or read.
//! - SEND-3: of the frames in the window that may be sent, the most important is next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Quality;
use crate::clip::{Clip, Layer};
use crate::player::{Options, Schedule};

/// Frame counts of a layer at a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that were requested, but not sent in time.
    pub dropped: u64,
    /// Bytes of the frames that were sent.
    pub bytes: u64,
}

/// A frame that waits to be sent.
#[derive(Clone, Copy)]
struct Waiting {
    importance: u64,
    expiry_ns: u64,
}

/// The frames of a clip that are sent to one client.
pub(crate) struct Sender {
    schedule: Schedule,
    clip: Arc<Clip>,
    quality: Quality,
    margin_ns: u64,
    waiting: BTreeMap<u64, Waiting>,
    by_importance: BTreeSet<(u64, u64)>,
    by_expiry: BTreeSet<(u64, u64)>,
    /// Frames that were sent, and that other frames of their unit may need.
    references: BTreeSet<u64>,
    /// The first frame that was not taken in yet.
    next: u64,
    layers: [Sent; 4],
}

impl Sender {
    /// A sender that starts at `now_ns`: the first frame is due one look-ahead later, which is the
    /// window.
    pub(crate) fn new(clip: Arc<Clip>, options: &Options, quality: Quality, now_ns: u64) -> Self {
        let mut schedule = Schedule::new(Arc::clone(&clip), options);
        schedule.start(now_ns);
        Self {
            schedule,
            clip,
            quality,
            margin_ns: options.margin_ns,
            waiting: BTreeMap::new(),
            by_importance: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
            references: BTreeSet::new(),
            next: 0,
            layers: [Sent::default(); 4],
        }
    }

    /// The frames that were sent, by layer.
    pub(crate) fn layers(&self) -> [Sent; 4] {
        self.layers
    }

    /// The next time when a frame comes into the window or expires; `None` if all are sent or
    /// dropped.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let arrival =
            (self.next < self.schedule.len()).then(|| self.schedule.arrival_ns(self.next));
        let expiry = self.by_expiry.first().map(|&(expiry_ns, _)| expiry_ns);
        arrival.into_iter().chain(expiry).min()
    }

    /// Takes in the frames that have come into the window, and drops those that have expired.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        while self.next < self.schedule.len() && self.schedule.arrival_ns(self.next) <= now_ns {
            self.take_in(self.next);
            self.next += 1;
        }
        while let Some(&(expiry_ns, number)) = self.by_expiry.first()
            && expiry_ns <= now_ns
        {
            self.expire(number, now_ns);
        }
    }

    fn take_in(&mut self, number: u64) {
        if self.schedule.unit_start(number) == number {
            // Frames from here on need no earlier frame.
            self.references.clear();
        }
        if self.schedule.layer(number) < self.quality.least() {
            return;
        }
        let needed = self.schedule.needs(number);
        if needed.is_some_and(|n| !self.waiting.contains_key(&n) && !self.references.contains(&n)) {
            self.layer(number).dropped += 1;
            return;
        }
        let importance = self.schedule.importance(number);
        self.wait(number, Waiting { importance, expiry_ns: self.schedule.expiry_ns(number) });
    }

    fn wait(&mut self, number: u64, waiting: Waiting) {
        self.forget(number);
        self.by_importance.insert((waiting.importance, number));
        self.by_expiry.insert((waiting.expiry_ns, number));
        self.waiting.insert(number, waiting);
    }

    fn forget(&mut self, number: u64) {
        if let Some(Waiting { importance, expiry_ns }) = self.waiting.remove(&number) {
            self.by_importance.remove(&(importance, number));
            self.by_expiry.remove(&(expiry_ns, number));
        }
    }

    /// Drops a late frame that is of no use any more. A late frame that others need waits, but
    /// after frames that can still be shown.
    fn expire(&mut self, number: u64, now_ns: u64) {
        let end_ns = self.schedule.end_ns(number);
        let Some(&Waiting { importance, .. }) = self.waiting.get(&number) else { return };
        if now_ns >= end_ns {
            return self.drop_frame(number);
        }
        let importance = importance.max(self.schedule.importance_late(now_ns));
        let expiry_ns = end_ns.min(now_ns + self.schedule.batch_ns());
        self.wait(number, Waiting { importance, expiry_ns });
    }

    /// Drops a waiting frame, and those that need it.
    pub(crate) fn drop_frame(&mut self, number: u64) {
        let mut gone = BTreeSet::from([number]);
        let unit: Vec<_> =
            self.waiting.range(number..self.schedule.unit_end(number)).map(|(&n, _)| n).collect();
        for other in unit {
            let needs_it = self.schedule.needs(other).is_some_and(|needed| gone.contains(&needed));
            if other == number || needs_it {
                gone.insert(other);
                self.forget(other);
                self.layer(other).dropped += 1;
            }
        }
    }

    /// SEND-3: the next frame, and its importance as work: that of its decoding, earlier by the
    /// margin. The frame stays there until it is [sent](Self::sent) or dropped.
    pub(crate) fn first(&mut self) -> Option<(u64, usize)> {
        loop {
            let &(importance, number) = self.by_importance.first()?;
            let needed = self.schedule.needs(number).and_then(|needed| self.waiting.get(&needed));
            let Some(before) = needed.map(|needed| needed.importance) else {
                let frame = self.schedule.split(number).0;
                return Some((importance.saturating_sub(self.margin_ns), frame));
            };
            // SEND-1: the frame that it needs is late.
            let &waiting = self.waiting.get(&number)?;
            self.wait(number, Waiting { importance: before + 1, ..waiting });
        }
    }

    /// Records that a frame is sent.
    pub(crate) fn sent(&mut self, frame: usize) {
        let number = frame as u64;
        self.forget(number);
        if self.schedule.layer(number) != Layer::Disposable {
            self.references.insert(number);
        }
        let bytes = self.clip.frames()[frame].bytes.len() as u64;
        let layer = self.layer(number);
        layer.sent += 1;
        layer.bytes += bytes;
    }

    fn layer(&mut self, number: u64) -> &mut Sent {
        &mut self.layers[self.schedule.layer(number) as usize]
    }
}
