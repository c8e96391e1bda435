//! The ShflLock spinlock: 4 bytes, for short critical sections of threads that are running.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0 | `locked` | 0 free, 1 held |
//! | 1 | `policy` | the policy, where it is chosen at run time ([`Chosen`]); else zero |
//! | 2–3 | `tail` | index of the last waiter, 0 if no thread waits |
//!
//! An arriving waiter takes a free lock only if no other waits; there is no separate "no stealing"
//! byte that could be left behind. The head of the queue spins on `locked`, all others on their own
//! node. The head that has taken the lock makes the next waiter the head, before its critical
//! section. So unlock is one plain store.
//!
//! Where waiters are sorted by socket they stand in cohorts, as those of the mutex do (`cohort.rs`,
//! COHORT-1 to 4): the head makes a waiter of its own socket the next head, up to [`Form::COHORT`]
//! times in a row. The first arriving waiter joins the queue alone; cohorts begin behind it. A
//! shuffler serves other policies.
//!
//! Where the machine is crowded, a queue of spinners would wait for a waiter that does not run;
//! then an arriving waiter does not join but barges, as a test-and-test-and-set lock does.
//!
//! The tail is an index without an epoch: in memory that two processes share, use another lock.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Hint, Platform, Probe, Traced, TracedKind, Word};

use super::cohort::Cohorts;
use super::queue::{Place, Tail, TailIndex};
use super::sort::Sorted;
use super::status::Offer;
use super::{Form, Standard, cohort, shuffle, status};
use crate::policy::{Chosen, Policy};
use crate::section;
use core::marker::PhantomData;

/// A NUMA-aware spinlock, 4 bytes.
///
/// For critical sections of a microsecond or less, and no more threads than CPUs: waiters burn
/// their CPU. For all other uses take [`ShflMutex`](super::ShflMutex).
#[repr(C, align(4))]
pub struct ShflSpin<P: Platform, Q: Policy = Chosen, F: Form = Standard> {
    locked: P::U8,
    policy: P::U8,
    tail: TailIndex<P>,
    marker: PhantomData<(Q, F)>,
}

impl<P: Platform, Q: Policy, F: Form> ShflSpin<P, Q, F> {
    /// A free lock.
    pub const NEW: Self = Self {
        locked: P::U8::ZERO,
        policy: P::U8::ZERO,
        tail: TailIndex::NEW,
        marker: PhantomData,
    };

    /// Acquires the lock; spins until the caller has it.
    #[inline]
    pub fn lock(&self) {
        // Before the exchange, which hides the load.
        if P::heeds_sections() {
            return self.lock_told();
        }
        if !self.lock_uncontended() {
            self.lock_contended();
        }
    }

    #[inline(always)]
    fn lock_uncontended(&self) -> bool {
        self.tail.is_empty() && self.take()
    }

    /// [`lock`](Self::lock), told to the platform.
    #[cold]
    #[inline(never)]
    fn lock_told(&self) {
        section::acquire::<P>(|| self.lock_uncontended(), || self.lock_contended());
    }

    /// Acquires the lock if it is free, ahead of any waiters.
    #[inline]
    pub fn try_lock(&self) -> bool {
        section::begin_if::<P>(self.take())
    }

