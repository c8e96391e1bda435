//! Schemes that keep timers on time beside other work: baselines, and ours.
//!
//! | module | has |
//! |---|---|
//! | [`cooperative`] | one thread, one loop, and the programs that it cooperates with |
//! | [`events`] | the descriptors that such a loop waits on: epoll and a timerfd |
//! | [`tokio`] | the runtime of that name |
//! | [`baton`] | programs that hand the CPU to each other |
//! | [`isolated`] | a thread for timers, one for the rest, mail between |
//! | [`split`] | a thread for timers, one for the rest, a mutex between that lends priority |
//! | [`scheduling`] | requests of a thread to the kernel's scheduler |
//!
//! To add a scheme, add a row to [`OURS`] or [`PEERS`]: a name, its needs, and a function that
//! plays. A scheme that is a [`Cooperate`](antiphon_runtime::coop::Cooperate) plays by
//! [`cooperative::play`].

mod baton;
mod cooperative;
mod events;
mod isolated;
pub mod scheduling;
mod split;
mod tokio;

use antiphon_coop::{Alone, BoostOptions, JoinError, SplitOptions, Tier, available};
use antiphon_linux::schedule::{SLICES_NS, set_fifo, set_round_robin, set_slice};
use antiphon_report::schedule::{Schedule, Used};
use antiphon_report::stats::Random;

use super::player::{Player, Seen};
use crate::compete::work::{Pace, SHOW_NS};
use scheduling::{ME, Needs};

/// A way to play.
pub struct Scheme {
    /// Its name.
    pub name: &'static str,
    /// The rights that it needs.
    pub needs: Needs,
    /// The tier that it implements, if any.
    pub tier: Option<Tier>,
    /// How its players share the CPU.
    pub shares: Shares,
    /// What it costs its user, besides its needs.
    pub costs: &'static str,
    /// Plays until no timer is left. The error is one line.
    pub play: fn(Player, Seat) -> Result<Seen, String>,
}

/// How players share the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// They don't: each player has a share of its own, whatever is asked for.
    Nothing,
    /// The players are members of a domain, and a group gets its share by weights.
    Weights,
    /// The players are members of a domain, and hand the CPU to each other.
    Baton,
}

impl Scheme {
    /// Returns which of its needs the system lacks and how to get it; with `one_group`, also what
    /// it takes to share one utility.
    pub fn missing(&self, one_group: bool) -> Option<String> {
        let weighs = one_group && self.shares == Shares::Weights;
        let weights = || available().weights().err().filter(|_| weighs);
        self.needs.missing().or_else(|| weights().map(|why| JoinError::Weight(why).to_string()))
    }

    /// Describes the needs in a few words.
    pub fn needs(&self, one_group: bool) -> String {
        let weighs = one_group && self.shares == Shares::Weights;
        format!("{}{}", self.needs.name(), if weighs { ", weight" } else { "" })
    }

    /// Returns the options that have an effect on the scheme.
    pub fn used(&self) -> Used {
        self.tier.map_or(Used::Nothing, Used::by)
    }
}

/// The place of a player, and how well it behaves.
pub struct Seat {
    /// Calibrated speed of its work.
    pub pace: Pace,
    /// Whether all players share one utility.
    pub one_group: bool,
    /// Name of the domain of its CPU, if the scheme has one.
    pub domain: Option<String>,
    /// Scheduling options of the domain.
    pub schedule: Schedule,
    /// Probability, from 0 to 1, that a chunk takes up to [`LATE_NS`] longer than announced.
    pub misbehaves: f64,
    /// Random numbers that decide when, and by how much.
    pub random: Random,
}

/// Longest delay with which a misbehaving player gives the CPU away, in nanoseconds.
pub const LATE_NS: u64 = 10_000_000;

impl Seat {
    /// Decodes for `ns` nanoseconds, or longer if the player misbehaves.
    pub fn decode(&mut self, ns: u64) {
        let share = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        if self.misbehaves > 0.0 && share(self.random.draw()) < self.misbehaves {
            self.pace.burn(self.random.draw() % LATE_NS);
        }
        self.pace.burn(ns);
    }

    /// Shows a frame.
    pub fn show(&self) {
        self.shower()();
    }

    /// A function that shows a frame, for another thread.
    pub fn shower(&self) -> impl Fn() + Send + use<> {
        let pace = self.pace;
        move || pace.burn(SHOW_NS)
    }
}

/// The cost of schemes that share the CPU as the kernel decides.
const WAITS: &str = "its timers wait while others have the CPU";
/// The cost of schemes whose timers have their own thread.
const BESIDE: &str = "callbacks of timers run beside the rest of the program: what they share \
                      needs a lock, or mail; and their thread is real-time as a whole";
/// The cost of schemes in which the whole program is real-time.
const WHOLE: &str = "all of the program is real-time: others have what it leaves";

/// A loop of one thread that cooperates with nothing and needs nothing.
const PLAIN: Scheme = Scheme {
    name: "",
    tier: None,
    needs: Needs::Nothing,
    shares: Shares::Nothing,
    costs: WAITS,
    play: |player, seat| cooperative::play(player, seat, &mut Alone),
};

