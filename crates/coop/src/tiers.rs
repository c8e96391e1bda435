//! Detects which tiers this machine has, and why the others are missing.

use std::fmt;
use std::path::Path;

use antiphon_linux::schedule::{self, Level, Refused};
use antiphon_runtime::coop::MOST_STEPS;

/// A way to run timers when they are due on a busy CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// T0: a scheduler in the kernel that knows of the timers.
    Kernel,
    /// T1: a helper runs a loop first while its timer is overdue.
    Boost,
    /// T1b: timers run in a real-time thread of their own.
    RealTimeSplit,
    /// T2: timers run in a thread of their own that has a short slice.
    Split,
    /// T3: programs hand the CPU to each other.
    Baton,
    /// No tier: the kernel shares the CPU, and timers wait.
    None,
}

impl Tier {
    /// All tiers, the most exact first.
    pub const ALL: [Self; 6] =
        [Self::Kernel, Self::Boost, Self::RealTimeSplit, Self::Split, Self::Baton, Self::None];

    /// Returns the name of the tier in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "T0",
            Self::Boost => "T1",
            Self::RealTimeSplit => "T1b",
            Self::Split => "T2",
            Self::Baton => "T3",
            Self::None => "none",
        }
    }

    /// Returns a short description.
    #[must_use]
    pub const fn what(self) -> &'static str {
        match self {
            Self::Kernel => "a scheduler in the kernel (sched_ext)",
            Self::Boost => "boost: run first while late, by a SCHED_FIFO helper",
            Self::RealTimeSplit => "split: timers in a SCHED_FIFO thread",
            Self::Split => "split: timers in a thread with a short slice",
            Self::Baton => "baton: programs hand the CPU to each other",
            Self::None => "none: as the kernel shares the CPU out",
        }
    }

    /// Returns whether timers run in parallel with the work of their program, and must be isolated
    /// from it.
    #[must_use]
    pub const fn isolated(self) -> bool {
        matches!(self, Self::RealTimeSplit | Self::Split)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why a tier is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// The kernel has no `sched_ext`.
    NoExtension,
    /// The kernel has it, but this release of the project has no scheduler for it.
    Later,
    /// The kernel refuses a right or call that the tier needs.
    Refused(Refused),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoExtension => {
                f.write_str("no /sys/kernel/sched_ext: a kernel without sched_ext")
            }
            Self::Later => f.write_str(
                "this kernel has sched_ext; it is used when a later release provides it",
            ),
            Self::Refused(refused) => write!(f, "{refused}"),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The tiers of this machine, as [`available`] returns them. `Display` prints a table.
#[derive(Clone, Debug)]
pub struct Available {
    extension: Unavailable,
    real_time: Result<(), Refused>,
    slices: Result<(), Refused>,
    weight: Result<(), Refused>,
    level: Level,
    competitors: Competitors,
}

/// The control groups of a program's competitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Competitors {
    /// In the group of this program, like the processes that it starts.
    Same,
    /// In other groups: of another session, if sessions are groups, or of another control group.
    Elsewhere,
    /// Unknown. Treated as another group if the program's group is [its own](Level::is_own).
    Unknown,
}

/// Tries out which tiers this machine has, on a thread that ends afterwards. Blocks until then.
#[must_use]
pub fn available() -> Available {
    let permitted = schedule::permitted(MOST_STEPS);
    let extension = if Path::new("/sys/kernel/sched_ext").exists() {
        Unavailable::Later
    } else {
        Unavailable::NoExtension
    };
    let level = schedule::level();
    let competitors = if level.is_own() { Competitors::Elsewhere } else { Competitors::Unknown };
    Available {
        extension,
        competitors,
        real_time: permitted.real_time,
        slices: permitted.slices,
        weight: permitted.weight,
        level,
    }
}

impl Available {
    /// Returns the tiers for a program that knows its competitors. Without this call, they are
    /// assumed to be in other groups if this process was alone in its group when [`available`] was
    /// called.
    #[must_use]
    pub fn against(self, competitors: Competitors) -> Self {
        match competitors {
            Competitors::Unknown => self,
            known => Self { competitors: known, ..self },
        }
    }

    /// Returns whether `tier` is available.
    ///
    /// # Errors
    ///
    /// Why it is not available.
    pub fn tier(&self, tier: Tier) -> Result<(), Unavailable> {
        match tier {
            Tier::Kernel => Err(self.extension),
            Tier::Boost | Tier::RealTimeSplit => self.real_time.map_err(Unavailable::Refused),
            Tier::Split => self.slices.map_err(Unavailable::Refused),
            Tier::Baton | Tier::None => Ok(()),
        }
    }

