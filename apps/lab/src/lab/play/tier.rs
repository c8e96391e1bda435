//! The tier by which players are on time: the requested one, or the best that is available.

use antiphon_coop::event_loop::Loop;
use antiphon_coop::{
    Alone, Available, BoostOptions, Booster, Domain, DomainOptions, Group, JoinError, Scheduled,
    Split, SplitOptions, Tier, WEIGHT, Worker,
};
use antiphon_player::Screen;
use antiphon_player::apart::{Apart, Aside};
use antiphon_report::failure::Failure;
use antiphon_report::schedule::Schedule;
use clap::ValueEnum;

use crate::compete::tier_stats::TierStats;

/// The tiers that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The best tier that this machine has
    Auto,
    /// A scheduler in the kernel
    T0,
    /// A helper makes a player run first while it is late
    T1,
    /// Frames are shown by a real-time thread
    T1b,
    /// Frames are shown by a thread with a short slice
    T2,
    /// Players hand the CPU to each other
    T3,
    /// No tier: the kernel shares the CPU
    None,
}

impl Choice {
    fn tier(self) -> Option<Tier> {
        match self {
            Self::Auto => None,
            Self::T0 => Some(Tier::Kernel),
            Self::T1 => Some(Tier::Boost),
            Self::T1b => Some(Tier::RealTimeSplit),
            Self::T2 => Some(Tier::Split),
            Self::T3 => Some(Tier::Baton),
            Self::None => Some(Tier::None),
        }
    }

    /// Returns the tier, chosen from those available. Programs of one group must tell each other
    /// how important their work is; T3 supports that, and so does T1 if it may set weights.
    ///
    /// # Errors
    ///
    /// If the tier is not available, with what would help; or if it has no groups.
    pub fn choose(self, one_group: bool, here: &Available) -> Result<Tier, Failure> {
        let Some(asked) = self.tier() else {
            let weighs = here.tier(Tier::Boost).is_ok() && here.weights().is_ok();
            let of_groups = if weighs { Tier::Boost } else { Tier::Baton };
            return Ok(if one_group { of_groups } else { here.best(true) });
        };
        here.tier(asked).map_err(|why| Failure::missing(format!("--tier {asked}: {why}")))?;
        match asked {
            Tier::Boost if one_group => here.weights().map_err(|why| {
                Failure::missing(format!("--tier {asked} of one group: {}", JoinError::Weight(why)))
            })?,
            Tier::Baton => {}
            _ if one_group => {
                return Err(Failure::arguments(format!(
                    "--tier {asked} has no groups of several programs: give --tier t1 or t3, or \
                     --group each without --mixed"
                )));
            }
            _ => {}
        }
        Ok(asked)
    }
}

/// Returns the tier of this name.
pub fn of_name(name: &str) -> Option<Tier> {
    Tier::ALL.into_iter().find(|tier| tier.name() == name)
}

/// The domain of players that hand a CPU to each other: all of this user's that run at the same
/// time.
const DOMAIN: &str = "lab-play";

/// Opens the domain of a CPU.
///
/// # Errors
///
/// One line, if no domain is available.
pub fn domain(cpu: u32, schedule: Schedule) -> Result<Domain, String> {
    let options = DomainOptions { cpu, schedule: schedule.0 };
    Domain::open(DOMAIN, options).map_err(|error| error.to_string())
}

/// The state by which a tier schedules a program.
pub enum Seat {
    /// T1, with the group whose share the program takes part in.
    Boost(Booster, Option<(Domain, Group)>),
    /// T1b and T2. The thread keeps the slice as long as the worker exists.
    Split(Split, #[allow(dead_code, reason = "it is what it does when it is dropped")] Worker),
    /// T3.
    Baton(Domain, Group),
    /// T0.
    Kernel,
    /// No tier.
    Alone,
}

impl Seat {
    /// Takes a seat on this CPU, on which the calling thread runs; as a member of group `group`, or
    /// with a share of its own.
    ///
    /// # Errors
    ///
    /// One line, if this is not permitted.
    pub fn take(
        tier: Tier,
        cpu: u32,
        group: Option<u32>,
        schedule: Schedule,
    ) -> Result<Self, String> {
        let split = |priority| {
            let options = SplitOptions { priority, ..SplitOptions::default() };
            let timers = Split::start(options).map_err(|refused| refused.to_string())?;
            let worker = timers.worker().map_err(|refused| refused.to_string())?;
            Ok(Self::Split(timers, worker))
        };
        match tier {
            Tier::Boost => {
                let options = BoostOptions { options: schedule.0, ..BoostOptions::default() };
                let booster = Booster::start(options).map_err(|refused| refused.to_string())?;
                let group = group.map(Group::Number);
                let group = group.map(|group| Ok::<_, String>((domain(cpu, schedule)?, group)));
                Ok(Self::Boost(booster, group.transpose()?))
            }
            Tier::RealTimeSplit => split(Some(SplitOptions::PRIORITY)),
            Tier::Split => split(None),
            Tier::Baton => {
                let group = group.map_or(Group::Own, Group::Number);
                Ok(Self::Baton(domain(cpu, schedule)?, group))
            }
            Tier::None => Ok(Self::Alone),
            Tier::Kernel => Ok(Self::Kernel),
        }
    }

