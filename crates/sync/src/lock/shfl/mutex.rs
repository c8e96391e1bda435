//! The ShflLock mutex: 8 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0 | `locked` | `LOCKED`, `WAKE`, `FAIR` (below); 0 is free |
//! | 1 | `policy` | zero: kept for the policy that is chosen at run time |
//! | 2–3 | `head` | the low half of the index of the head, if it sleeps or is about to |
//! | 4–7 | `tail` | name of the last waiter, 0 if nobody waits |
//!
//! ```text
//!             lock (anybody)               a head goes to sleep
//!    0 ◄─────────────────────► LOCKED ──────────────────────────► LOCKED|WAKE
//!             unlock              ▲                                   │
//!                                 │        unlock, cold: clears WAKE  │
//!                                 └───────────────────────────────────┘
//!                                   … then releases and wakes who `head` names
//! ```
//!
//! `FAIR` is raised by a head that was overtaken too often: the lock then goes from owner to head,
//! and comers can't barge. `README.md` beside this file has the whole protocol and the reasons.
//!
//! - MUTEX-1: `WAKE` is set only while `LOCKED` is; who clears it wakes the waiter that `head`
//!   names afterwards.
//! - MUTEX-2: a sleeping head is named by `head`, with `WAKE` set, or has a wake coming.
//! - MUTEX-3: nothing of the lock is touched after the store that releases it.
//!
//! Models: `tests/model_mutex.rs`.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{
    Atomic, AtomicInteger, Budget, Clock, Deadline, Hint, Parked, Platform, Waiter, WaiterRef,
};

use super::abandoned;
use super::queue::{Place, TailId};
use super::shuffle::{self, Role};
use super::status::{self, Leave, Status};
use crate::policy::{Numa, Policy};

/// Numbers of a lock's form, and whether its head may sleep.
pub trait Form: Send + Sync + 'static {
    /// Whether the head of the queue may sleep. In the published form it may not; unlock is then a
    /// plain store.
    const HEAD_SLEEPS: bool;
    /// How many waiters a shuffler gathers at most, and looks at in one go (INV-5).
    const GROUP: u32;
    /// How often a head is woken and overtaken before it asks for fairness.
    const PATIENCE: u32;
    /// How long a comer spins before it joins the queue.
    const SPIN: Budget;
    /// How long a waiter spins in the queue before it sleeps.
    const QUEUE_SPIN: Budget;
    /// How long the head spins before it sleeps.
    const HEAD_SPIN: Budget;
}

/// Every waiter may sleep: the form to use.
pub struct Standard;

impl Form for Standard {
    const HEAD_SLEEPS: bool = true;
    const GROUP: u32 = 1024;
    const PATIENCE: u32 = 16;
    const SPIN: Budget = Budget::ns(1_000);
    const QUEUE_SPIN: Budget = Budget::ns(2_000);
    const HEAD_SPIN: Budget = Budget::ns(5_000);
}

/// The published form: the head never sleeps, and never asks for fairness. For comparison.
pub struct Published;

impl Form for Published {
    const HEAD_SLEEPS: bool = false;
    const GROUP: u32 = 1024;
    const PATIENCE: u32 = u32::MAX;
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::ns(9_000);
    const HEAD_SPIN: Budget = Budget::ns(9_000);
}

const LOCKED: u8 = 1;
/// The head sleeps: unlock must wake it.
const WAKE: u8 = 2;
/// Only the head may take the lock.
const FAIR: u8 = 4;

/// A NUMA-aware blocking mutex, 8 bytes.
#[repr(C, align(8))]
pub struct ShflMutex<P: Platform, Q: Policy = Numa, F: Form = Standard> {
    locked: P::U8,
    policy: P::U8,
    head: P::U16,
    tail: TailId<P>,
    marker: PhantomData<(Q, F)>,
}

/// Whether a wait ended with the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Acquired,
    TimedOut,
}

impl<P: Platform, Q: Policy, F: Form> ShflMutex<P, Q, F> {
    /// A free lock.
    pub const NEW: Self = Self {
        locked: P::U8::ZERO,
        policy: P::U8::ZERO,
        head: P::U16::ZERO,
        tail: TailId::NEW,
        marker: PhantomData,
    };

    /// Acquires the lock; blocks until it is had.
    #[inline]
    pub fn lock(&self) {
        if !self.lock_uncontended() {
            self.lock_contended(None);
        }
    }

