//! How a thread waits for a lock: in its queue, as its head, or without a place. The operations on
//! the lock's own words are in [`Words`].
//!
//! ```text
//!   lock_contended
//!     ├ spin and barge ─────────────────────────────────────────────► owner
//!     ├ no node ──► nap and try ────────────────────────────────────► owner, or timed out
//!     └ join ──► wait for headship ──► wait as head ──► pass it on ──► owner, or timed out
//!                  └ backstop: the head does not run ───────────────► owner
//! ```

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Deadline, Hint, Parked, Platform, Probe, WaiterRef};

use super::abandoned;
use super::fair::Patience;
use super::fence::Fence;
use super::form::Form;
use super::lately::Lately;
use super::linger::{Lingers, Over};
use super::moved;
use super::queue::Place;
use super::shuffle;
use super::sort::Sorted;
use super::status::{self, Leave, Status};
use super::turn::{Ask, Stands, Turn, Wait};
use super::urgent::{self, Step, Urgency};
use super::wake;
use super::watch::{self, Watch};
use super::words::Words;
use crate::arena;
use crate::nap;
use crate::policy::Policy;

/// How many times a head that was not called may find the lock free and lose it to another thread,
/// before its patience begins to run as if it had been called.
const MISSES: u32 = 16;

/// Waiting for a lock, for each type that has [`Words`].
pub(super) trait Contended<P: Platform, Q: Policy, F: Form>: Words<P, Q, F> {
    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> Wait {
        P::probe(Probe::WaitStart(self.traced()));
        let wait = self.wait_contended(deadline);
        let traced = self.traced();
        P::probe(match wait {
            Wait::Acquired => Probe::Acquired(traced),
            _ => Probe::GaveUp(traced),
        });
        wait
    }

    #[inline(always)]
    fn wait_contended(&self, deadline: Option<Deadline>) -> Wait {
        let mut cohort = true;
        loop {
            if self.spin_and_barge() {
                return Wait::Acquired;
            }
            let place = match deadline {
                // Without a backstop the waiter stays until it has the lock.
                None if F::BACKSTOP_NS == 0 => Place::take(self.policy()),
                None if abandoned::thread_may_leave_one::<P>() => Place::take(self.policy()),
                Some(_) if abandoned::may_leave_one::<P>() => Place::take(self.policy()),
                _ => None,
            };
            let Some(me) = place else { return self.wait_without_place(deadline) };
            match self.wait_queued(me, deadline, cohort) {
                Wait::Lost => {}
                Wait::Anew { cohort: again } => cohort = again,
                wait => return wait,
            }
        }
    }

    /// Waits where there is no node for the caller: naps and barges. As long as it waits, owners
    /// release the lock and do not hand it over (PASS-5). The caller leaves a lock that is reserved
    /// for its head alone for a while: the caller has no turn in the queue, and would take the
    /// head's turn each time.
    fn wait_without_place(&self, deadline: Option<Deadline>) -> Wait {
        const NAP_NS: u64 = 200_000;
        arena::<P>().without_place(|| {
            let mut modest = F::BACKSTOP_NS / NAP_NS;
            loop {
                // The result is ignored: one try per nap costs the owner next to nothing.
                let _ = self.spin(F::SPIN.backing_off(0));
                if self.take_as_comer() {
                    return Wait::Acquired;
                }
                let is_over = nap::passed::<P>(deadline);
                if (modest == 0 || is_over) && self.take_any() {
                    if F::BACKSTOP_NS != 0 && modest == 0 {
                        self.excuse_head();
                    }
                    return Wait::Acquired;
                }
                if is_over {
                    return Wait::TimedOut;
                }
                modest = modest.saturating_sub(1);
                nap::nap::<P>(NAP_NS);
            }
        })
    }

    fn wait_queued(&self, me: Place<P>, deadline: Option<Deadline>, cohort: bool) -> Wait {
        Patience::<F>::begin(me.node);
        self.sign(me.node);
        let urgency =
            if Self::URGENT { Urgency::join(self.tail(), me.node) } else { self.untold() };
        let stands = if cohort && urgency.get() == 0 && self.join_cohort(me) {
            Stands::InCohort
        } else {
            me.join(self.tail()).map_or(Stands::First, Stands::Behind)
        };
        if urgency.get() > 0 {
            urgent::rouse_head(self, me);
        }
        self.wait_in_queue(me, &stands, deadline, urgency)
    }

