//! Policies by call site: what a file that the environment names says of them
//! ([`antiphon_record::sites`]).
//!
//! A lock gets the policy of a site when it is initialised there, and when a thread has to wait for
//! it there, before it does; of several sites, that of the latest. A lock without waiters needs no
//! policy.
//!
//! Whose rule a site is stands in the file, by the mapped file that the site is in: a look at
//! `/proc/self/maps`. What came of it is kept in a table of this process, by the address of the
//! site; if that is full, an older one is forgotten and found again.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64};

use antiphon_linux::Linux;
use antiphon_record::door::Which;
use antiphon_record::sites::{FILE_BYTES, File as Layout, RULES, Rules, VARIABLE};
use antiphon_sync::lock::{ShflMutex, ShflRwLock};
use antiphon_sync::policy::{Chosen, Policy as _};

use crate::{door, maps, mode};

/// The mapped file; null is none.
static BASE: AtomicPtr<Layout> = AtomicPtr::new(null_mut());

/// The policies of the rules, parsed; written before `BASE`.
static POLICIES: [AtomicU8; RULES] = [const { AtomicU8::new(0) }; RULES];

/// Addresses of sites, above 1 + their rule; 0 in its place is none.
static KNOWN: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
const SLOTS: usize = 1 << 10;
const RULE_BITS: u32 = 16;

/// A lock whose policy may be chosen.
pub(crate) trait Choosable {
    fn policy(&self) -> Chosen;
    fn set_policy(&self, policy: Chosen);
}

macro_rules! choosable {
    ($($lock:ty)*) => {$(
        impl Choosable for $lock {
            fn policy(&self) -> Chosen {
                self.policy()
            }

            fn set_policy(&self, policy: Chosen) {
                self.set_policy(policy);
            }
        }
    )*};
}

choosable! { ShflMutex<Linux> ShflRwLock<Linux> }

/// Maps the file that the environment names, if it does. Called at load.
pub(crate) fn start() {
    // SAFETY: the C library's word, which is always readable.
    let path = mode::variable(unsafe { mode::environ }, VARIABLE.as_bytes());
    let Some(file) = path.and_then(|path| door::open(path, Which::Sites)) else { return };
    if file.length() < FILE_BYTES as u64 {
        return;
    }
    let Some(base) = file.map(FILE_BYTES) else { return };
    let base = base.cast::<Layout>();
    // SAFETY: mapped above, as long as the file is, and never unmapped; the writer of the rules has
    // written them before we were started.
    let Some(rules) = (unsafe { Rules::at(base) }) else { return };
    for (rule, parsed) in POLICIES.iter().enumerate().take(rules.count()) {
        // The command writes no others.
        let Ok(policy) = Chosen::named(rules.policy(rule)) else { return };
        // Relaxed: released below.
        parsed.store(policy.byte(), Relaxed);
    }
    // Release: pairs with the load in `choose`.
    BASE.store(base, Release);
}

/// Whether there are rules.
#[inline]
pub(crate) fn is_on() -> bool {
    // Relaxed: a caller that acts on it looks again.
    !BASE.load(Relaxed).is_null()
}

/// Gives the lock the policy of the site that the caller called from, if it has one.
#[inline]
pub(crate) fn settle(lock: &impl Choosable, site: usize) {
    if is_on() {
        choose(lock, site);
    }
}

#[cold]
fn choose(lock: &impl Choosable, site: usize) {
    // Acquire: pairs with the store in `start`.
    let base = BASE.load(Acquire);
    // SAFETY: the address that is stored there was mapped and looked at by `start`.
    let Some(rules) = (unsafe { Rules::at(base) }) else { return };
    let Some(rule) = rule(rules, site) else { return };
    let Some(parsed) = POLICIES.get(rule) else { return };
    // Relaxed: acquired with `BASE`.
    let policy = Chosen::of(|| parsed.load(Relaxed));
    if lock.policy() != policy {
        lock.set_policy(policy);
    }
    rules.applied(rule);
}

/// The rule for a site.
fn rule(rules: Rules, site: usize) -> Option<usize> {
    let slot = &KNOWN[(site ^ site >> 10) & (SLOTS - 1)];
    let seen = slot.load(Relaxed);
    if seen >> RULE_BITS == site as u64 {
        return (seen as usize & ((1 << RULE_BITS) - 1)).checked_sub(1);
    }
    let mut found = None;
    // Looks up the last byte of the call instruction: the return address may already belong to the
    // next function.
    maps::locate(site - 1, |place| found = rules.find(place.path, place.offset));
    let known = found.map_or(0, |rule| rule as u64 + 1);
    // Relaxed: one word, which means the same whichever thread wrote it.
    slot.store((site as u64) << RULE_BITS | known, Relaxed);
    found
}