    /// Makes the loop share the CPU by this tier. Must be called when the loop is about to run: a
    /// program that has joined but does not poll delays others.
    ///
    /// # Errors
    ///
    /// One line, if too many programs share this CPU.
    pub fn cooperate(&self, events: &mut Loop) -> Result<(), String> {
        match self {
            Self::Boost(booster, None) => events.cooperate_by(Box::new(booster.boost(Alone))),
            Self::Boost(booster, Some((domain, group))) => {
                let member = domain.weigh(*group, WEIGHT).map_err(|error| error.to_string())?;
                events.cooperate_by(Box::new(booster.boost(member)));
            }
            Self::Baton(domain, group) => {
                let member = domain.join(*group, WEIGHT).map_err(|error| error.to_string())?;
                events.cooperate_by(Box::new(member));
            }
            Self::Kernel => events.cooperate_by(Box::new(Scheduled::over(Alone))),
            Self::Split(..) | Self::Alone => {}
        }
        Ok(())
    }

    /// Returns the screen on which a player shows its frames: `screen`, called by the thread that
    /// the tier provides for it.
    pub fn screen(&self, screen: Box<dyn Screen + Send>) -> Box<dyn Screen> {
        match self {
            Self::Split(timers, _) => {
                Box::new(Apart::new(screen, Box::new(Timers(timers.clone()))))
            }
            _ => screen,
        }
    }

    /// Returns what the tier has done for the calling thread.
    pub fn done(&self) -> TierStats {
        match self {
            Self::Boost(booster, _) => TierStats::of_booster(booster),
            Self::Split(timers, _) => TierStats::of_split(timers),
            Self::Baton(domain, _) => {
                // SAFETY: `gettid` takes no arguments and can't fail.
                let me = unsafe { libc::gettid() } as u32;
                let status = domain.members().into_iter().find(|member| member.thread == me);
                status.as_ref().map(TierStats::of_member).unwrap_or_default()
            }
            Self::Kernel | Self::Alone => TierStats::default(),
        }
    }
}

/// The thread of a [`Split`].
struct Timers(Split);

impl Aside for Timers {
    fn submit(&self, release_ns: u64, run: Box<dyn FnOnce(u64) + Send>) {
        // The timer is never cancelled.
        let _ = self.0.submit(release_ns, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_coop::available;

    #[test]
    fn one_group_is_a_matter_of_the_baton_or_of_weights() {
        let here = available();
        let may = here.tier(Tier::Boost).is_ok() && here.weights().is_ok();
        let chosen = if may { Tier::Boost } else { Tier::Baton };
        assert_eq!(Choice::Auto.choose(true, &here).ok(), Some(chosen));
        assert_eq!(Choice::T1.choose(true, &here).is_ok(), may);
        assert_eq!(Choice::Auto.choose(false, &here).ok(), Some(here.best(true)));
        assert_eq!(Choice::None.choose(false, &here).ok(), Some(Tier::None));
        let refused = Choice::None.choose(true, &here).map_err(Failure::into_message);
        assert!(refused.is_err_and(|why| why.contains("--tier t1 or t3")));
        let kernel = Choice::T0.choose(false, &here).map_err(Failure::into_message);
        assert_eq!(kernel.is_ok(), here.scope().is_ok());
        assert!(kernel.err().is_none_or(|why| why.contains("T0")));
    }

    #[test]
    fn each_tier_is_found_by_its_name() {
        for tier in Tier::ALL {
            assert_eq!(of_name(tier.name()), Some(tier));
        }
        assert_eq!(of_name("T9"), None);
    }
}