    /// Returns the urgency of a waiter that must not be asked how urgent it is.
    fn untold(&self) -> Urgency<P> {
        Urgency::moved(self.tail())
    }

    fn wait_in_queue(
        &self,
        me: Place<P>,
        stands: &Stands<P>,
        deadline: Option<Deadline>,
        mut urgency: Urgency<P>,
    ) -> Wait {
        let policy = self.policy();
        let wait = loop {
            match self.wait_for_headship(me, stands, deadline, &mut urgency) {
                Turn::Head { role } => {
                    if let Some(wait) = self.wait_and_pass(me, deadline, role, &mut urgency) {
                        break wait;
                    }
                }
                Turn::Overtook { head: true } => {
                    let role = urgent::raise(self, me, status::load(me.node).shuffler(), &urgency);
                    self.pass_headship(me, Wait::Acquired, Sorted::NO, role);
                    break Wait::Acquired;
                }
                Turn::Owner { role, measures } => {
                    if Self::URGENT && urgency.has_company() {
                        let me = self.place_of(me);
                        let role = urgent::raise(self, me, role, &urgency);
                        self.pass_headship(me, Wait::Acquired, Sorted::NO, role);
                    } else if !(measures && Lately::of::<P, _>(self).is_vain())
                        && self.keep_place(me, true, policy)
                    {
                        if measures {
                            Lately::begin_section::<P, _>(self);
                        }
                        P::hint(Hint::Owns);
                    } else {
                        let me = self.place_of(me);
                        self.pass_headship(me, Wait::Acquired, Sorted::NO, false);
                    }
                    break Wait::Acquired;
                }
                Turn::Overtook { head: false } => break Wait::Acquired,
                Turn::TimedOut => break Wait::TimedOut,
                Turn::Anew { cohort } => break Wait::Anew { cohort },
                Turn::Lost => break Wait::Lost,
            }
        };
        if wait != Wait::Lost {
            urgency.end();
        }
        wait
    }

    /// Waits as the head, then makes the next waiter the head. Returns `None` if another waiter
    /// became the head before the caller had its turn.
    fn wait_and_pass(
        &self,
        me: Place<P>,
        deadline: Option<Deadline>,
        mut role: bool,
        urgency: &mut Urgency<P>,
    ) -> Option<Wait> {
        let (wait, sorted) = self.wait_sorting(me, deadline, &mut role, urgency)?;
        if matches!(wait, Wait::TimedOut | Wait::Elsewhere) {
            // The next head must not inherit the caller's request for fairness.
            self.give_up();
        }
        if wait != Wait::Lost && Self::URGENT && urgency.has_company() {
            role = urgent::raise(self, me, role, urgency);
            self.pass_headship(me, wait, Sorted::NO, role);
        } else {
            self.pass_headship(me, wait, sorted, false);
        }
        Some(wait)
    }

