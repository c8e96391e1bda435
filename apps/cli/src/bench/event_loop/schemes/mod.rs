//! Ways to have timers on time while there is other work: baselines, and ours.
//!
//! | module | has |
//! |---|---|
//! | [`cooperative`] | one thread, one loop, and whoever it cooperates with |
//! | [`events`] | what such a loop waits by: epoll and a timerfd |
//! | [`tokio`] | the runtime of that name |
//! | [`baton`] | programs that hand the CPU to each other |
//! | [`isolated`] | a thread for timers, one for the rest, mail between |
//! | [`split`] | the same by a mutex that lends priority |
//! | [`scheduling`] | what a thread may ask of the kernel's scheduler |
//!
//! One more is a row of [`OURS`] or [`PEERS`]: a name, what it needs, and a function that plays.
//! One that is a [`Cooperate`](antiphon_runtime::coop::Cooperate) plays by [`cooperative::play`].

mod baton;
mod cooperative;
mod events;
mod isolated;
pub mod scheduling;
mod split;
mod tokio;

use antiphon::coop::Alone;

use super::player::{Player, Seen};
use crate::compete::work::{Pace, SHOW_NS};
use crate::stats::Random;
use scheduling::Needs;

/// A way to play.
pub struct Scheme {
    /// Its name.
    pub name: &'static str,
    /// What the system must permit.
    pub needs: Needs,
    /// Plays until no timer is left; in one line, what hindered it.
    pub play: fn(Player, Seat) -> Result<Seen, String>,
}

/// Where a player plays, and how well it behaves.
pub struct Seat {
    /// How fast it works.
    pub pace: Pace,
    /// Whether all players share one utility.
    pub one_group: bool,
    /// How often it works for up to [`LATE_NS`] longer than it says; from 0 to 1.
    pub misbehaves: f64,
    /// Of how long.
    pub random: Random,
}

/// How late at most who misbehaves gives the CPU away.
pub const LATE_NS: u64 = 10_000_000;

impl Seat {
    /// Decodes for so long.
    pub fn decode(&mut self, ns: u64) {
        let share = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        if self.misbehaves > 0.0 && share(self.random.next()) < self.misbehaves {
            self.pace.burn(self.random.next() % LATE_NS);
        }
        self.pace.burn(ns);
    }

    /// Shows a frame.
    pub fn show(&self) {
        self.shower()();
    }

    /// What shows a frame, for another thread.
    pub fn shower(&self) -> impl Fn() + Send + use<> {
        let pace = self.pace;
        move || pace.burn(SHOW_NS)
    }
}

/// Ours.
pub static OURS: &[Scheme] = &[
    Scheme {
        name: "alone",
        needs: Needs::Nothing,
        play: |player, seat| cooperative::play(player, seat, &mut Alone),
    },
    Scheme { name: "t1", needs: Needs::Realtime, play: baton::boosted },
    Scheme {
        name: "t1b",
        needs: Needs::Realtime,
        play: |player, seat| isolated::play(player, seat, Some(TIMER_PRIORITY)),
    },
    Scheme {
        name: "t2",
        needs: Needs::Slice,
        play: |player, seat| isolated::play(player, seat, None),
    },
    Scheme { name: "t3", needs: Needs::Nothing, play: baton::play },
];

/// Of threads that run timers only: the least that any real-time thread has, and one more.
const TIMER_PRIORITY: u8 = 2;

/// Those to compare with.
pub static PEERS: &[Scheme] = &[
    Scheme {
        name: "epoll",
        needs: Needs::Nothing,
        play: |player, seat| cooperative::play(player, seat, &mut Alone),
    },
    Scheme {
        name: "epoll-slice",
        needs: Needs::Slice,
        play: |player, seat| {
            scheduling::slice(SLICE_NS)?;
            cooperative::play(player, seat, &mut Alone)
        },
    },
    Scheme { name: "tokio", needs: Needs::Nothing, play: tokio::play },
    Scheme {
        name: "fifo",
        needs: Needs::Realtime,
        play: |player, seat| {
            scheduling::realtime(libc::SCHED_FIFO, LOOP_PRIORITY)?;
            cooperative::play(player, seat, &mut Alone)
        },
    },
    Scheme {
        name: "rr",
        needs: Needs::Realtime,
        play: |player, seat| {
            scheduling::realtime(libc::SCHED_RR, LOOP_PRIORITY)?;
            cooperative::play(player, seat, &mut Alone)
        },
    },
    Scheme { name: "fifo-timer", needs: Needs::Realtime, play: split::play },
];

/// The shortest slice that may be asked for.
const SLICE_NS: u64 = 100_000;
/// Of loops that are real-time threads as a whole.
const LOOP_PRIORITY: i32 = 10;

/// The one of that name.
pub fn of_name(name: &str) -> Option<&'static Scheme> {
    OURS.iter().chain(PEERS).find(|scheme| scheme.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::clip::Clip;
    use super::super::player::Window;
    use super::*;
    use crate::compete::work::now_ns;

    /// Each that this machine permits dispatches each timer, none early, and decodes.
    #[test]
    fn each_dispatches_all_timers() {
        let pace = Pace::calibrate();
        for scheme in OURS.iter().chain(PEERS).filter(|scheme| scheme.needs.missing().is_none()) {
            let begin_ns = now_ns() + 1_000_000;
            let period_ns = 10_000_000;
            let (count_ns, end_ns) = (begin_ns + 10 * period_ns, begin_ns + 30 * period_ns);
            let window = Window { begin_ns, period_ns, count_ns, end_ns };
            let player = Player::new(Clip::new(1, period_ns, 0.2, false), window);
            let seat = Seat { pace, one_group: false, misbehaves: 0.01, random: Random(1) };
            // On a thread of its own, as what it asks of the scheduler is for good.
            let play = std::thread::spawn(move || (scheme.play)(player, seat));
            let seen = play.join().expect("it does not panic").expect("it is permitted");
            assert_eq!((seen.tardiness_ns.len(), seen.first_ns), (20, count_ns), "{}", scheme.name);
            assert!(seen.chunks > 0 && seen.shown > 0, "{}: {seen:?}", scheme.name);
        }
    }

    #[test]
    fn names_are_of_one_scheme() {
        for scheme in OURS.iter().chain(PEERS) {
            assert!(of_name(scheme.name).is_some_and(|found| std::ptr::eq(found, scheme)));
        }
        assert!(of_name("none").is_none());
    }
}
