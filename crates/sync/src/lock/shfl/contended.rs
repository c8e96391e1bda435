//! Waiting for a lock: in its queue, as its head, or without a place. What is done to the lock's
//! own words is up to it ([`Contended`]): `exclusive.rs` has the mutex's part, `rw/head.rs` that
//! of the readers-writer lock.
//!
//! ```text
//!   lock_contended
//!     ├ spin and barge ─────────────────────────────────────────────► owner
//!     ├ no node ──► nap and try ────────────────────────────────────► owner, or timed out
//!     └ join ──► wait for headship ──► wait as head ──► pass it on ──► owner, or timed out
//!                  └ backstop: the head does not run ───────────────► owner
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{
    Atomic, Budget, Deadline, Hint, Parked, Platform, Probe, Traced, Waiter, WaiterRef,
};

use super::abandoned;
use super::fair::Patience;
use super::fence::Fence;
use super::moved;
use super::mutex::Form;
use super::queue::{Place, TailId};
use super::shuffle;
use super::sort::Sorted;
use super::status::{self, Leave, Status};
use super::urgent::{self, Step, Urgency};
use super::wake;
use super::watch::{self, Watch};
use crate::arena;
use crate::nap;
use crate::policy::Policy;

/// Whether a wait ended with the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Acquired,
    TimedOut,
    /// The node is gone: the process has forked under the waiter, who must begin anew.
    Lost,
}

/// How the wait of one that is not the head ended.
pub(super) enum Turn {
    /// It is the head; with the shuffling role, or without.
    Head { role: bool },
    /// It has the lock all the same; and it is the head, or has left the queue.
    Overtook { head: bool },
    /// It has left the queue at its deadline.
    TimedOut,
    /// As [`Wait::Lost`].
    Lost,
}

/// What a head that wants to sleep is told.
#[must_use]
pub(super) enum Ask {
    /// The lock is free: take it.
    Free,
    /// The owner will wake us.
    Noted,
    /// The owner may fail to see us (a fence was refused): sleep in short naps.
    Doubtful,
}

/// How long a comer that finds the lock taken leaves the owner in peace before it looks again; then
/// twice as long, and so on. Each look takes the lock's line away from the owner, who pays as much
/// as for some ten short critical sections.
const COMER_IN_PEACE_NS: u32 = 300;
/// The same for a head, who has looked in vain before. Where there are CPUs to spare it then looks
/// as often as it can: that costs the owner a line each time that it writes to it, and a lock that
/// is free until the next look is lost time for all.
const HEAD_IN_PEACE_NS: u32 = 1_000;
/// How long a comer looks where a head sleeps or was called: about as long as the system call takes
/// in which it would fall asleep. The owner of a short critical section is gone by then.
const BESIDE_HEAD_NS: u32 = 500;
/// How often a head that nobody has called finds the lock free and loses it to others, before its
/// patience begins to run as if it had been called.
const MISSES: u32 = 16;
/// The backstop doubles up to this many times.
pub(super) const DOUBLINGS: u32 = 5;

/// What one waits for in a queue: a lock, or a way to hold it. Below the words that are the lock's
/// business is the waiting, which is the same for all.
pub(super) trait Contended<P: Platform, Q: Policy, F: Form>: Sized {
    /// Whether who is waited for holds it, so that it is likely to be free soon.
    const HELD_BRIEFLY: bool = true;

    /// Whether waiters of real-time priority are served first.
    const URGENT: bool = F::HEAD_SLEEPS;

    /// The end of the queue.
    fn tail(&self) -> &TailId<P>;

    /// What the queue is sorted by, at present.
    fn policy(&self) -> Q;

    /// Notes in the caller's node, which is in no queue yet, what it wants.
    fn sign(&self, _me: &Waiter<P>) {}

    /// Whether a head sleeps, or was called and has not come. May be stale at once.
    fn is_called(&self) -> bool {
        self.named() != 0
    }

    /// The low half of that head's index, or 0.
    fn named(&self) -> u16;

    /// How urgent a waiter is among those of real-time priority, 0 if it has none.
    fn urgency_of(node: &Waiter<P>) -> u32 {
        status::urgency(node).into()
    }

    /// Whether the head sleeps, and a release will call it. May be stale at once.
    fn head_sleeps(&self) -> bool;

    /// Says, as the head that is about to spin, that it is there.
    fn announce(&self) {}

