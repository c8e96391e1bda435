//! Lock policies by call site, from a file that the environment names ([`antiphon_record::sites`]).
//!
//! A lock gets the policy of a site when it is initialised there, and when a thread is about to
//! wait for it there; the latest site decides. A lock without waiters needs no policy.
//!
//! The file finds the rule of a site by the mapped file that the site is in, for which
//! `/proc/self/maps` is read. The result is cached in a table of this process, by the address of
//! the site; a collision replaces the older entry, which is then looked up again.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64};

use antiphon_linux::Linux;
use antiphon_record::door::Which;
use antiphon_record::sites::{FILE_BYTES, File as Layout, RULES, Rules, VARIABLE};
use antiphon_sync::lock::{ShflMutex, ShflRwLock};
use antiphon_sync::policy::{Chosen, Policy as _};

use crate::{door, maps, mode};

/// The mapped file of rules; null if there is none.
static BASE: AtomicPtr<Layout> = AtomicPtr::new(null_mut());

/// The policies of the rules, parsed; written before `BASE`.
static POLICIES: [AtomicU8; RULES] = [const { AtomicU8::new(0) }; RULES];

/// Cached rules: the address of a site in the high bits, and 1 + its rule in the low ones, 0 for no
/// rule.
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

/// Maps the file of rules, if the environment names one. Called at load.
pub(crate) fn start() {
    // SAFETY: the C library's word, which is always readable.
    let path = mode::variable(unsafe { mode::environ }, VARIABLE.as_bytes());
    let Some(file) = path.and_then(|path| door::open(path, Which::Sites)) else { return };
    if file.length() < FILE_BYTES as u64 {
        return;
    }
    let Some(base) = file.map(FILE_BYTES) else { return };
    let base = base.cast::<Layout>();
    // SAFETY: mapped above at the file's length, and never unmapped; the rules were written before
    // this process was started.
    let Some(rules) = (unsafe { Rules::at(base) }) else { return };
    for (rule, parsed) in POLICIES.iter().enumerate().take(rules.count()) {
        // The command writes no unknown policies.
        let Ok(policy) = Chosen::named(rules.policy(rule)) else { return };
        // Relaxed: published by the release store of `BASE` below.
        parsed.store(policy.byte(), Relaxed);
    }
    // Release: pairs with the acquire load in `choose`.
    BASE.store(base, Release);
}

/// Returns whether there are rules.
#[inline]
pub(crate) fn is_on() -> bool {
    // Relaxed: code that uses the rules loads `BASE` again.
    !BASE.load(Relaxed).is_null()
}

/// Sets the lock's policy to that of the call site, if there is a rule for it.
#[inline]
pub(crate) fn settle(lock: &impl Choosable, site: usize) {
    if is_on() {
        choose(lock, site);
    }
}

#[cold]
fn choose(lock: &impl Choosable, site: usize) {
    // Acquire: pairs with the release store in `start`.
    let base = BASE.load(Acquire);
    // SAFETY: `start` has mapped and checked the memory at the stored address.
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
    // Relaxed: a single word, which has the same meaning whichever thread wrote it.
    slot.store((site as u64) << RULE_BITS | known, Relaxed);
    found
}
