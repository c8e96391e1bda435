//! Several policies, of which one is active; another can take over from the next decision on.
//!
//! - SWAP-1: a task stays in a queue of the policy that it was given to, and that policy hands it
//!   out. So a change of policy moves no task and stops no worker.
//! - SWAP-2: a worker that sees a new policy in charge first asks the others until they have no
//!   task for it. It does so again after a theft from their queues, and every `EVERY` tasks, for
//!   tasks queued by threads that had not seen the change. So tasks that were ready before do not
//!   starve.
//!   starve.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Budget, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use super::boxed::{AnyState, BoxedPolicy};
use super::policy::{Others, Own, Policy};
use super::several::{Parts, Several};

/// Policies of which one is in charge: at first the first one, until
/// [`put_in_charge`](Self::put_in_charge) changes that, at any time, while workers run.
///
/// Each worker follows from its next decision on: tasks made ready then go to the new policy. Tasks
/// that are ready already are handed out first, by the policy that they were given to. A worker has
/// a queue for each policy, and a decision costs as much as for a [`BoxedPolicy`], plus a read of a
/// word.
///
/// ```
/// use antiphon_runtime::sched::{BoxedPolicy, Swap};
/// # type P = antiphon_linux::Linux;
///
/// let named = |name: &str| name.parse::<BoxedPolicy<P>>();
/// let policy = Swap::new([named("lifo")?, named("fifo/neighbours-13")?]);
/// policy.put_in_charge(1);
/// assert_eq!(policy.in_charge(), 1);
/// # Ok::<(), antiphon_runtime::sched::UnknownPolicy>(())
/// ```
pub struct Swap<P: Platform> {
    policies: Box<[BoxedPolicy<P>]>,
    in_charge: P::U32,
}

/// The state of a worker: the state of each policy, which policy was in charge at its last check,
/// how many tasks it has asked for, and whether policies other than that one may have some.
#[derive(Default)]
pub struct Charge {
    states: Box<[AnyState]>,
    seen: usize,
    asked: u32,
    left: bool,
}

/// Period, in tasks, at which a worker asks the policies that are not in charge.
const EVERY: u32 = 61;

impl<P: Platform> Swap<P> {
    /// Creates a swap of these policies, with the first in charge.
    ///
    /// # Panics
    ///
    /// If there are no policies, or more than 2³².
    pub fn new(policies: impl IntoIterator<Item = BoxedPolicy<P>>) -> Self {
        let policies: Box<[_]> = policies.into_iter().collect();
        assert!(!policies.is_empty(), "no policy to be in charge");
        assert!(u32::try_from(policies.len()).is_ok(), "{} policies", policies.len());
        Self { policies, in_charge: P::U32::ZERO }
    }

    /// Puts the policy of number `policy` in charge from now on (0 is the first); `false` if there
    /// is none. Does not block. A worker follows at its next decision: one that runs a long task
    /// does so later.
    #[must_use = "there may be no such policy"]
    pub fn put_in_charge(&self, policy: usize) -> bool {
        let is_one = policy < self.policies.len();
        if is_one {
            // Relaxed: nothing is handed over; all policies have been there from the beginning.
            self.in_charge.store(policy as u32, Relaxed);
        }
        is_one
    }

    /// Returns the number of the policy in charge.
    #[must_use]
    pub fn in_charge(&self) -> usize {
        // Relaxed: as in `put_in_charge`.
        self.in_charge.load(Relaxed) as usize
    }

    fn present(&self) -> &BoxedPolicy<P> {
        &self.policies[self.in_charge()]
    }

    /// Returns the policy in charge, as the worker sees it now.
    fn follow(&self, charge: &mut Charge) -> usize {
        let now = self.in_charge();
        if charge.states.is_empty() {
            charge.states = self.policies.iter().map(|_| AnyState::default()).collect();
            // For tasks that the previous worker of the seat has left.
            charge.left = true;
        }
        charge.left |= charge.seen != now;
        charge.seen = now;
        now
    }

