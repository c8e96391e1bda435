//! `antiphon_coop_t`, `antiphon_coop_status_t`: a thread's options for a tier, and its state there.

use core::cell::RefCell;
use core::ffi::{CStr, c_char, c_int};
use std::io::{self, ErrorKind::PermissionDenied};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use antiphon_coop::{
    Alone, Answer, Ask, BoostOptions, Boosted, Booster, Cooperate, Demotion, Domain, DomainOptions,
    Group, JoinError, Membership, OpenError, Options, Scheduled, Standing, WEIGHT,
};
use libc::{EACCES, EAGAIN, EBUSY, EINVAL, EIO, ENOSPC, EPERM, EPROTO};

/// `antiphon_coop_t`. Zero fields mean the Rust defaults.
#[repr(C)]
pub struct Part {
    domain: *const c_char,
    cpu: u32,
    group: u32,
    weight: u32,
    priority: u32,
    /// The four times of [`Options`].
    times_ns: [u64; 4],
    kept: u64,
}

/// `antiphon_coop_status_t`.
#[repr(C)]
#[derive(Default)]
pub struct CoopStatus {
    tier: c_int,
    standing: c_int,
    demotions: [u64; Demotion::ALL.len()],
    raises: u64,
    refusals: u64,
    borrowed_ns: u64,
    owed_ns: u64,
    /// The four times of [`Options`].
    times_ns: [u64; 4],
}

/// The tiers of the header.
pub(super) const ALONE: c_int = 1;
pub(super) const BATON: c_int = 2;
pub(super) const BOOST: c_int = 4;
pub(crate) const SPLIT: c_int = 8;
pub(crate) const RT_SPLIT: c_int = 16;
pub(crate) const KERNEL: c_int = 32;

/// Maximum of each time.
pub(crate) const MOST_NS: u64 = 10_000_000_000;

/// Domain of a member that names none: that of `antiphon run --coop`.
const DOMAIN: &str = "default";

/// The caller's options for a tier.
pub(crate) struct Wish {
    domain: String,
    options: DomainOptions,
    group: Group,
    weight: u32,
    priority: u8,
}

impl Wish {
    /// Reads the caller's options; null means the defaults.
    ///
    /// # Errors
    ///
    /// `EINVAL`: a field has an invalid value.
    ///
    /// # Safety
    ///
    /// The name is null, or a string.
    pub(crate) unsafe fn of(part: Option<&Part>) -> Result<Self, c_int> {
        let mut wish = Self {
            domain: DOMAIN.to_owned(),
            options: DomainOptions::default(),
            group: Group::Own,
            weight: WEIGHT,
            priority: BoostOptions::default().priority,
        };
        let Some(part) = part else { return Ok(wish) };
        if part.kept != 0 || part.priority > 98 || part.times_ns.iter().any(|ns| *ns > MOST_NS) {
            return Err(EINVAL);
        }
        if !part.domain.is_null() {
            // SAFETY: the caller's promise.
            let name = unsafe { CStr::from_ptr(part.domain) };
            let name = name.to_str().ok().filter(|name| Domain::is_name(name));
            wish.domain = name.ok_or(EINVAL)?.to_owned();
        }
        let Options { period_ns, min_slice_ns, slack_ns, threshold_ns } =
            &mut wish.options.schedule;
        let all = [period_ns, min_slice_ns, slack_ns, threshold_ns];
        for (option, wanted) in all.into_iter().zip(part.times_ns) {
            *option = if wanted == 0 { *option } else { wanted };
        }
        if let Some(cpu) = part.cpu.checked_sub(1) {
            wish.options.cpu = cpu;
        }
        if part.group != 0 {
            wish.group = Group::Number(part.group);
        }
        if part.weight != 0 {
            wish.weight = part.weight;
        }
        if part.priority != 0 {
            wish.priority = part.priority as u8;
        }
        Ok(wish)
    }

    fn open(&self) -> Result<Domain, c_int> {
        let own = |why: &io::Error| if why.kind() == PermissionDenied { EACCES } else { EIO };
        let system = |why: io::Error| why.raw_os_error().unwrap_or_else(|| own(&why));
        Domain::open(&self.domain, self.options).map_err(|error| match error {
            OpenError::Name => EINVAL,
            OpenError::Directory(why) | OpenError::File(_, why) => system(why),
            OpenError::Version { .. } | OpenError::Namespace => EPROTO,
            OpenError::Busy(_) => EBUSY,
            _ => EIO,
        })
    }

    /// Joins T3. Calls `leave` before, because the thread's former membership ends.
    pub(super) fn join(&self, leave: impl FnOnce()) -> Result<Membership, c_int> {
        let domain = self.open()?;
        leave();
        domain.join(self.group, self.weight).map_err(refusal)
    }

    /// Joins T1; in a group, on top of a membership by weights.
    fn boost(&self, leave: impl FnOnce()) -> Result<Seat, c_int> {
        let options = self.options.schedule;
        let boost = BoostOptions { priority: self.priority, loops: 1, options };
        let booster = Booster::start(boost).map_err(|refused| refused.errno())?;
        let domain = match self.group {
            Group::Own => None,
            Group::Number(_) => Some(self.open()?),
        };
        leave();
        let inner: Box<dyn Cooperate> = match domain {
            None => Box::new(Alone),
            Some(domain) => Box::new(domain.weigh(self.group, self.weight).map_err(refusal)?),
        };
        Ok(Seat::Boost(booster.boost(inner), options))
    }
}

