//! Detects which tiers this machine has, and why the others are missing.

use std::fmt;
use std::io;
use std::path::Path;

use antiphon_hints::{Hints, SOCKET};
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
    /// The kernel has it, but no scheduler of this project runs.
    NotRunning,
    /// The scheduler has refused this process, or does not answer, or is of another version.
    NotServed,
    /// The kernel refuses a right or call that the tier needs.
    Refused(Refused),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoExtension => {
                f.write_str("no /sys/kernel/sched_ext: a kernel without sched_ext")
            }
            Self::NotRunning => {
                write!(f, "nothing listens at {SOCKET}: start it by `antiphon sched` as root")
            }
            Self::NotServed => write!(
                f,
                "the scheduler at {SOCKET} does not serve this process: this user has too many, \
                 or its version is another one"
            ),
            Self::Refused(refused) => write!(f, "{refused}"),
        }
    }
}

impl std::error::Error for Unavailable {}

/// The tiers of this machine, as [`available`] returns them. `Display` prints a table.
#[derive(Clone, Debug)]
pub struct Available {
    kernel: Result<Scope, Unavailable>,
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

/// The threads that the scheduler in the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that ask for it, when no other thread wants the CPU.
    Asking,
    /// All of the machine, but those of real-time policies.
    All,
}

/// Tries out which tiers this machine has, on a thread that ends afterwards. Blocks until then.
#[must_use]
pub fn available() -> Available {
    let permitted = schedule::permitted(MOST_STEPS);
    let kernel = if Path::new("/sys/kernel/sched_ext").exists() {
        by_kernel(Hints::connect(SOCKET))
    } else {
        Err(Unavailable::NoExtension)
    };
    let level = schedule::level();
    let competitors = if level.is_own() { Competitors::Elsewhere } else { Competitors::Unknown };
    Available {
        kernel,
        competitors,
        real_time: permitted.real_time,
        slices: permitted.slices,
        weight: permitted.weight,
        level,
    }
}

fn by_kernel(connected: io::Result<Hints>) -> Result<Scope, Unavailable> {
    match connected {
        Ok(hints) if hints.is_whole() => Ok(Scope::All),
        Ok(_) => Ok(Scope::Asking),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ECONNREFUSED) => Err(Unavailable::NotRunning),
            _ => Err(Unavailable::NotServed),
        },
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
            Tier::Kernel => self.kernel.map(|_| ()),
            Tier::Boost | Tier::RealTimeSplit => self.real_time.map_err(Unavailable::Refused),
            Tier::Split => self.slices.map_err(Unavailable::Refused),
            Tier::Baton | Tier::None => Ok(()),
        }
    }

    /// Returns the most exact available tier: among the tiers whose timers never run in parallel
    /// with the work of their program; or among all, if timers may be [isolated](Tier::isolated)
    /// from it. T0 does not count if the scheduler runs only threads that [ask](Scope::Asking) for
    /// it, because all others then come first. T2 does not count if the
    /// [competitors](Self::against) are in other groups, because a short slice then has no effect.
    #[must_use]
    pub fn best(&self, isolated: bool) -> Tier {
        let elsewhere = self.competitors == Competitors::Elsewhere;
        let orders = |tier: Tier| match tier {
            Tier::Kernel => self.kernel == Ok(Scope::All),
            Tier::Split => !elsewhere,
            _ => true,
        };
        let fits = |tier: &Tier| {
            self.tier(*tier).is_ok() && (isolated || !tier.isolated()) && orders(*tier)
        };
        Tier::ALL.into_iter().find(fits).unwrap_or(Tier::None)
    }

    /// Returns which threads the scheduler in the kernel runs.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn scope(&self) -> Result<Scope, Unavailable> {
        self.kernel
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
                Ok(()) if tier == Tier::Kernel && self.kernel == Ok(Scope::Asking) => {
                    writeln!(f, "for threads that ask for it, when no other wants the CPU")?;
                }
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

    fn under(kernel: Result<Scope, Unavailable>) -> Available {
        Available { kernel, ..with(true, true, Level::Flat) }
    }

    fn with(real_time: bool, slices: bool, level: Level) -> Available {
        let as_told = |there| if there { Ok(()) } else { Err(Refused::FAILED) };
        Available {
            kernel: Err(Unavailable::NoExtension),
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
    fn a_scheduler_in_the_kernel_is_the_best_if_it_runs_all_threads() {
        let whole = under(Ok(Scope::All));
        assert_eq!((whole.best(false), whole.best(true)), (Tier::Kernel, Tier::Kernel));
        let asking = under(Ok(Scope::Asking));
        assert_eq!((asking.best(false), asking.tier(Tier::Kernel)), (Tier::Boost, Ok(())));
        assert!(asking.to_string().contains("that ask for it"), "{asking}");
        for why in [Unavailable::NoExtension, Unavailable::NotRunning, Unavailable::NotServed] {
            let none = under(Err(why));
            assert_eq!((none.best(false), none.tier(Tier::Kernel)), (Tier::Boost, Err(why)));
            assert!(none.to_string().contains(&format!("no: {why}")), "{none}");
        }
        let error = |code| by_kernel(Err(io::Error::from_raw_os_error(code)));
        assert_eq!(error(libc::ECONNREFUSED), Err(Unavailable::NotRunning));
        assert_eq!(error(libc::EAGAIN), Err(Unavailable::NotServed));
    }

    #[test]
    fn what_there_is_here_does_not_change_by_asking() {
        let here = available();
        assert_eq!(available().best(true), here.best(true));
        assert_eq!(here.tier(Tier::Kernel).is_ok(), here.scope().is_ok());
        assert!(here.tier(Tier::None).is_ok());
    }
}
