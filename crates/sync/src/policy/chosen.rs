//! Policies that are chosen at run time, for each lock.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–1 | nearness | 0 [`Numa`], 1 [`None`], 2 [`Distance`]; 3 is as 1 |
//! | 2 | `PRIORITY` | [`Priority`] first |
//! | 3 | `BOOST` | [`Boost`] beside it |
//! | 4 | `SCL` | [`Scl`] first; not with those two |
//! | 5 | `WAKE_UP` | [`WakeUp`] beside it |
//!
//! All bits zero is [`Numa`], the policy of a new lock.

use core::cmp::Ordering;
use core::fmt;

use antiphon_platform::{Platform, RANK};

use super::{Boost, Distance, None, Numa, Policy, Priority, Scl, Waiting, WakeUp, priority};

/// A policy of this crate, chosen for a lock at run time.
///
/// It is the default of locks. It costs a branch where a waiter is sorted, and nothing where no
/// thread waits. To choose among their own policies, users write a type like this one, with
/// [`of`](Policy::of) and [`byte`](Policy::byte).
///
/// ```
/// use antiphon_sync::policy::Chosen;
///
/// let policy = Chosen::named("priority+distance").unwrap();
/// assert_eq!(policy, Chosen::DISTANCE.with_priority());
/// assert_eq!(policy.to_string(), "priority+distance");
/// assert!(Chosen::named("prioritize").unwrap_err().to_string().contains("priority"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chosen(u8);

const NEARNESS: u8 = 3;
const PRIORITY: u8 = 1 << 2;
const BOOST: u8 = 1 << 3;
const SCL: u8 = 1 << 4;
const WAKE_UP: u8 = 1 << 5;

/// The error of [`Chosen::named`]: no policy has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such policy; there are ")?;
        for (nth, name) in Chosen::NAMES.iter().enumerate() {
            write!(f, "{}{name}", if nth == 0 { "" } else { ", " })?;
        }
        f.write_str(", and several joined by +, but not scl with priority or boost")
    }
}

impl core::error::Error for Unknown {}

/// Which waiters stand together, where no other flag orders them.
enum Nearness {
    Numa,
    None,
    Distance,
}

impl Chosen {
    /// [`Numa`], the policy of a new lock.
    pub const NUMA: Self = Self(0);
    /// [`None`].
    pub const NONE: Self = Self(1);
    /// [`Distance`].
    pub const DISTANCE: Self = Self(2);

    /// The names that [`named`](Self::named) accepts.
    pub const NAMES: [&str; 7] =
        ["numa", "none", "distance", "priority", "boost", "scl", "wake-up"];

    /// Returns this policy, but with the most urgent waiter first:
    /// [`Then`](super::Then)`<`[`Priority`]`, …>`.
    #[must_use]
    pub const fn with_priority(self) -> Self {
        Self(self.0 & !SCL | PRIORITY)
    }

    /// Returns this policy, and waiters lend the owner their rank: [`Boost`]. Has an effect only in
    /// a lock that knows its owner.
    #[must_use]
    pub const fn with_boost(self) -> Self {
        Self(self.0 & !SCL | BOOST)
    }

    /// Returns this policy, but the thread that has held locks least goes first: [`Scl`], in place
    /// of priorities. Has an effect only in a lock that knows its owner.
    #[must_use]
    pub const fn with_scl(self) -> Self {
        Self(self.0 & !(PRIORITY | BOOST) | SCL)
    }

    /// Returns this policy, and the next waiter is woken in time: [`WakeUp`].
    #[must_use]
    pub const fn with_wake_up(self) -> Self {
        Self(self.0 | WAKE_UP)
    }

    /// Returns the policy of this name: one of [`NAMES`](Self::NAMES), or several joined by `+`, in
    /// any order. `priority` alone also sorts by sockets, as `priority+numa` does.
    ///
    /// # Errors
    ///
    /// [`Unknown`], whose text lists the names, for an unknown name and for two names that
    /// contradict each other, such as `none+distance` or `priority+scl`.
    pub fn named(name: &str) -> Result<Self, Unknown> {
        let mut near = Option::None;
        let mut chosen = Self(0);
        for part in name.split('+') {
            let nearness = match part {
                "numa" => Self::NUMA,
                "none" => Self::NONE,
                "distance" => Self::DISTANCE,
                "priority" | "boost" | "scl" | "wake-up" => {
                    chosen.0 |= match part {
                        "priority" => PRIORITY,
                        "boost" => BOOST,
                        "scl" => SCL,
                        _ => WAKE_UP,
                    };
                    continue;
                }
                _ => return Err(Unknown),
            };
            if near.replace(nearness).is_some() {
                return Err(Unknown);
            }
        }
        if chosen.has(SCL) && chosen.has(PRIORITY | BOOST) {
            return Err(Unknown);
        }
        Ok(Self(chosen.0 | near.unwrap_or_default().0))
    }

