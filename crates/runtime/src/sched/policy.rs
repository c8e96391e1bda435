//! Which task a worker runs next, whose it takes, and where it puts what it has no room for.

use core::marker::PhantomData;

use antiphon_platform::{Budget, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen, WorkQueue};

/// A policy is a value, and its type is known where the workers are: asking it costs nothing.
///
/// ```
/// use antiphon_platform::Platform;
/// use antiphon_runtime::sched::{Others, Own, Policy};
/// use antiphon_sync::queue::{Deque, Item, Stolen};
///
/// /// The last first, and every eighth time the first.
/// struct Mostly;
///
/// // SAFETY: tasks go into the worker's queue, and come out of queues.
/// unsafe impl<P: Platform> Policy<P> for Mostly {
///     type Queue = Deque<P>;
///     type State = u32;
///
///     fn queue(&self) -> Deque<P> {
///         Deque::new(128, 1 << 20)
///     }
///
///     fn pop(&self, own: &Own<'_, Deque<P>>, taken: &mut u32) -> Option<Item> {
///         *taken = taken.wrapping_add(1);
///         if taken.is_multiple_of(8) { own.pop_front() } else { own.pop_back() }
///     }
///
///     fn steal(
///         &self,
///         own: &Own<'_, Deque<P>>,
///         _: &mut u32,
///         others: &Others<'_, Deque<P>>,
///     ) -> Stolen {
///         others.try_each(0..others.count(), |victim| own.steal(victim, |there| there / 2))
///     }
/// }
/// ```
///
/// # Safety
///
/// What it is given it puts into one place, once, or gives back; and what it hands out, or gives
/// back, was given to it and is in no place any more. So it makes up no [`Item`], and doubles none.
/// (It may forget one: nobody is served by that, but nothing is harmed.)
pub unsafe trait Policy<P: Platform>: Send + Sync {
    /// What each worker has its tasks in.
    type Queue: WorkQueue + Send + Sync;
    /// What each worker remembers from one decision to the next, and no task: who has its seat
    /// after it begins with a default one.
    type State: Default + Send;

    /// An empty queue.
    fn queue(&self) -> Self::Queue;

    /// Puts a task in that is ready now. It may have a rank: a deadline, a priority, a stage. What
    /// that is, the policy says; to most it is nothing.
    ///
    /// # Errors
    ///
    /// If the worker has no room for it; [`overflow`](Self::overflow) is next.
    fn push(
        &self,
        own: &Own<'_, Self::Queue>,
        _state: &mut Self::State,
        task: Item,
        _rank: Option<u64>,
    ) -> Result<(), Full> {
        own.push(task)
    }

    /// Puts a task in that comes from outside: by default into the queue from which all take those.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, _rank: Option<u64>) -> Result<(), Full> {
        shared.push(task)
    }

    /// Whether a task is to be seen in the queues that the policy itself has, from which each
    /// worker takes. None sleeps while there is.
    fn has_tasks(&self) -> bool {
        false
    }

    /// Takes a task out of these when all workers have ended.
    fn take_left(&self) -> Option<Item> {
        None
    }

    /// The task to be run next, of the worker's own.
    fn pop(&self, own: &Own<'_, Self::Queue>, state: &mut Self::State) -> Option<Item>;

    /// Takes tasks of others, for a worker that has none: the first to be run, and others, if there
    /// are, into its own queue. [`Stolen::Retry`]: there is something, and the worker comes back.
    ///
    /// To be short: nobody else is woken meanwhile.
    fn steal(
        &self,
        own: &Own<'_, Self::Queue>,
        state: &mut Self::State,
        others: &Others<'_, Self::Queue>,
    ) -> Stolen;

    /// Puts a task elsewhere that the worker had no room for: by default into the queue that tasks
    /// from outside come in by, where all find it.
    ///
    /// # Errors
    ///
    /// If there is no room there either; then whoever made the task decides.
    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        shared.push(task)
    }

    /// How long a worker that has found nothing spins before it sleeps, unless there are more
    /// threads than CPUs.
    fn idle(&self) -> Budget {
        Budget::ns(P::sleep_cost_ns())
    }
}

/// The queue of the worker that asks.
pub struct Own<'a, Q> {
    pub(super) queue: &'a Q,
    seat: usize,
    /// Of one thread.
    owner: PhantomData<*const ()>,
}

/// The queues of the other workers.
pub struct Others<'a, Q> {
    pub(super) queues: &'a dyn QueuesOf<Q>,
    pub(super) me: usize,
}

/// The queues of all workers, by number.
pub(super) trait QueuesOf<Q> {
    fn count(&self) -> usize;
    fn of(&self, worker: usize) -> &Q;
}