    #[inline]
    fn take(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Returns whether the lock is held; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) != 0
    }

    /// Sets the policy, as [`ShflMutex::set_policy`](super::ShflMutex::set_policy) does.
    pub fn set_policy(&self, policy: Q) {
        // Relaxed: it decides about order only, and may be seen at any time.
        self.policy.store(policy.byte(), Relaxed);
    }

    /// Returns the policy that waiters are sorted by; may be stale at once.
    pub fn policy(&self) -> Q {
        // Relaxed: the policy decides about order only.
        Q::of(|| self.policy.load(Relaxed))
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Release: pairs with the acquire of the next owner.
        self.locked.store(0, Release);
        section::is_over::<P>();
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self) {
        let traced = Traced::new(self, TracedKind::Spin);
        P::probe(Probe::WaitStart(traced));
        let mut spinner = Spinner::new();
        loop {
            let Some(me) = self.place() else {
                self.barge(&mut spinner);
                break;
            };
            if self.lock_queued(me, &mut spinner) {
                break;
            }
        }
        drop(spinner);
        P::probe(Probe::Acquired(traced));
    }

    /// Returns a place in the queue, unless the machine is crowded or no node fits.
    fn place(&self) -> Option<Place<P>> {
        if P::crowded() {
            return None;
        }
        let me = Place::take(self.policy())?;
        if TailIndex::<P>::fits(me.id) {
            return Some(me);
        }
        me.give();
        None
    }

    fn barge(&self, spinner: &mut Spinner<P>) {
        while !self.take() {
            spinner.wait_while(&self.locked, |locked| locked != 0);
        }
    }

    /// Waits in the queue; returns `false` if the process has forked meanwhile, and the waiter must
    /// begin again.
    fn lock_queued(&self, me: Place<P>, spinner: &mut Spinner<P>) -> bool {
        // COHORT-3. Relaxed: published by the exchange by which the waiter joins.
        me.node.passed.store(0, Relaxed);
        if !self.enter_cohort(me) {
            let _ = me.join(&self.tail);
        }
        let Some(mut role) = self.wait_for_headship(me, spinner) else { return false };
        let policy = self.policy();
        // INV-2: the role comes into being at the head. A waiter that has another's place in the
        // queue has no waiters behind it to sort.
        role |=
            policy.shuffles::<P>() && !Self::by_cohorts(policy) && me.node.batch.load(Relaxed) == 0;
        role &= !cohort::is_heir(me);
        loop {
            if role && self.is_locked() {
                role = self.shuffle(me, || !self.is_locked());
            }
            spinner.wait_while(&self.locked, |locked| locked != 0);
            if self.take() {
                break;
            }
        }
        P::hint(Hint::Owns);
        // A lost node belongs to no queue: the queue that it stood in was the parent's.
        if me.is_lost() {
            return true;
        }
        let mut sorted = Sorted::NO;
        // If the policy has changed, what was sorted by the old one is not used.
        if role && policy.sorts() && policy == self.policy() {
            if policy.strict() {
                let _ = self.shuffle(me, || false);
            }
            sorted = Sorted::by(me);
        }
        if self.hand_over_in_cohort(me) {
            return true;
        }
        let first = self.first_of(me);
        if let Some(next) = first.leave(&self.tail) {
            sorted.tell(policy, first.node, next);
            // No waiter leaves this queue early: the headship was granted to a live waiter.
            let _ = status::grant(next.node);
        }
        true
    }

    /// Spins until the caller is the head; returns whether it has the shuffling role then. Returns
    /// `None` if its node is lost.
    fn wait_for_headship(&self, me: Place<P>, spinner: &mut Spinner<P>) -> Option<bool> {
        let mut role = false;
        loop {
            let now = status::load(me.node);
            if now.shuffler() {
                role |= status::take_role(me.node);
            }
            if now.head() {
                return Some(role);
            }
            if me.is_lost() {
                return None;
            }
            if role {
                role = self.shuffle(me, || status::load(me.node).head());
            }
            // Relaxed: the loop loads it again. INV-4: without the role, the waiter does only this.
            spinner.wait_while(&me.node.status, status::Status::idle);
        }
    }

    /// Returns whether waiters are sorted as they come, and not by a shuffler.
    fn by_cohorts(policy: Q) -> bool {
        F::LINGER.ns != 0 && policy.by_socket::<P>()
    }

    fn shuffle(&self, me: Place<P>, stop: impl Fn() -> bool) -> bool {
        shuffle::shuffle(self.policy(), me, &self.tail, F::GROUP, stop)
    }
}

/// A waiter, which is counted among the spinners once it has spun for a while.
struct Spinner<P: Platform> {
    counted: bool,
    platform: PhantomData<P>,
}

impl<P: Platform> Spinner<P> {
    fn new() -> Self {
        Self { counted: false, platform: PhantomData }
    }

    /// Returns how long a waiter spins before it is counted. The counter's cache line goes from
    /// thread to thread, which costs more than this lock does. By then a queue with one waiter per
    /// CPU is served, with a microsecond for each section and one for each hand-over, even if
    /// others go first for as long again (COHORT-3). A queue that is not served by then may wait
    /// for a thread that does not run. On two CPUs a waiter is counted at once: there one spinner
    /// is too many.
    fn uncounted() -> Budget {
        const TURN_NS: u32 = 4_000;
        let cpus = P::cpus();
        if cpus > 2 { Budget::ns(cpus.saturating_mul(TURN_NS)) } else { Budget::NONE }
    }

    fn wait_while<W: Word>(&mut self, word: &impl Atomic<W>, keep: impl Fn(W) -> bool) {
        if !self.counted {
            // Relaxed, here and below: the caller loads the value again, or takes the lock by an
            // exchange.
            if word.spin_while(Relaxed, Self::uncounted(), &keep).is_ok() {
                return;
            }
            P::hint(Hint::SpinBegin);
            self.counted = true;
        }
        word.wait_while(Relaxed, keep);
    }
}

impl<P: Platform> Drop for Spinner<P> {
    fn drop(&mut self) {
        if self.counted {
            P::hint(Hint::SpinEnd);
        }
    }
}

impl<P: Platform, Q: Policy, F: Form> Cohorts<P> for ShflSpin<P, Q, F> {
    const COHORT: u16 = F::COHORT;
    const SPINS: bool = true;

    fn queue(&self) -> &impl Tail<P> {
        &self.tail
    }

    fn has_cohorts(&self) -> bool {
        !self.tail.is_empty() && Self::by_cohorts(self.policy())
    }

    fn offer(next: Place<P>) -> Offer {
        status::appoint(next.node);
        Offer::Taken
    }
}

super::super::impl_lock!(unsafe [P: Platform, Q: Policy, F: Form] ShflSpin<P, Q, F>);