    fn nearness(self) -> Nearness {
        match self.0 & NEARNESS {
            0 => Nearness::Numa,
            2 => Nearness::Distance,
            _ => Nearness::None,
        }
    }

    fn has_priority(self) -> bool {
        self.has(PRIORITY)
    }

    fn has(self, flags: u8) -> bool {
        self.0 & flags != 0
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let near = match self.nearness() {
            Nearness::Numa => "numa",
            Nearness::None => "none",
            Nearness::Distance => "distance",
        };
        let flags =
            [(PRIORITY, "priority+"), (BOOST, "boost+"), (SCL, "scl+"), (WAKE_UP, "wake-up+")];
        for (flag, name) in flags {
            f.write_str(if self.has(flag) { name } else { "" })?;
        }
        f.write_str(near)
    }
}

/// Evaluates an expression with the policy that the nearness stands for.
macro_rules! by_nearness {
    ($chosen:expr, $policy:ident => $answer:expr) => {
        match $chosen.nearness() {
            Nearness::Numa => {
                let $policy = Numa;
                $answer
            }
            Nearness::None => {
                let $policy = None;
                $answer
            }
            Nearness::Distance => {
                let $policy = Distance;
                $answer
            }
        }
    };
}

impl Policy for Chosen {
    fn of(byte: impl FnOnce() -> u8) -> Self {
        Self(byte())
    }

    fn byte(self) -> u8 {
        self.0
    }

    fn shuffles<P: Platform>(self) -> bool {
        self.has(PRIORITY | SCL) || by_nearness!(self, near => near.shuffles::<P>())
    }

    /// Always true, because another policy may be chosen while the caller waits.
    fn notes<P: Platform>(self) -> bool {
        true
    }

    /// Notes all cheap values, whatever the policy. So for a policy that is chosen later, waiters
    /// have noted everything except the scheduler's answer.
    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        if self.has(SCL) {
            Scl.on_wait(me);
        } else {
            let asks = self.has(PRIORITY | BOOST);
            priority::note(me, || if asks { P::rank() } else { RANK });
        }
        if P::numa() {
            Numa.on_wait(me);
        }
        if P::tiered() {
            Distance.on_wait(me);
        }
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        match self.nearness() {
            // Without a nearness, all waiters order the others by rank, in the same way.
            Nearness::None => self.has(PRIORITY | SCL),
            Nearness::Numa => Numa.groups(shuffler, candidate),
            Nearness::Distance => Distance.groups(shuffler, candidate),
        }
    }

    fn by_socket<P: Platform>(self) -> bool {
        self == Self::NUMA && P::numa()
    }

    fn sorts(self) -> bool {
        self.has(PRIORITY | SCL) || by_nearness!(self, near => near.sorts())
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        let ranked = match (self.has_priority(), self.has(SCL)) {
            (true, _) => Priority.compare(shuffler, one, other),
            (_, true) => Scl.compare(shuffler, one, other),
            _ => Ordering::Equal,
        };
        ranked.then_with(|| by_nearness!(self, near => near.compare(shuffler, one, other)))
    }

    fn strict(self) -> bool {
        self.has(PRIORITY | SCL)
    }

    fn bypass(self) -> u16 {
        match (self.has_priority(), self.has(SCL)) {
            (true, _) => Priority.bypass(),
            (_, true) => Scl.bypass(),
            _ => u16::MAX,
        }
    }

    fn wakes(self) -> bool {
        self.has(WAKE_UP) && WakeUp.wakes()
    }

    fn lends(self) -> bool {
        self.has(BOOST) && Boost.lends()
    }

    fn measures(self) -> bool {
        self.has(SCL) && Scl.measures()
    }
}