    /// What [`lock`](Self::lock) does without contention: acquires the lock if it is free and no
    /// waiter has asked for fairness. For callers that want to know when they would have waited.
    #[inline]
    pub fn lock_uncontended(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.compare_exchange(0, LOCKED, Acquire, Relaxed).is_ok()
    }

    /// Acquires the lock, or gives up when the deadline has passed; says whether it was had. A free
    /// lock is had whatever the deadline.
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> bool {
        self.lock_uncontended() || self.lock_contended(Some(deadline)) == Wait::Acquired
    }

    /// Acquires the lock if it is free, ahead of any waiters; never fails on a free lock.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        match self.locked.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            Ok(_) => true,
            Err(seen) => seen & LOCKED == 0 && self.take_any(),
        }
    }

    /// Whether somebody holds the lock; may be stale at once.
    pub fn is_locked(&self) -> bool {
        self.locked.load(Relaxed) & LOCKED != 0
    }

    /// Releases the lock; wakes the head of the queue if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        if !F::HEAD_SLEEPS {
            // Release: pairs with the acquire of the next owner.
            return self.locked.store(0, Release);
        }
        if P::light() {
            // SAFETY: we own the lock, so both words are valid until the store.
            if unsafe { P::store_unless(&raw const self.locked, 0, &raw const self.head) } {
                return;
            }
        // Release: pairs with the acquire of the next owner.
        } else if self.locked.compare_exchange(LOCKED, 0, Release, Relaxed).is_ok() {
            return;
        }
        self.unlock_contended();
    }

    /// As [`lock_uncontended`](Self::lock_uncontended), by a plain load and a plain store.
    ///
    /// # Safety
    ///
    /// The caller is the only thread of its process, and the lock in no other one's memory.
    #[inline]
    pub unsafe fn lock_alone(&self) -> bool {
        // Relaxed: there is nobody to order with; a thread that is created later comes after.
        let free = self.locked.load(Relaxed) == 0;
        if free {
            self.locked.store(LOCKED, Relaxed);
        }
        free
    }

    /// [`unlock`](Self::unlock) by a plain load and a plain store; `false`, and nothing done, if
    /// that is not enough.
    ///
    /// # Safety
    ///
    /// The caller owns the lock, is the only thread of its process, and the lock is in no other
    /// one's memory.
    #[inline]
    pub unsafe fn unlock_alone(&self) -> bool {
        // Relaxed: as in `lock_alone`.
        let enough = self.locked.load(Relaxed) == LOCKED;
        if enough {
            self.locked.store(0, Relaxed);
        }
        enough
    }

    /// Releases with a wake. The target is known before the store that releases (MUTEX-3); a head
    /// that names itself after `WAKE` was cleared sets it again, and the release fails (MUTEX-1).
    ///
    /// Nobody is woken before the release: a head that woke to a held lock would ask again, and
    /// the two could keep each other busy for ever.
    #[cold]
    #[inline(never)]
    fn unlock_contended(&self) {
        let mut named = 0;
        let mut target = None;
        loop {
            // Acquire: pairs with the release in `ask_for_wake`: `head` is as new as the flag.
            let seen = self.locked.fetch_and(!WAKE, Acquire) & !WAKE;
            // Acquire: pairs with the release there: the name may be newer than the flag, and then
            // the generation must be as new as the name.
            let head = self.head.swap(0, Acquire);
            if head != 0 {
                named = u32::from(head);
                target = P::arena().reference(named);
            }
            // Release: pairs with the acquire of the next owner.
            if self.locked.compare_exchange(seen, seen & !LOCKED, Release, Relaxed).is_ok() {
                break;
            }
        }
        if let Some(target) = target {
            P::unpark(target);
        }
        Self::wake_namesakes(named);
    }

    /// Wakes the waiters whose index ends as `named` does: `head` holds 16 bits of it.
    fn wake_namesakes(named: u32) {
        let arena = P::arena();
        for index in (named..=arena.high_water()).step_by(1 << 16).skip(1) {
            if let Some(namesake) = arena.reference(index) {
                P::unpark(namesake);
            }
        }
    }

    /// Takes a free lock, fair or not. Looks at the newest value, where a load might not.
    fn take_any(&self) -> bool {
        // Acquire: pairs with the release in `unlock`. On a held lock it changes nothing.
        self.locked.fetch_or(LOCKED, Acquire) & LOCKED == 0
    }

    #[cold]
    #[inline(never)]
    fn lock_contended(&self, deadline: Option<Deadline>) -> Wait {
        if self.spin_and_barge() {
            return Wait::Acquired;
        }
        let place = match deadline {
            None => Place::take::<Q>(),
            Some(_) if abandoned::may_leave_one::<P>() => Place::take::<Q>(),
            Some(_) => None,
        };
        match place {
            Some(me) => self.wait_queued(me, deadline),
            None => self.wait_without_place(deadline),
        }
    }

    /// Spins for a while and takes the lock if it comes free; leaves it to the head if that has
    /// asked for fairness.
    fn spin_and_barge(&self) -> bool {
        self.spin(F::SPIN).is_ok_and(|seen| seen == 0 && self.lock_uncontended())
    }

    /// Spins until the lock is seen free, within the budget.
    fn spin(&self, budget: Budget) -> Result<u8, u8> {
        let budget = if P::crowded() { Budget::NONE } else { budget.backing_off() };
        P::hint(Hint::SpinBegin);
        let seen = self.locked.spin_while(Relaxed, budget, |locked| locked & LOCKED != 0);
        P::hint(Hint::SpinEnd);
        seen
    }

    /// Waits where no node is to be had: naps and barges.
    fn wait_without_place(&self, deadline: Option<Deadline>) -> Wait {
        const NAP_NS: u64 = 200_000;
        let bed = Waiter::<P>::NEW;
        loop {
            // Whether it came free or not: a try each nap costs the owner nothing to speak of.
            let _ = self.spin(F::SPIN);
            if self.take_any() {
                return Wait::Acquired;
            }
            if passed::<P>(deadline) {
                return Wait::TimedOut;
            }
            // How the nap ended is of no matter.
            let _ = P::park(&bed, Some(after::<P>(NAP_NS)));
        }
    }

    fn wait_queued(&self, me: Place<P>, deadline: Option<Deadline>) -> Wait {
        let generation = me.node.generation.load(Relaxed);
        me.join(&self.tail);
        let Some(role) = self.wait_for_headship(me, deadline) else {
            abandoned::note::<P>(WaiterRef { index: me.id.index(), generation });
            return Wait::TimedOut;
        };
        let wait = self.wait_as_head(me, deadline, role);
        if wait == Wait::TimedOut {
            // What we asked for is not for the next head. Relaxed: orders nothing.
            self.locked.fetch_and(!FAIR, Relaxed);
        }
        self.pass_headship(me, wait);
        wait
    }

    /// Waits, spinning and then asleep, until the caller is the head; returns whether it has the
    /// shuffling role then. `None`: it has left at its deadline; the node is the queue's now.
    fn wait_for_headship(&self, me: Place<P>, deadline: Option<Deadline>) -> Option<bool> {
        let mut role = false;
        let mut now = status::load(me.node);
        loop {
            if now.shuffler() {
                status::take_role(me.node);
                role = true;
            }
            if now.head() {
                return Some(role);
            }
            if role {
                role = self.shuffle(me, || status::load(me.node).head());
            }
            let budget = if P::crowded() { Budget::NONE } else { F::QUEUE_SPIN };
            P::hint(Hint::SpinBegin);
            // Acquire: as `status::load`. INV-4: without the role, this is all that it does.
            let spun = me.node.status.spin_while(Acquire, budget, Status::idle);
            P::hint(Hint::SpinEnd);
            now = match spun {
                Ok(bits) => Status::from_bits(bits),
                Err(_) if !status::park(me.node) => status::load(me.node),
                Err(_) => {
                    let parked = P::park(me.node, deadline);
                    let now = status::unpark(me.node);
                    if parked == Parked::TimedOut
                        && let Leave::Abandoned = status::leave(me.node)
                    {
                        return None;
                    }
                    if now.head() { now } else { status::load(me.node) }
                }
            };
        }
    }

    /// Waits for the lock as the head of the queue.
    fn wait_as_head(&self, me: Place<P>, deadline: Option<Deadline>, role: bool) -> Wait {
        // INV-2: the role comes into being at the head.
        let mut role = role || Q::shuffles::<P>() && me.node.batch.load(Relaxed) == 0;
        let mut overtaken = 0;
        loop {
            if role && self.is_locked() {
                role = self.shuffle(me, || !self.is_locked());
            }
            if self.spin(F::HEAD_SPIN).is_ok() && self.take_as_head() {
                return Wait::Acquired;
            }
            if !F::HEAD_SLEEPS {
                if passed::<P>(deadline) {
                    return Wait::TimedOut;
                }
                continue;
            }
            let until = match self.ask_for_wake(me, overtaken >= F::PATIENCE) {
                Ask::Free => continue,
                Ask::Noted => deadline,
                Ask::Doubtful => Some(earlier::<P>(deadline)),
            };
            if P::park(me.node, until) == Parked::TimedOut && passed::<P>(deadline) {
                return if self.take_as_head() { Wait::Acquired } else { Wait::TimedOut };
            }
            overtaken += 1;
        }
    }

    /// Takes a free lock as the head; fairness has then been had.
    fn take_as_head(&self) -> bool {
        let mut seen = self.locked.load(Relaxed);
        while seen & LOCKED == 0 {
            // Acquire: pairs with the release in `unlock`.
            match self.locked.compare_exchange(seen, LOCKED, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Names the caller, the head, as the one to wake, and asks the owner to do so; with `fair`,
    /// also to leave the lock to the head alone.
    fn ask_for_wake(&self, me: Place<P>, fair: bool) -> Ask {
        // Release: pairs with the acquire in `unlock_contended`, which may see the name before the
        // flag: our node's generation must come with it.
        self.head.store(half(me), Release);
        // Owners that are about to release by `store_unless` have done so, or will see `head`.
        let sound = !P::fenced() || P::heavy_fence().is_ok();
        let wish = if fair { WAKE | FAIR } else { WAKE };
        let mut seen = self.locked.load(Relaxed);
        loop {
            if seen & LOCKED == 0 {
                return Ask::Free;
            }
            // Release: pairs with the acquire in `unlock_contended`.
            match self.locked.compare_exchange(seen, seen | wish, Release, Relaxed) {
                Ok(_) if sound => return Ask::Noted,
                Ok(_) => return Ask::Doubtful,
                Err(now) => seen = now,
            }
        }
    }

    /// Makes the next live waiter the head, and reclaims the abandoned nodes before it. An owner
    /// leaves a sleeper asleep and lets its own unlock wake it: off the critical section.
    fn pass_headship(&self, me: Place<P>, wait: Wait) {
        let mut at = me;
        loop {
            let next = at.next_or_clear(&self.tail);
            at.give();
            let Some(next) = next else { return };
            let owner = F::HEAD_SLEEPS && wait == Wait::Acquired;
            let asleep = owner && status::load(next.node).parked();
            if asleep {
                // MUTEX-2. Before the grant: from then on, the next head may name itself. Relaxed:
                // our own unlock, or what hands the lock to another thread, comes later.
                self.head.store(half(next), Relaxed);
                self.locked.fetch_or(WAKE, Relaxed);
            }
            let target = P::arena().reference(next.id.index());
            let was = status::grant(next.node);
            if was.abandoned() {
                at = next;
                continue;
            }
            if was.parked()
                && !asleep
                && let Some(target) = target
            {
                P::unpark(target);
            }
            return;
        }
    }

    /// Shuffles; returns whether the caller keeps the role.
    fn shuffle(&self, me: Place<P>, stop: impl Fn() -> bool) -> bool {
        matches!(shuffle::shuffle::<P, Q>(me, &self.tail, F::GROUP, stop), Role::Kept)
    }
}

/// What a head that wants to sleep is told.
enum Ask {
    /// The lock is free: take it.
    Free,
    /// The owner will wake us.
    Noted,
    /// The owner may fail to see us (a fence was refused): sleep in short naps.
    Doubtful,
}

/// What stands in `head` for a place.
fn half<P: Platform>(place: Place<P>) -> u16 {
    place.id.index() as u16
}

fn passed<P: Platform>(deadline: Option<Deadline>) -> bool {
    deadline.is_some_and(|deadline| P::now(deadline.clock) >= deadline.ns)
}

fn after<P: Platform>(ns: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: P::now(Clock::Monotonic).saturating_add(ns) }
}

/// `deadline`, or a millisecond from now if that is earlier.
fn earlier<P: Platform>(deadline: Option<Deadline>) -> Deadline {
    const NAP_NS: u64 = 1_000_000;
    match deadline {
        Some(deadline) if deadline.ns < P::now(deadline.clock).saturating_add(NAP_NS) => deadline,
        _ => after::<P>(NAP_NS),
    }
}

super::super::impl_lock!([P: Platform, Q: Policy, F: Form] ShflMutex<P, Q, F>);