/// Our schemes.
pub static OURS: &[Scheme] = &[
    Scheme { name: "alone", ..PLAIN },
    Scheme {
        name: "t1",
        tier: Some(Tier::Boost),
        needs: Needs::Realtime(BOOST_PRIORITY),
        shares: Shares::Weights,
        costs: "a real-time helper, which has the loop run first while it is late; it gives that \
                time back",
        play: baton::boosted,
    },
    Scheme {
        name: "t1b",
        tier: Some(Tier::RealTimeSplit),
        needs: Needs::Realtime(SplitOptions::PRIORITY),
        costs: BESIDE,
        play: |player, seat| isolated::play(player, seat, Some(SplitOptions::PRIORITY)),
        ..PLAIN
    },
    Scheme {
        name: "t2",
        tier: Some(Tier::Split),
        needs: Needs::Slice,
        costs: "callbacks of timers run beside the rest of the program: what they share needs a \
                lock, or mail; of no use against programs on other run-queue levels",
        play: |player, seat| isolated::play(player, seat, None),
        ..PLAIN
    },
    Scheme {
        name: "t3",
        tier: Some(Tier::Baton),
        shares: Shares::Baton,
        costs: "one member runs at a time: beside programs that are none, all of them have the CPU \
                of one or two",
        play: baton::play,
        ..PLAIN
    },
];

/// Priority of the helper of loops that are boosted with default options.
const BOOST_PRIORITY: u8 = BoostOptions::PRIORITY + 1;

/// The schemes that ours are compared with.
pub static PEERS: &[Scheme] = &[
    Scheme { name: "epoll", ..PLAIN },
    Scheme {
        name: "epoll-slice",
        needs: Needs::Slice,
        costs: "its timers wait while others have the CPU, and it is switched more often",
        play: |player, seat| {
            set_slice(ME, *SLICES_NS.start()).map_err(|refused| refused.to_string())?;
            cooperative::play(player, seat, &mut Alone)
        },
        ..PLAIN
    },
    Scheme { name: "tokio", play: tokio::play, ..PLAIN },
    Scheme {
        name: "fifo",
        needs: Needs::Realtime(LOOP_PRIORITY),
        costs: WHOLE,
        play: |player, seat| {
            set_fifo(ME, LOOP_PRIORITY).map_err(|refused| refused.to_string())?;
            cooperative::play(player, seat, &mut Alone)
        },
        ..PLAIN
    },
    Scheme {
        name: "rr",
        needs: Needs::Realtime(LOOP_PRIORITY),
        costs: WHOLE,
        play: |player, seat| {
            set_round_robin(ME, LOOP_PRIORITY).map_err(|refused| refused.to_string())?;
            cooperative::play(player, seat, &mut Alone)
        },
        ..PLAIN
    },
    Scheme {
        name: "fifo-timer",
        needs: Needs::Realtime(split::PRIORITY),
        costs: BESIDE,
        play: split::play,
        ..PLAIN
    },
];

/// Priority of loops that are real-time threads as a whole.
const LOOP_PRIORITY: u8 = 10;

/// Returns the scheme of this name.
pub fn of_name(name: &str) -> Option<&'static Scheme> {
    OURS.iter().chain(PEERS).find(|scheme| scheme.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::clip::Clip;
    use super::super::player::Window;
    use super::*;
    use crate::compete::work::now_ns;
    use antiphon_coop::{Domain, DomainOptions};

    /// Most plays of a scheme until it has decoded something: other programs may want the CPUs.
    const PLAYS: usize = 50;

    /// Each scheme that this machine permits dispatches each timer, none early, and decodes.
    #[test]
    fn each_dispatches_all_timers() {
        let pace = Pace::calibrate();
        for scheme in OURS.iter().chain(PEERS).filter(|scheme| scheme.missing(false).is_none()) {
            let decodes = (0..PLAYS).any(|_| plays(scheme, pace));
            assert!(decodes, "{} decodes nothing", scheme.name);
        }
    }

    /// Plays once, and asserts that each timer is dispatched. Returns whether frames were decoded
    /// and shown.
    fn plays(scheme: &'static Scheme, pace: Pace) -> bool {
        let cpu = antiphon_linux::allowed()[0];
        let domain = Domain::private(DomainOptions::on(cpu)).expect("a domain");
        let begin_ns = now_ns() + 1_000_000;
        let period_ns = 10_000_000;
        let (count_ns, end_ns) = (begin_ns + 10 * period_ns, begin_ns + 30 * period_ns);
        let window = Window { begin_ns, period_ns, count_ns, end_ns };
        let player = Player::new(Clip::new(1, period_ns, 0.2, false), window);
        let seat = Seat {
            pace,
            one_group: false,
            domain: domain.private_name(),
            schedule: Schedule::default(),
            misbehaves: 0.01,
            random: Random(1),
        };
        // On a thread of its own, because its scheduling requests can't be undone.
        let play = std::thread::spawn(move || (scheme.play)(player, seat));
        let seen = play.join().expect("it does not panic").expect("it is permitted");
        assert_eq!((seen.tardiness_ns.len(), seen.first_ns), (20, count_ns), "{}", scheme.name);
        seen.chunks > 0 && seen.shown > 0
    }

    #[test]
    fn names_are_of_one_scheme() {
        for scheme in OURS.iter().chain(PEERS) {
            assert!(of_name(scheme.name).is_some_and(|found| std::ptr::eq(found, scheme)));
        }
        assert!(of_name("none").is_none());
    }
}
