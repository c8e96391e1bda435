//! A thread that is an event loop: its messages to others at its waits, and its counts.
//!
//! ```text
//!                 its 2nd wait (main), its 16th (another)
//!   a thread ─────────────────────────────────────────────► a loop, with a place in the domain,
//!       ▲                                                      a seat with the helper, or neither
//!       └───────────── the process forks, or executes ─────────────┘
//! ```
//!
//! A loop works between two waits. A wait that must return at once means that there is more work:
//! the loop polls as a member that wants the CPU, with an importance of 0. In any other wait the
//! loop waits for work: until the timeout, which is its next release time, it doesn't want the CPU.

use core::mem::ManuallyDrop;
use std::sync::{Mutex, TryLockError};

use antiphon_coop::{
    Alone, Answer, Ask, BoostOptions, Boosted, Booster, Counts, Demotion, Domain, DomainOptions,
    Group, Halves, JoinError, Membership, Pause, WEIGHT,
};
use antiphon_linux::{Linux, set_timer_slack};
use antiphon_platform::{Clock, Clocks as _, Platform as _};
use antiphon_record::coop::{BATON, BOOST, Count, Page, Refusal, RowWords};

use crate::settings::{self, Settings};

/// From this number of waits on, the process's first thread counts as a loop.
const WAITS_OF_MAIN: u32 = 2;
/// From this number of waits on, any other thread counts as a loop: a thread that resolves a name,
/// or waits for one answer, is not one.
const WAITS_OF_OTHERS: u32 = 16;

/// Returns whether this process has settings, so that the library acts in it.
pub fn enabled() -> bool {
    settings::get().is_some()
}

/// The epoch of this process, which differs from its parent's.
pub fn epoch() -> u32 {
    Linux::epoch()
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}

/// State that the loops of a process share.
struct Common {
    epoch: u32,
    /// `None` if no domain is requested.
    domain: Option<Result<Domain, Refusal>>,
    booster: Option<Result<Booster, Refusal>>,
    page: Option<&'static Page>,
}

/// Created when the first loop is found. Never dropped: a program that closes all its files may
/// have opened others with the numbers of ours meanwhile.
static COMMON: Mutex<Option<ManuallyDrop<Common>>> = Mutex::new(None);

impl Common {
    fn new(settings: &Settings) -> Self {
        let domain = settings.domain.as_ref().map(|(name, cpu)| {
            let options = DomainOptions { cpu: *cpu, schedule: settings.schedule };
            Domain::open(name, options).map_err(|_| Refusal::Domain)
        });
        let options = BoostOptions { options: settings.schedule, ..BoostOptions::default() };
        let booster =
            settings.boost.then(|| Booster::start(options).map_err(|_| Refusal::RealTime));
        Self { epoch: epoch(), domain, booster, page: settings.page() }
    }
}

/// Makes the calling thread a loop if it counts as one at its wait number `waits`.
pub fn become_loop(waits: u32) -> Option<Loop> {
    let main = Linux::thread().0 == std::process::id();
    let settings = settings::get()?;
    if waits < if main { WAITS_OF_MAIN } else { WAITS_OF_OTHERS } {
        return None;
    }
    let mut common = match COMMON.try_lock() {
        Ok(common) => common,
        Err(TryLockError::Poisoned(common)) => common.into_inner(),
        // Another thread holds the lock, or held it when this process was forked, and then never
        // releases it. The next wait will try again.
        Err(TryLockError::WouldBlock) => return None,
    };
    let known = common.take().filter(|common| common.epoch == epoch());
    let known = known.unwrap_or_else(|| ManuallyDrop::new(Common::new(settings)));
    let made = Loop::new(&known);
    *common = Some(known);
    Some(made)
}

/// The means by which a loop is on time.
enum Tier {
    None(Alone),
    Baton(Box<Membership>),
    Boost(Box<Boosted<Alone>>),
    Both(Box<Boosted<Membership>>),
}

impl Tier {
    fn halves(&mut self) -> &mut dyn Halves {
        match self {
            Self::None(alone) => alone,
            Self::Baton(member) => &mut **member,
            Self::Boost(boosted) => &mut **boosted,
            Self::Both(boosted) => &mut **boosted,
        }
    }

    fn bits(&self) -> u64 {
        match self {
            Self::None(_) => 0,
            Self::Baton(_) => BATON,
            Self::Boost(_) => BOOST,
            Self::Both(_) => BATON | BOOST,
        }
    }