    /// Whether the head could not have it now; may be stale at once.
    fn is_held(&self) -> bool;

    /// Spins until it is seen not to be held, within the budget.
    fn spin(&self, budget: Budget) -> bool;

    /// Takes it as a comer, if it is not held, nor kept for somebody else.
    fn take_as_comer(&self) -> bool;

    /// Takes it, behind a head that was called and does not come, if comers may come in beside one
    /// another.
    fn take_beside_head(&self) -> bool {
        false
    }

    /// Whether the head that was overtaken so is one that may not run for long.
    fn is_head_excused(&self) -> bool {
        false
    }

    /// Takes it if it is free, whoever it is kept for.
    fn take_any(&self) -> bool;

    /// Takes it as the head, if it is not held; fairness has then been had.
    fn take_as_head(&self, me: Place<P>) -> bool;

    /// Asks for fairness, as the head, which runs: the next release is for it.
    fn insist(&self);

    /// Takes back, as the head, that it has asked for fairness.
    fn give_up(&self);

    /// As the owner, who was waiting behind a head that does not come: nothing is kept for that any
    /// longer, nor for some time to come.
    fn excuse_head(&self);

    /// Names the caller, the head, as the one to wake, and asks the owner to do so.
    fn ask_for_wake(&self, me: Place<P>, fence: &mut Fence) -> Ask;

    /// Nobody is named any longer: the caller, the head, has come, or gives up.
    fn unname(&self);

    /// As an owner, names the waiter that will be the next head and sleeps, and sees to it that a
    /// release wakes it. `false` if it could have what it wants at once, and is to be woken.
    fn leave_asleep(&self, next: Place<P>) -> bool;

    /// Whether that stands now that the waiter is the head: nobody has woken it before it was. Only
    /// where others than the caller could.
    fn is_left_asleep(&self, _next: Place<P>) -> bool {
        true
    }