    /// Waits, spinning and then asleep, until the caller is the head.
    fn wait_for_headship(
        &self,
        me: Place<P>,
        stands: &Stands<P>,
        deadline: Option<Deadline>,
        urgency: &mut Urgency<P>,
    ) -> Turn {
        let (mut role, mut measures) = (false, false);
        let mut watch = Watch::NEW;
        let mut now = status::load(me.node);
        loop {
            if now.shuffler() {
                role |= status::take_role(me.node);
            }
            if now.owner() {
                return Turn::Owner { role, measures };
            }
            if now.head() {
                return Turn::Head { role };
            }
            if me.is_lost() {
                return Turn::Lost;
            }
            if now.out() {
                // ASIDE-2.
                me.give();
                return Turn::Anew { cohort: true };
            }
            if role {
                role = self.shuffle(me, || status::load(me.node).head());
            }
            let in_cohort = |now: Status| matches!(stands, Stands::InCohort) && !now.queued();
            let spun = self.spin_behind(me, stands, deadline, urgency, &mut measures);
            now = match spun {
                Ok(bits) => Status::from_bits(bits),
                Err(over) if over == Over::Urgent || Self::URGENT && urgency.ask(me.node) => {
                    if in_cohort(now) && self.leave(me) {
                        // Heads look for urgent waiters in the queue.
                        return Turn::Anew { cohort: false };
                    }
                    urgent::rouse_head(self, me);
                    status::load(me.node)
                }
                Err(_) if !status::park(me.node, urgency.get(), role, now.queued()) => {
                    status::load(me.node)
                }
                Err(_) => {
                    // The role stays in the status word as long as the waiter sleeps.
                    role = false;
                    let parked = P::park(me.node, watch.until(self, deadline, in_cohort(now)));
                    now = status::unpark(me.node);
                    if parked == Parked::TimedOut && !me.is_lost() {
                        watch.is_over();
                        if nap::passed::<P>(deadline) {
                            if self.leave(me) {
                                watch::give_on(self, me.node);
                                return Turn::TimedOut;
                            }
                        } else {
                            // The lock may be free, and its head stuck. Even if the lock is
                            // reserved for the head, some waiter must go on.
                            if F::BACKSTOP_NS != 0 && self.take_any() {
                                // WATCH-3.
                                watch::wake_behind(me.node);
                                let turn = self.overtake(me);
                                self.excuse_head();
                                return turn;
                            }
                            // COHORT-5.
                            if in_cohort(now) && self.leave(me) {
                                return Turn::Anew { cohort: false };
                            }
                        }
                    // Without a backstop no waiter leaves the queue before it has the lock.
                    } else if F::BACKSTOP_NS != 0
                        && parked == Parked::Woken
                        && !now.head()
                        // URGENT-5.
                        && !(Self::URGENT && urgency.has_company())
                        && self.take_beside_head()
                    {
                        if self.is_head_excused() {
                            // WATCH-3.
                            watch::wake_behind(me.node);
                        }
                        return self.overtake(me);
                    }
                    if now.head() { now } else { status::load(me.node) }
                }
            };
        }
    }

    /// Leaves the queue as an owner that took the lock when it was not the head; it may be the head
    /// by now.
    fn overtake(&self, me: Place<P>) -> Turn {
        moved::relieve(me.node);
        Turn::Overtook { head: !self.leave(me) }
    }

    /// Leaves the queue. Returns `false`, and does nothing, if the caller is the head by now.
    fn leave(&self, me: Place<P>) -> bool {
        match status::leave(me.node) {
            Leave::Abandoned => {
                let (index, generation) = (me.id.index(), me.generation);
                abandoned::note::<P>(WaiterRef { index, generation });
            }
            // ASIDE-2.
            Leave::Out => me.give(),
            Leave::IsHead => return false,
        }
        true
    }

    /// Waits as the head of the queue, and sorts the queue; returns how far it is sorted, or `None`
    /// if the caller is no longer the head.
    fn wait_sorting(
        &self,
        me: Place<P>,
        deadline: Option<Deadline>,
        role: &mut bool,
        urgency: &mut Urgency<P>,
    ) -> Option<(Wait, Sorted)> {
        let policy = self.policy();
        // INV-2: the role comes into being at the head.
        *role |= policy.shuffles::<P>() && me.node.batch.load(Relaxed) == 0;
        // Wakes the next waiter if the policy wants it awake in time, or CPUs are to spare.
        wake::wake_ahead(me, || policy.wakes() || Self::lingers());
        let wait = self.wait_as_head(me, deadline, role, urgency)?;
        // If the policy has changed, what was sorted by the old one is not used.
        if !*role || !policy.sorts() || me.is_lost() || policy != self.policy() {
            return Some((wait, Sorted::NO));
        }
        // The owner sorts, though this delays its critical section: no other thread is awake to do
        // it.
        let asleep = || me.next().is_some_and(Place::sleeps);
        if wait == Wait::Acquired && (policy.strict() || asleep()) {
            let _ = self.shuffle(me, || false);
        }
        Some((wait, Sorted::by(me)))
    }