/// Returns the error number of a failure to join.
fn refusal(error: JoinError) -> c_int {
    match error {
        JoinError::Full => ENOSPC,
        JoinError::KeptFromRunning => EAGAIN,
        JoinError::Cpu(_) => EINVAL,
        JoinError::Forked => EPERM,
        JoinError::Weight(refused) if refused.forbidden() => EPERM,
        JoinError::Weight(refused) => refused.errno(),
        _ => EIO,
    }
}

/// The tier of a loop.
#[derive(Default)]
pub(crate) enum Seat {
    #[default]
    Alone,
    Baton(Membership),
    Boost(Boosted<Box<dyn Cooperate>>, Options),
    Kernel(Scheduled<Alone>),
}

impl Seat {
    /// Takes a seat in a tier. `leave` leaves the former seat, and is called late, when most errors
    /// are excluded.
    pub(crate) fn take(tier: c_int, wish: &Wish, leave: impl Fn()) -> Result<Self, c_int> {
        let baton = || wish.join(&leave).map(Self::Baton);
        match tier {
            // Whatever the reason of the failure.
            0 => wish.boost(&leave).or_else(|_| baton()),
            ALONE => {
                leave();
                Ok(Self::Alone)
            }
            BATON => baton(),
            BOOST => wish.boost(&leave),
            KERNEL => {
                leave();
                Ok(Self::Kernel(Scheduled::over(Alone).sharing(wish.group)))
            }
            _ => Err(EINVAL),
        }
    }

    /// Returns the state of the loop, which may be under the scheduler in the kernel whatever its
    /// tier is.
    pub(crate) fn status(&self, is_served: bool) -> CoopStatus {
        let of = |tier| CoopStatus { tier, ..CoopStatus::default() };
        if is_served {
            return of(KERNEL);
        }
        match self {
            Self::Kernel(scheduled) if scheduled.served().is_served() => of(KERNEL),
            Self::Alone | Self::Kernel(_) => of(ALONE),
            Self::Baton(member) => CoopStatus::of_member(member),
            Self::Boost(boosted, options) => {
                let counts = boosted.counts();
                CoopStatus {
                    tier: BOOST,
                    standing: 0,
                    demotions: counts.demotions,
                    raises: counts.raises,
                    refusals: counts.refusals,
                    borrowed_ns: counts.borrowed_ns,
                    owed_ns: counts.owed_ns,
                    times_ns: times(options),
                }
            }
        }
    }
}

impl CoopStatus {
    pub(super) fn of_member(member: &Membership) -> Self {
        let now = member.status();
        let standing = now.map_or(0, |now| match now.standing {
            Standing::Plain => 0,
            Standing::Cooperative => 1,
            Standing::Demoted(Demotion::Overrun) => 2,
            Standing::Demoted(Demotion::Slept) => 3,
            Standing::Demoted(Demotion::Share) => 4,
        });
        let demotions = now.map(|now| now.demotions.map(u64::from)).unwrap_or_default();
        let times_ns = times(&member.options());
        Self { tier: BATON, standing, demotions, times_ns, ..Self::default() }
    }
}

fn times(options: &Options) -> [u64; 4] {
    let Options { period_ns, min_slice_ns, slack_ns, threshold_ns } = *options;
    [period_ns, min_slice_ns, slack_ns, threshold_ns]
}

/// The seat of a loop, which other code reads between polls. All of that is on one thread; a poll
/// calls none of the caller's functions.
pub(crate) struct Seated(pub(crate) Rc<RefCell<Seat>>);

impl Cooperate for Seated {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        match &mut *self.0.borrow_mut() {
            Seat::Alone => Alone.poll(ask, wait),
            Seat::Baton(member) => member.poll(ask, wait),
            Seat::Boost(boosted, _) => boosted.poll(ask, wait),
            Seat::Kernel(scheduled) => scheduled.poll(ask, wait),
        }
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        match &mut *self.0.borrow_mut() {
            Seat::Boost(boosted, _) => boosted.tell(release_ns),
            Seat::Kernel(scheduled) => scheduled.tell(release_ns),
            // The holder of the baton needs no notification.
            Seat::Alone | Seat::Baton(_) => {}
        }
    }

    fn present(&self) -> Option<Answer> {
        match &*self.0.borrow() {
            Seat::Kernel(scheduled) => scheduled.present(),
            Seat::Alone | Seat::Baton(_) | Seat::Boost(..) => None,
        }
    }

    fn rest(&mut self) {
        match &mut *self.0.borrow_mut() {
            Seat::Alone => {}
            Seat::Baton(member) => member.rest(),
            Seat::Boost(boosted, _) => boosted.rest(),
            Seat::Kernel(scheduled) => scheduled.rest(),
        }
    }

    fn reports_to(&mut self, flag: &Arc<AtomicBool>) -> bool {
        match &mut *self.0.borrow_mut() {
            Seat::Alone | Seat::Baton(_) => false,
            Seat::Boost(boosted, _) => boosted.reports_to(flag),
            Seat::Kernel(scheduled) => scheduled.reports_to(flag),
        }
    }
}