    /// What a tracer is told that the caller waits for.
    fn traced(&self) -> Traced;

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
        loop {
            if self.spin_and_barge() {
                return Wait::Acquired;
            }
            let place = match deadline {
                // Without a backstop it stays until it has the lock.
                None if F::BACKSTOP_NS == 0 => Place::take(self.policy()),
                None if abandoned::thread_may_leave_one::<P>() => Place::take(self.policy()),
                Some(_) if abandoned::may_leave_one::<P>() => Place::take(self.policy()),
                _ => None,
            };
            let Some(me) = place else { return self.wait_without_place(deadline) };
            match self.wait_queued(me, deadline) {
                Wait::Lost => {}
                wait => return wait,
            }
        }
    }

    /// Spins for a moment and barges if the lock comes free. For a shorter one where a head sleeps
    /// or was called: one thread more that fights for the lock is one too many then, but one that
    /// sleeps is two switches, and heads may be named for most of the time.
    ///
    /// A spin this short is worth neither a look at how crowded the machine is nor being counted:
    /// both touch what all threads touch. Leaves a lock that is kept for the head alone.
    fn spin_and_barge(&self) -> bool {
        if F::SPIN.ns == 0 {
            return false;
        }
        let budget = if self.is_called() { Budget::ns(BESIDE_HEAD_NS) } else { F::SPIN };
        budget.ns != 0 && self.spin(budget.backing_off(COMER_IN_PEACE_NS)) && self.take_as_comer()
    }

    /// Whether a wait is worth a long spin, and the next waiter a wake ahead of its turn.
    fn lingers() -> bool {
        Self::HELD_BRIEFLY && F::LINGER.ns != 0 && P::roomy()
    }

    /// Spins as the head, which found it held. One that was called stays awake where there are
    /// CPUs: to be called again costs the owner more than a look.
    fn spin_as_head(&self, called: bool) -> bool {
        let late = Patience::<F>::heads_are_late::<P>();
        let lingers = !late && Self::lingers();
        let budget = match called {
            _ if lingers => Budget::ns(HEAD_IN_PEACE_NS),
            // One look: a spin would take the CPU of one that has work.
            _ if late || P::crowded() => Budget::NONE,
            true => Budget::ns(F::PATIENCE_NS),
            false => F::HEAD_SPIN,
        };
        P::hint(Hint::SpinBegin);
        let free = self.spin(budget.backing_off(HEAD_IN_PEACE_NS));
        let free = free || lingers && self.spin(F::LINGER);
        P::hint(Hint::SpinEnd);
        free
    }

    /// How long a waiter behind the head spins: where CPUs are short, not at all behind a sleeper.
    fn patience(ahead: Option<Place<P>>) -> Budget {
        if Self::lingers() {
            F::LINGER
        } else if F::HEAD_SLEEPS && ahead.is_some_and(Place::sleeps) || P::crowded() {
            Budget::NONE
        } else {
            F::QUEUE_SPIN
        }
    }

    /// Waits where no node is to be had: naps and barges.
    fn wait_without_place(&self, deadline: Option<Deadline>) -> Wait {
        const NAP_NS: u64 = 200_000;
        loop {
            // Whether it came free or not: a try each nap costs the owner nothing to speak of.
            let _ = self.spin(F::SPIN.backing_off(0));
            if self.take_any() {
                return Wait::Acquired;
            }
            if nap::passed::<P>(deadline) {
                return Wait::TimedOut;
            }
            nap::nap::<P>(NAP_NS);
        }
    }

    fn wait_queued(&self, me: Place<P>, deadline: Option<Deadline>) -> Wait {
        Patience::<F>::begin(me.node);
        self.sign(me.node);
        let urgency =
            if Self::URGENT { Urgency::join(self.tail(), me.node) } else { self.untold() };
        let ahead = me.join(self.tail());
        if urgency.get() > 0 {
            urgent::rouse_head(self, me);
        }
        self.wait_in_queue(me, ahead, deadline, urgency)
    }

    /// Of a waiter that is not to be asked how urgent it is.
    fn untold(&self) -> Urgency<P> {
        Urgency::moved(self.tail())
    }

    fn wait_in_queue(
        &self,
        me: Place<P>,
        ahead: Option<Place<P>>,
        deadline: Option<Deadline>,
        mut urgency: Urgency<P>,
    ) -> Wait {
        let wait = loop {
            match self.wait_for_headship(me, ahead, deadline, &mut urgency) {
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
                Turn::Overtook { head: false } => break Wait::Acquired,
                Turn::TimedOut => break Wait::TimedOut,
                Turn::Lost => break Wait::Lost,
            }
        };
        if wait != Wait::Lost {
            urgency.end();
        }
        wait
    }

    /// Waits as the head, and makes the next waiter the head. `None`: another one is the head
    /// before the caller has had its turn.
    fn wait_and_pass(
        &self,
        me: Place<P>,
        deadline: Option<Deadline>,
        mut role: bool,
        urgency: &mut Urgency<P>,
    ) -> Option<Wait> {
        let (wait, sorted) = self.wait_sorting(me, deadline, &mut role, urgency)?;
        if wait == Wait::TimedOut {
            // What we asked for is not for the next head.
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
        ahead: Option<Place<P>>,
        deadline: Option<Deadline>,
        urgency: &mut Urgency<P>,
    ) -> Turn {
        let mut role = false;
        let mut watch = Watch::NEW;
        let mut now = status::load(me.node);
        loop {
            if now.shuffler() {
                role |= status::take_role(me.node);
            }
            if now.head() {
                return Turn::Head { role };
            }
            if me.is_lost() {
                return Turn::Lost;
            }
            if role {
                role = self.shuffle(me, || status::load(me.node).head());
            }
            let budget = Self::patience(ahead);
            P::hint(Hint::SpinBegin);
            // Acquire: as `status::load`. INV-4: without the role, this is all that it does.
            let spun = me.node.status.spin_while(Acquire, budget, Status::idle);
            P::hint(Hint::SpinEnd);
            now = match spun {
                Ok(bits) => Status::from_bits(bits),
                Err(_) if Self::URGENT && urgency.ask(me.node) => {
                    urgent::rouse_head(self, me);
                    status::load(me.node)
                }
                Err(_) if !status::park(me.node, urgency.get(), role) => status::load(me.node),
                Err(_) => {
                    // In the word, as long as it sleeps.
                    role = false;
                    let parked = P::park(me.node, watch.until(self, deadline));
                    now = status::unpark(me.node);
                    if parked == Parked::TimedOut && !me.is_lost() {
                        watch.is_over();
                        if nap::passed::<P>(deadline) {
                            match self.leave(me) {
                                Leave::Abandoned => {
                                    watch::give_on(self, me.node);
                                    return Turn::TimedOut;
                                }
                                Leave::IsHead => {}
                            }
                        } else {
                            // The lock is free, perhaps, and its head stuck: whatever was kept
                            // for it, somebody must go on.
                            if F::BACKSTOP_NS != 0 && self.take_any() {
                                // WATCH-3.
                                watch::wake_behind(me.node);
                                let turn = self.overtake(me);
                                self.excuse_head();
                                return turn;
                            }
                        }
                    // Without a backstop nobody leaves the queue before it has the lock.
                    } else if F::BACKSTOP_NS != 0
                        && parked == Parked::Woken
                        && !now.head()
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

    /// Leaves the queue as an owner who was not the head, or is by now.
    fn overtake(&self, me: Place<P>) -> Turn {
        moved::relieve(me.node);
        Turn::Overtook { head: matches!(self.leave(me), Leave::IsHead) }
    }

    /// Leaves the queue, unless the caller is the head by now.
    fn leave(&self, me: Place<P>) -> Leave {
        let leave = status::leave(me.node);
        if let Leave::Abandoned = leave {
            let (index, generation) = (me.id.index(), me.generation);
            abandoned::note::<P>(WaiterRef { index, generation });
        }
        leave
    }

    /// Waits as the head of the queue, and puts that in order: says how far it has come. `None`: it
    /// is the head no longer.
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
        // If the policy wants it up in time, or there are CPUs to spare.
        wake::wake_ahead(me, || policy.wakes() || Self::lingers());
        let wait = self.wait_as_head(me, deadline, role, urgency)?;
        // What another policy has sorted is sorted no longer.
        if !*role || !policy.sorts() || me.is_lost() || policy != self.policy() {
            return Some((wait, Sorted::NO));
        }
        // On the way of the owner: nobody else is up to do it.
        let asleep = || me.next().is_some_and(Place::sleeps);
        if wait == Wait::Acquired && (policy.strict() || asleep()) {
            let _ = self.shuffle(me, || false);
        }
        Some((wait, Sorted::by(me)))
    }

    /// Waits for the lock as the head of the queue, who shuffles as long as it has the role.
    /// `None`: it is the head no longer (URGENT-1).
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
            self.announce();
            // Where urgent waiters are about, the role stays with the head.
            if *role && self.is_held() && !(Self::URGENT && urgency.has_company()) {
                *role = self.shuffle(me, || !self.is_held());
            }
            if !self.is_held() || self.spin_as_head(Patience::<F>::was_called(me.node)) {
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
                // It asks no longer, unless it is due: the owner may have lost its CPU, and when it
                // comes back the head may not have one.
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
                // URGENT-1: after it is named.
                let step = urgent::step_down(self, me, role, urgency);
                if step.is_down(&mut fence) {
                    return None;
                }
                if step == Step::Unnamed {
                    continue;
                }
            }
            if P::park(me.node, until) == Parked::Woken {
                // Its patience runs already, unless its name is also that of others.
                Patience::<F>::call(me.node);
            } else if nap::passed::<P>(deadline) {
                let had = self.take_as_head(me);
                return Some(if had { Wait::Acquired } else { Wait::TimedOut });
            }
        }
    }

    /// Makes the next live waiter the head, and reclaims the abandoned nodes before it. An owner
    /// leaves a sleeper asleep and lets its own unlock wake it: off the critical section.
    /// The caller has the `role` to give on with that, or nothing to give.
    fn pass_headship(&self, me: Place<P>, wait: Wait, mut sorted: Sorted, role: bool) {
        let mut at = me;
        // A lost node is nobody's: the queue that it stood in was the parent's.
        if at.is_lost() {
            return;
        }
        if wait == Wait::Acquired {
            P::hint(Hint::Owns);
        }
        loop {
            // It has come, or gave up.
            self.unname();
            let Some(next) = at.leave(self.tail()) else { return };
            sorted.tell(self.policy(), at.node, next);
            let owner = F::HEAD_SLEEPS && wait == Wait::Acquired;
            // Before the grant: from then on, the next head may name itself.
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
                let _ = watch::wake_head::<P>(target);
            }
            return;
        }
    }

    /// Shuffles; returns whether the caller keeps the role.
    fn shuffle(&self, me: Place<P>, stop: impl Fn() -> bool) -> bool {
        shuffle::shuffle(self.policy(), me, self.tail(), F::GROUP, stop)
    }
}