    /// Waits for the lock as the head of the queue; shuffles while it has the role. Returns `None`
    /// if the caller is no longer the head (URGENT-1).
    fn wait_as_head(
        &self,
        me: Place<P>,
        deadline: Option<Deadline>,
        role: &mut bool,
        urgency: &mut Urgency<P>,
    ) -> Option<Wait> {
        let mut missed = 0;
        let mut fence = Fence::NEW;
        loop {
            if me.is_lost() {
                return Some(Wait::Lost);
            }
            if self.waits_elsewhere(me) {
                wake::wake_next(me.node, wake::count_moving::<P>());
                return Some(Wait::Elsewhere);
            }
            self.announce();
            // Where there are urgent waiters, the role stays with the head.
            if *role && self.is_held() && !(Self::URGENT && urgency.has_company()) {
                *role = self.shuffle(me, || !self.is_held());
            }
            if !self.is_held() || self.spin_as_head(me) {
                if urgent::step_down_at_last(self, me, role, urgency).is_down(&mut fence) {
                    return None;
                }
                if self.take_as_head(me) {
                    return Some(Wait::Acquired);
                }
            }
            if !F::HEAD_SLEEPS {
                if nap::passed::<P>(deadline) {
                    return Some(Wait::TimedOut);
                }
                continue;
            }
            if Patience::<F>::may_insist(me.node) {
                self.insist();
                if self.spin(F::HEAD_SPIN) {
                    if urgent::step_down_at_last(self, me, role, urgency).is_down(&mut fence) {
                        return None;
                    }
                    if self.take_as_head(me) {
                        return Some(Wait::Acquired);
                    }
                }
                // The head withdraws its request, unless it is due: the owner may have lost its
                // CPU, and when the owner runs again the head may have no CPU.
                if !Patience::<F>::is_over(me.node) {
                    self.give_up();
                }
            }
            if Self::URGENT {
                urgency.ask(me.node);
            }
            let until = match self.ask_for_wake(me, &mut fence) {
                Ask::Free => {
                    missed += 1;
                    if missed == MISSES {
                        Patience::<F>::call(me.node);
                    }
                    continue;
                }
                Ask::Noted => watch::as_head(self, deadline),
                Ask::Doubtful => Some(nap::earlier::<P>(deadline, fence.nap_ns())),
            };
            if Self::URGENT {
                urgency.precede_sleep();
                // URGENT-1: after the head is named.
                let step = urgent::step_down(self, me, role, urgency);
                if step.is_down(&mut fence) {
                    return None;
                }
                if step == Step::Unnamed {
                    continue;
                }
            }
            if P::park(me.node, until) == Parked::Woken {
                // The patience runs already, unless the wake was for another waiter of the same
                // name.
                Patience::<F>::call(me.node);
            } else if nap::passed::<P>(deadline) {
                let had = self.take_as_head(me);
                return Some(if had { Wait::Acquired } else { Wait::TimedOut });
            }
        }
    }

    /// Makes the next live waiter the head, and reclaims the abandoned nodes before it. An owner
    /// leaves a sleeping waiter asleep until its own unlock wakes it, outside the critical section.
    /// `role`: the caller passes the shuffling role on as well.
    fn pass_headship(&self, me: Place<P>, wait: Wait, sorted: Sorted, role: bool) {
        // A lost node belongs to no queue: the queue that it stood in was the parent's.
        if me.is_lost() {
            return;
        }
        if wait == Wait::Acquired {
            P::hint(Hint::Owns);
            if !role && self.keep_place(me, false, self.policy()) {
                return;
            }
        }
        self.give_place_up(me, wait, sorted, role);
    }

    /// Does what [`pass_headship`](Self::pass_headship) does, for a caller that has not lost its
    /// node and does not keep its place.
    fn give_place_up(&self, me: Place<P>, wait: Wait, mut sorted: Sorted, role: bool) {
        let mut at = me;
        loop {
            self.disband(at);
            // The named head has the lock, or gave up.
            self.unname();
            let Some(next) = at.leave(self.tail()) else { return };
            sorted.tell(self.policy(), at.node, next);
            let owner = F::HEAD_SLEEPS && wait == Wait::Acquired;
            // Before the grant, because afterwards the next head may name itself.
            let asleep = owner
                && status::load(next.node).parked()
                && !self.policy().wakes()
                && self.leave_asleep(next);
            let target = arena::<P>().reference(next.id.index());
            if role {
                // INV-3.
                status::give_role(next.node);
            }
            let was = status::grant(next.node);
            if was.abandoned() {
                at = next;
                continue;
            }
            if was.parked()
                && !(asleep && self.is_left_asleep(next))
                && let Some(target) = target
            {
                let asleep = watch::wake_head::<P>(target);
                if owner && asleep {
                    self.wake_beside(next.node);
                }
            }
            return;
        }
    }

    /// Shuffles; returns whether the caller keeps the role.
    fn shuffle(&self, me: Place<P>, stop: impl Fn() -> bool) -> bool {
        shuffle::shuffle(self.policy(), me, self.tail(), F::GROUP, stop)
    }
}

impl<P: Platform, Q: Policy, F: Form, W: Words<P, Q, F>> Contended<P, Q, F> for W {}