    /// Returns the most exact available tier: among the tiers whose timers never run in parallel
    /// with the work of their program; or among all, if timers may be [isolated](Tier::isolated)
    /// from it. T2 does not count if the [competitors](Self::against) are in other groups, because
    /// a short slice then has no effect.
    #[must_use]
    pub fn best(&self, isolated: bool) -> Tier {
        let elsewhere = self.competitors == Competitors::Elsewhere;
        let orders = |tier: Tier| tier != Tier::Split || !elsewhere;
        let fits = |tier: &Tier| {
            self.tier(*tier).is_ok() && (isolated || !tier.isolated()) && orders(*tier)
        };
        Tier::ALL.into_iter().find(fits).unwrap_or(Tier::None)
    }

    /// Returns whether loops of one group may share its CPU by weights
    /// ([`Domain::weigh`](super::Domain::weigh)).
    ///
    /// # Errors
    ///
    /// Why it is not available.
    pub fn weights(&self) -> Result<(), Refused> {
        self.weight
    }

    /// Returns the group in which this process competes for the CPU.
    #[must_use]
    pub const fn level(&self) -> &Level {
        &self.level
    }

    /// Returns why timers are less exact here than if all threads competed one by one; `None` if
    /// they are not.
    #[must_use]
    pub const fn weaker(&self) -> Option<&'static str> {
        match self.level {
            Level::Flat | Level::Unknown => None,
            Level::Autogroup(_) | Level::Group(_) => Some(
                "T2 and T3 order the threads of one group; against programs in other groups a \
                 group that has had its share waits as a whole, whatever is due in it",
            ),
        }
    }
}

impl fmt::Display for Available {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tier in Tier::ALL {
            write!(f, "{tier:<5} {:<49} ", tier.what())?;
            match self.tier(tier) {
                Ok(()) => writeln!(f, "yes")?,
                Err(why) => writeln!(f, "no: {why}")?,
            }
        }
        writeln!(f, "This process is {}.", self.level)?;
        if let Some(weaker) = self.weaker() {
            writeln!(f, "{weaker}.")?;
        }
        if self.competitors == Competitors::Elsewhere {
            writeln!(f, "Those that it competes with are in other groups: T2 is of no use.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(real_time: bool, slices: bool, level: Level) -> Available {
        let as_told = |there| if there { Ok(()) } else { Err(Refused::FAILED) };
        Available {
            extension: Unavailable::NoExtension,
            real_time: as_told(real_time),
            slices: as_told(slices),
            weight: as_told(real_time),
            level,
            competitors: Competitors::Unknown,
        }
    }

    #[test]
    fn the_best_is_what_the_system_allows_and_the_program_can_bear() {
        for (real_time, slices, joined, apart) in [
            (true, true, Tier::Boost, Tier::Boost),
            (false, true, Tier::Baton, Tier::Split),
            (false, false, Tier::Baton, Tier::Baton),
        ] {
            let here = with(real_time, slices, Level::Flat);
            assert_eq!((here.best(false), here.best(true)), (joined, apart));
        }
    }

    #[test]
    fn a_short_slice_is_not_the_best_where_it_orders_nobody() {
        let here = || with(false, true, Level::Group("/players".into()));
        assert_eq!(here().best(true), Tier::Split);
        let elsewhere = here().against(Competitors::Elsewhere);
        assert_eq!(elsewhere.best(true), Tier::Baton);
        assert!(elsewhere.tier(Tier::Split).is_ok(), "who asks for it has it");
        assert!(elsewhere.to_string().contains("T2 is of no use"));
        // A caller that knows better than the detection overrides it.
        let known = elsewhere.clone().against(Competitors::Same);
        assert_eq!(known.best(true), Tier::Split);
        assert_eq!(elsewhere.against(Competitors::Unknown).best(true), Tier::Baton);
    }

    #[test]
    fn a_report_has_each_tier_and_says_what_is_missing() {
        let told = with(false, true, Level::Autogroup(5)).to_string();
        for tier in Tier::ALL {
            assert!(told.lines().any(|line| line.starts_with(tier.name())), "{told}");
        }
        assert!(told.contains("autogroup 5") && told.contains("T2 and T3"), "{told}");
        assert!(with(true, true, Level::Flat).weaker().is_none());
    }

    #[test]
    fn what_there_is_here_does_not_change_by_asking() {
        let here = available();
        assert_eq!(available().best(true), here.best(true));
        assert!(here.tier(Tier::Kernel).is_err() && here.tier(Tier::None).is_ok());
    }
}
