//! Policies: which task a worker runs next, from which worker it steals, and where it puts tasks
//! that do not fit in its queue.

use core::marker::PhantomData;

use antiphon_platform::{Budget, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen, WorkQueue};

/// A scheduling policy. It is a value whose type the workers know, so calls to it can be inlined.
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
/// The policy puts each task that it is given into exactly one place, or gives it back. Each task
/// that it hands out or gives back was given to it, and is no longer in any place. So it makes up
/// no [`Item`], and duplicates none. (It may forget one: that task never runs, but nothing else is
/// harmed.)
pub unsafe trait Policy<P: Platform>: Send + Sync {
    /// The queue of each worker.
    type Queue: WorkQueue + Send + Sync;
    /// The state that each worker keeps between decisions; it holds no tasks. The next worker in
    /// the same seat begins with a default one.
    type State: Default + Send;

    /// An empty queue.
    fn queue(&self) -> Self::Queue;

    /// Queues a task that has become ready. It may have a rank: a deadline, a priority, a stage.
    /// The policy defines its meaning; most policies ignore it.
    ///
    /// # Errors
    ///
    /// If the queue of the worker is full; [`overflow`](Self::overflow) is called next.
    fn push(
        &self,
        own: &Own<'_, Self::Queue>,
        _state: &mut Self::State,
        task: Item,
        _rank: Option<u64>,
    ) -> Result<(), Full> {
        own.push(task)
    }

    /// Queues a task from outside: by default in the shared queue, from which all workers take.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, _rank: Option<u64>) -> Result<(), Full> {
        shared.push(task)
    }

    /// Returns whether the policy's own queues, from which every worker takes, seem to hold a task.
    /// No worker sleeps while they do.
    fn has_tasks(&self) -> bool {
        false
    }

    /// Takes a task out of the policy's own queues after all workers have ended.
    fn take_left(&self) -> Option<Item> {
        None
    }

    /// Takes the task to run next from the worker's own queue.
    fn pop(&self, own: &Own<'_, Self::Queue>, state: &mut Self::State) -> Option<Item>;

    /// Steals for a worker without tasks: returns the first task, and puts further ones, if there
    /// are any, into its own queue. [`Stolen::Retry`] means that there are tasks and the worker
    /// should try again.
    ///
    /// Must be short: no other worker is woken meanwhile.
    fn steal(
        &self,
        own: &Own<'_, Self::Queue>,
        state: &mut Self::State,
        others: &Others<'_, Self::Queue>,
    ) -> Stolen;

    /// Queues a task for which the worker had no room: by default in the shared queue of tasks from
    /// outside, where all workers find it.
    ///
    /// # Errors
    ///
    /// If that queue is full, too; the caller that made the task then decides.
    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        shared.push(task)
    }

    /// Returns how long a worker without tasks spins before it sleeps, if there are no more threads
    /// than CPUs.
    fn idle(&self) -> Budget {
        Budget::ns(P::sleep_cost_ns())
    }
}

/// The queue of the calling worker.
pub struct Own<'a, Q> {
    pub(super) queue: &'a Q,
    seat: usize,
    /// Not `Send`: the queue belongs to one thread.
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
    /// The part of the queue that the policy uses: the whole queue, or a part.
    pub(super) fn part<T>(&self, part: impl FnOnce(&'a Q) -> &'a T) -> Own<'a, T> {
        Own { queue: part(self.queue), seat: self.seat, owner: PhantomData }
    }
}

impl<'a, Q: WorkQueue> Own<'a, Q> {
    /// # Safety
    ///
    /// The caller owns the queue for as long as this is used.
    pub(super) unsafe fn new(queue: &'a Q, seat: usize) -> Self {
        Self { queue, seat, owner: PhantomData }
    }

    /// Returns the seat of the worker.
    #[must_use]
    pub fn seat(&self) -> usize {
        self.seat
    }

    /// Appends a task to the queue.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn push(&self, task: Item) -> Result<(), Full> {
        // SAFETY: the caller of `new` owns the queue while this exists.
        unsafe { self.queue.push(task) }
    }

    /// Publishes the tasks appended so far, for a queue that keeps some private to its worker.
    /// Returns `false` if there is no room for that.
    pub fn share(&self) -> bool {
        // SAFETY: the caller of `new` owns the queue.
        unsafe { self.queue.share() }
    }

    /// Returns whether thieves find no more tasks here than at the last call.
    pub(super) fn keeps_last(&self) -> bool {
        // SAFETY: the caller of `new` owns the queue.
        unsafe { self.queue.keeps_last() }
    }

    /// Returns the number of tasks in the queue, private ones included. May be stale at once.
    #[must_use]
    pub fn count(&self) -> u64 {
        // SAFETY: the caller of `new` owns the queue.
        unsafe { self.queue.own_count() }
    }

    /// Takes the task that was appended last.
    #[must_use]
    pub fn pop_back(&self) -> Option<Item> {
        // SAFETY: the caller of `new` owns the queue.
        unsafe { self.queue.pop_back() }
    }

    /// Takes the task that was appended first.
    #[must_use]
    pub fn pop_front(&self) -> Option<Item> {
        // SAFETY: the caller of `new` owns the queue.
        unsafe { self.queue.pop_front() }
    }

    /// Steals the victim's oldest tasks. `share` gets their number and returns how many to take,
    /// which is limited to between one and half, rounded up. The thief gets the oldest of its own
    /// tasks instead if it has any.
    ///
    /// `share` is `'static`, so it cannot hold this queue and append to it meanwhile.
    pub fn steal(&self, victim: Victim<'_, Q>, share: impl FnOnce(u64) -> u64 + 'static) -> Stolen {
        if let Some(task) = self.pop_front() {
            return Stolen::Got(task);
        }
        // SAFETY: the caller of `new` owns the queue. It is empty, and not the victim's: `Others`
        // leaves it out. `share` has no `Own`, each of which is borrowed from a worker that runs a
        // policy.
        unsafe { victim.0.steal_into(self.queue, share) }
    }
}

impl<Q: WorkQueue> Victim<'_, Q> {
    /// Returns the number of tasks that the victim seems to have (of blocks of tasks, if thieves
    /// take blocks). May be stale at once.
    #[must_use]
    pub fn tasks(&self) -> u64 {
        self.0.count()
    }
}

impl<'a, Q> Others<'a, Q> {
    pub(super) fn new(queues: &'a dyn QueuesOf<Q>, me: usize) -> Self {
        Self { queues, me }
    }

    /// Returns the number of other workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.queues.count() - 1
    }

    /// Returns the other worker at this rank of distance: one above, one below, two above and so
    /// on, by number, in a ring. Workers have neighbouring numbers if their CPUs are near each
    /// other.
    ///
    /// # Panics
    ///
    /// If `rank` is not below [`count`](Self::count).
    #[must_use]
    pub fn nearest(&self, rank: usize) -> Victim<'a, Q> {
        assert!(rank < self.count(), "{rank} of {} others", self.count());
        let (step, all) = (rank / 2 + 1, self.queues.count());
        let number = if rank.is_multiple_of(2) { self.me + step } else { self.me + all - step };
        Victim(self.queues.of(number % all))
    }

    /// Returns the worker of this number; `None` if it is the caller, or if there is none.
    #[must_use]
    pub fn worker(&self, number: usize) -> Option<Victim<'a, Q>> {
        let is_other = number < self.queues.count() && number != self.me;
        is_other.then(|| Victim(self.queues.of(number)))
    }

    /// Calls `steal` for the other workers at these ranks until one has a task. Returns
    /// [`Stolen::Retry`] if none had one, but one might have.
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