    /// The loop's membership in the domain, and the counts of its raises.
    fn parts(&mut self) -> (Option<&mut Membership>, Option<Counts>) {
        match self {
            Self::None(_) => (None, None),
            Self::Baton(member) => (Some(member), None),
            Self::Boost(boosted) => (None, Some(boosted.counts())),
            Self::Both(boosted) => {
                let counts = boosted.counts();
                (Some(boosted.inner()), Some(counts))
            }
        }
    }
}

/// A loop.
pub struct Loop {
    tier: Tier,
    row: Option<&'static RowWords>,
}

/// The record of a wait, created when it begins.
#[derive(Clone, Copy)]
pub struct Waited {
    release_ns: Option<u64>,
    /// Whether the loop has announced that time, as opposed to the end of the timeout.
    told: bool,
}

impl Waited {
    /// The longest wait of the C library in nanoseconds, if shorter than the program's.
    pub fn limit_ns(&self, pause: &Pause) -> Option<i64> {
        match pause.until_ns {
            None => None,
            // The program's own timeout ends then.
            until_ns if until_ns == self.release_ns && !self.told => None,
            Some(until_ns) => i64::try_from(until_ns.saturating_sub(now())).ok(),
        }
    }
}

impl Loop {
    fn new(common: &Common) -> Self {
        let member = match &common.domain {
            Some(Ok(domain)) => Some(domain.join(Group::Own, WEIGHT).map_err(|why| match why {
                JoinError::Cpu(_) => Refusal::Cpu,
                JoinError::KeptFromRunning => Refusal::KeptFromRunning,
                _ => Refusal::Full,
            })),
            Some(Err(refusal)) => Some(Err(*refusal)),
            None => None,
        };
        let refusals = [
            member.as_ref().and_then(|member| member.as_ref().err().copied()),
            common.booster.as_ref().and_then(|booster| booster.as_ref().err().copied()),
        ];
        let booster = common.booster.as_ref().and_then(|booster| booster.as_ref().ok());
        let tier = match (member.and_then(Result::ok), booster) {
            (None, None) => Tier::None(Alone),
            (Some(member), None) => Tier::Baton(Box::new(member)),
            (None, Some(booster)) => Tier::Boost(Box::new(booster.boost(Alone))),
            (Some(member), Some(booster)) => Tier::Both(Box::new(booster.boost(member))),
        };
        if !matches!(tier, Tier::None(_)) {
            // Makes sleeps as exact as the kernel can. If this fails, they are 50 µs less exact.
            let _ = set_timer_slack(1);
        }
        let row = common.page.and_then(|page| {
            page.take(std::process::id(), Linux::thread().0, settings::thread_name())
        });
        if let Some(row) = row {
            row.set_tier(tier.bits(), refusals.into_iter().flatten().next());
        }
        Self { tier, row }
    }

    /// Called before a wait of `timeout_ns` (`None`: endless); `told_ns` is the next release time
    /// that the loop has announced (0: none; in centuries: the loop has no timer).
    pub fn before(&mut self, timeout_ns: Option<u64>, told_ns: u64) -> (Pause, Waited) {
        let timeout_at = timeout_ns.filter(|&ns| ns > 0).map(|ns| now().saturating_add(ns));
        let told_at = (1..=i64::MAX as u64).contains(&told_ns).then_some(told_ns);
        let release_ns = [timeout_at, told_at].into_iter().flatten().min();
        let has_work = timeout_ns == Some(0);
        if let Some(row) = self.row {
            row.add(Count::Waits);
            match timeout_ns {
                Some(0) => {
                    row.add(Count::Zero);
                    if told_at.is_some() {
                        row.add(Count::Told);
                    }
                }
                Some(_) => {}
                None => row.add(Count::Endless),
            }
        }
        let told = release_ns != timeout_at;
        let ask = Ask { release_ns, importance: has_work.then_some(0) };
        (self.tier.halves().before(ask), Waited { release_ns, told })
    }

    /// Called after the wait; `timed_out` says whether its timeout ended it.
    pub fn after(&mut self, pause: Pause, waited: Waited, timed_out: bool) {
        let _: Answer = self.tier.halves().after(pause);
        let Some(row) = self.row else { return };
        if let Some(release_ns) = waited.release_ns
            && let Some(late_ns) = now().checked_sub(release_ns)
            && (timed_out || waited.told)
        {
            row.late(late_ns);
        }
        let (member, boosted) = self.tier.parts();
        if let Some(status) = member.and_then(|member| member.status()) {
            let counts = [Count::Overrun, Count::Slept, Count::Share];
            for (demotion, count) in Demotion::ALL.into_iter().zip(counts) {
                row.set(count, status.demotions[demotion as usize].into());
            }
        }
        if let Some(Counts { raises, refusals, .. }) = boosted {
            row.set(Count::Raises, raises);
            row.set(Count::Refusals, refusals);
        }
    }
}