/// The queue of another worker.
#[derive(Debug)]
pub struct Victim<'a, Q>(&'a Q);

impl<'a, Q> Own<'a, Q> {
    /// What is in the queue that the policy knows of: the same queue as what it is, or a part.
    pub(super) fn part<T>(&self, part: impl FnOnce(&'a Q) -> &'a T) -> Own<'a, T> {
        Own { queue: part(self.queue), seat: self.seat, owner: PhantomData }
    }
}

impl<'a, Q: WorkQueue> Own<'a, Q> {
    /// # Safety
    ///
    /// The caller owns the queue, for as long as this is used.
    pub(super) unsafe fn new(queue: &'a Q, seat: usize) -> Self {
        Self { queue, seat, owner: PhantomData }
    }

    /// Which seat the worker has.
    #[must_use]
    pub fn seat(&self) -> usize {
        self.seat
    }

    /// Puts a task in, behind all others.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn push(&self, task: Item) -> Result<(), Full> {
        // SAFETY: `new`; so too below.
        unsafe { self.queue.push(task) }
    }

    /// Lets others have what was put in so far, of a queue that keeps some for its worker; `false`
    /// if there is no room for that.
    pub fn share(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.queue.share() }
    }

    /// Whether thieves find no more here than when this was asked last.
    pub(super) fn keeps_last(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.queue.keeps_last() }
    }

    /// How many tasks the worker has, those included that others don't find; may be stale at once.
    #[must_use]
    pub fn count(&self) -> u64 {
        // SAFETY: as in `push`.
        unsafe { self.queue.own_count() }
    }

    /// Takes the last that was put in.
    #[must_use]
    pub fn pop_back(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        unsafe { self.queue.pop_back() }
    }

    /// Takes the first that was put in.
    #[must_use]
    pub fn pop_front(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        unsafe { self.queue.pop_front() }
    }

    /// Takes as many of the victim's first tasks as `share` says of how many there are, one at
    /// least and half at most, rounded up. A worker that has tasks itself takes the first of those.
    ///
    /// `share` is `'static`, so that it can't hold this queue, and put in meanwhile.
    pub fn steal(&self, victim: Victim<'_, Q>, share: impl FnOnce(u64) -> u64 + 'static) -> Stolen {
        if let Some(task) = self.pop_front() {
            return Stolen::Got(task);
        }
        // SAFETY: as in `push`. It has nothing, and is another queue: `Others` leaves it out.
        // `share` has no `Own`, each of which is borrowed from a worker that runs a policy.
        unsafe { victim.0.steal_into(self.queue, share) }
    }
}

impl<Q: WorkQueue> Victim<'_, Q> {
    /// How many tasks it seems to have, or blocks of them where thieves take those; may be stale at
    /// once.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.0.count()
    }
}

impl<'a, Q> Others<'a, Q> {
    pub(super) fn new(queues: &'a dyn QueuesOf<Q>, me: usize) -> Self {
        Self { queues, me }
    }

    /// How many others there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queues.count() - 1
    }

    /// The other worker that is `rank`th by distance: of numbers one above, one below, two above
    /// and so on, in a ring. Workers are numbered as their CPUs are near each other.
    ///
    /// # Panics
    ///
    /// Unless `rank` is below [`count`](Self::count).
    #[must_use]
    pub fn nearest(&self, rank: usize) -> Victim<'a, Q> {
        assert!(rank < self.count(), "{rank} of {} others", self.count());
        let (step, all) = (rank / 2 + 1, self.queues.count());
        let number = if rank.is_multiple_of(2) { self.me + step } else { self.me + all - step };
        Victim(self.queues.of(number % all))
    }

    /// The worker of this number; `None` if that is who asks, or there is no such.
    #[must_use]
    pub fn worker(&self, number: usize) -> Option<Victim<'a, Q>> {
        let is_other = number < self.queues.count() && number != self.me;
        is_other.then(|| Victim(self.queues.of(number)))
    }

    /// Has `steal` try the others of these ranks until one has something. [`Stolen::Retry`] if none
    /// had, but one might.
    pub fn try_each(
        &self,
        ranks: impl Iterator<Item = usize>,
        mut steal: impl FnMut(Victim<'a, Q>) -> Stolen,
    ) -> Stolen {
        let mut told = Stolen::Empty;
        for rank in ranks {
            match steal(self.nearest(rank)) {
                Stolen::Empty => {}
                Stolen::Retry => told = Stolen::Retry,
                got @ Stolen::Got(_) => return got,
            }
        }
        told
    }
}