    /// Returns all policies but the one in charge.
    fn others(&self, present: usize) -> impl Iterator<Item = (usize, &BoxedPolicy<P>)> {
        self.policies.iter().enumerate().filter(move |&(which, _)| which != present)
    }
}

// SAFETY: a task goes to one policy, and comes from one, each of which keeps the contract.
unsafe impl<P: Platform> Policy<P> for Swap<P> {
    type Queue = Several<P>;
    type State = Charge;

    fn queue(&self) -> Several<P> {
        Several::new(self.policies.iter().map(Policy::queue).collect())
    }

    fn push(
        &self,
        own: &Own<'_, Several<P>>,
        charge: &mut Charge,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        let now = self.follow(charge);
        own.turn_to(now);
        self.policies[now].push(&own.of(now), &mut charge.states[now], task, rank)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.present().submit(shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        self.policies.iter().any(Policy::has_tasks)
    }

    fn take_left(&self) -> Option<Item> {
        self.policies.iter().find_map(Policy::take_left)
    }

    fn pop(&self, own: &Own<'_, Several<P>>, charge: &mut Charge) -> Option<Item> {
        let now = self.follow(charge);
        let Charge { states, asked, left, .. } = charge;
        *asked = asked.wrapping_add(1);
        if *left || asked.is_multiple_of(EVERY) {
            // SWAP-2.
            let mut others = self.others(now);
            let task = others.find_map(|(it, policy)| policy.pop(&own.of(it), &mut states[it]));
            *left = task.is_some();
            if *left {
                return task;
            }
        }
        self.policies[now].pop(&own.of(now), &mut states[now])
    }

    fn steal(
        &self,
        own: &Own<'_, Several<P>>,
        charge: &mut Charge,
        others: &Others<'_, Several<P>>,
    ) -> Stolen {
        let now = self.follow(charge);
        let mut ask = |it: usize, policy: &BoxedPolicy<P>| {
            let parts = Parts::new(others.queues, it);
            let others = Others::new(&parts, others.me);
            policy.steal(&own.of(it), &mut charge.states[it], &others)
        };
        let mut told = Stolen::Empty;
        for (it, policy) in self.others(now) {
            match ask(it, policy) {
                Stolen::Empty => {}
                Stolen::Retry => told = Stolen::Retry,
                got @ Stolen::Got(_) => {
                    // SWAP-2: other tasks may have come with it.
                    charge.left = true;
                    return got;
                }
            }
        }
        match ask(now, &self.policies[now]) {
            Stolen::Empty => told,
            got => got,
        }
    }

    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        self.present().overflow(shared, task)
    }

    fn idle(&self) -> Budget {
        self.present().idle()
    }
}

#[cfg(test)]
mod tests {
    use antiphon_linux::Linux;

    use super::*;
    use crate::sched::{
        Crew, Deadlines, Fifo, Lifo, Order, Put, Ranked, Scheme, Share, Steal, Worker,
    };

    const HALF: Steal = Steal { share: Share::Half };

    fn item(number: u64) -> Item {
        Item::new(8 * (512 + number)).expect("a word for an item")
    }

    fn number(item: Item) -> u64 {
        item.word() / 8 - 512
    }

    fn boxed(order: impl Order + 'static) -> BoxedPolicy<Linux> {
        BoxedPolicy::new(Scheme::new(order, HALF))
    }

    fn push<Y: Policy<Linux>>(worker: &mut Worker<'_, Linux, Y>, tasks: &[u64]) {
        tasks.iter().for_each(|&task| worker.push(item(task), Put::PLAIN).expect("room"));
    }

    fn takes<Y: Policy<Linux>>(worker: &mut Worker<'_, Linux, Y>, tasks: &[u64]) {
        for &task in tasks {
            assert_eq!(worker.try_next_task().map(number), Some(task));
        }
    }

    #[test]
    fn what_was_ready_before_is_next_as_it_would_have_been() {
        let crew = Crew::<Linux, _>::new(Swap::new([boxed(Lifo), boxed(Fifo)]), 1, 8);
        let mut worker = crew.worker(0).expect("a seat");
        push(&mut worker, &[1, 2, 3]);
        assert!(crew.policy().put_in_charge(1));
        push(&mut worker, &[4, 5]);
        takes(&mut worker, &[3, 2, 1, 4]);
        // There and back, before the worker asks for anything.
        assert!(crew.policy().put_in_charge(0));
        assert!(crew.policy().put_in_charge(1));
        push(&mut worker, &[6]);
        takes(&mut worker, &[5, 6]);
        assert_eq!(worker.try_next_task(), None);
    }

    #[test]
    fn a_number_without_a_policy_changes_nothing() {
        let swap = Swap::new([boxed(Lifo), boxed(Fifo)]);
        assert!(swap.put_in_charge(1));
        assert!(!swap.put_in_charge(2));
        assert_eq!(swap.in_charge(), 1);
    }

    /// A worker that has not seen the change yet has put the tasks in; a thief that takes them
    /// keeps none back.
    #[test]
    fn others_steal_what_was_ready_before() {
        let crew = Crew::<Linux, _>::new(Swap::new([boxed(Fifo), boxed(Fifo)]), 2, 8);
        let [mut busy, mut thief] = [0, 1].map(|seat| crew.worker(seat).expect("a seat"));
        push(&mut busy, &[1, 2, 3, 4]);
        assert!(crew.policy().put_in_charge(1));
        push(&mut thief, &[5]);
        takes(&mut thief, &[5]);
        assert_eq!(thief.next_task().map(number), Some(1));
        push(&mut thief, &[6]);
        takes(&mut thief, &[2, 6]);
        takes(&mut busy, &[3, 4]);
    }

    /// The task was put in for a policy that is no longer in charge, where all workers take from,
    /// while the other policy has enough for them to do.
    #[test]
    fn what_comes_late_has_its_turn() {
        let ranked = Ranked::<Linux, _>::new(Deadlines { usual_ns: 0 }, 1, 8);
        let policies = [BoxedPolicy::new(ranked), boxed(Lifo)];
        let crew = Crew::<Linux, _>::new(Swap::new(policies), 2, 8);
        let [mut late, mut worker] = [0, 1].map(|seat| crew.worker(seat).expect("a seat"));
        assert!(crew.policy().put_in_charge(1));
        push(&mut worker, &[1]);
        takes(&mut worker, &[1]);
        assert!(crew.policy().put_in_charge(0));
        push(&mut late, &[2]);
        assert!(crew.policy().put_in_charge(1));
        push(&mut worker, &[3]);
        let ran = (0..2 * EVERY).map(|_| {
            let task = worker.try_next_task().expect("there is always one");
            worker.push(task, Put::PLAIN).expect("room");
            number(task)
        });
        assert!(ran.into_iter().any(|task| task == 2));
    }

    /// The tasks are of a policy that is not in charge: only the worker that has the seat looks
    /// there.
    #[test]
    fn who_comes_next_has_what_is_there() {
        let crew = Crew::<Linux, _>::new(Swap::new([boxed(Fifo), boxed(Fifo)]), 1, 8);
        let mut worker = crew.worker(0).expect("a seat");
        push(&mut worker, &[1, 2]);
        assert!(crew.policy().put_in_charge(1));
        drop(worker);
        let mut worker = crew.worker(0).expect("a seat");
        push(&mut worker, &[3]);
        takes(&mut worker, &[1, 2, 3]);
    }

    /// The crew sees the queues of all policies as one queue.
    #[test]
    fn queues_are_one_to_who_does_not_know() {
        let mut crew = Crew::<Linux, _>::new(Swap::new([boxed(Lifo), boxed(Fifo)]), 1, 8);
        let mut worker = crew.worker(0).expect("a seat");
        push(&mut worker, &[1]);
        assert!(crew.policy().put_in_charge(1));
        push(&mut worker, &[2]);
        drop(worker);
        let left = [crew.take_left(), crew.take_left(), crew.take_left()];
        assert_eq!(left.map(|task| task.map(number)), [Some(1), Some(2), None]);
    }
}
