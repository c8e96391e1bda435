//! A thread's answers about its fibers.

use std::ptr::NonNull;

use antiphon_platform::Deadline;

use super::super::census::{Answer, Lock, Question, Wait};
use super::super::control::{Fiber, Order, Said, Told};
use super::super::current;
use super::Host;

impl Host {
    #[cold]
    pub(super) fn answer(&self, question: &Question) {
        let mut answer = Answer { ready: self.ready.iter().count(), ..Answer::default() };
        // The turn in which this is asked is counted already, also if no fiber runs in it.
        answer.moved = self.turn().wrapping_sub(self.in_vain.get());
        // While a fiber reports, no other code runs on the thread.
        for &fiber in self.all.borrow().iter() {
            let Some(sleep) = fiber.get().sleep.get() else { continue };
            // A deadline that can't be represented never comes.
            let ends = |deadline: Deadline| deadline.ns < u64::MAX && !sleep.looks_again;
            let has_deadline = sleep.deadline.is_some_and(ends);
            answer.waiting += 1;
            answer.with_deadline += usize::from(has_deadline);
            if answer.waits.len() < question.most {
                let (Told { backtrace, stack }, lock) = (told(fiber), sleep.lock.map(Lock::of));
                answer.waits.push(Wait { backtrace, has_deadline, lock, stack });
            }
        }
        answer.no_stack = self.dry.get().map(|dry| dry.why.to_string());
        answer.for_files = self.polls.count().min(answer.waiting);
        // The asker may be gone.
        let _: Result<(), _> = question.answer.try_send(answer);
    }
}

/// Asks a fiber of the calling thread where it waits.
fn told(fiber: Fiber) -> Told {
    let mut told = Told::default();
    let place = NonNull::from(&mut told);
    if current::current_fiber() == Some(fiber) {
        // The fiber waits without switching away from its stack: see `wait_here`.
        fiber.tell(place);
        return told;
    }
    // SAFETY: the fiber waits and does not run, so it is suspended; and `told` exists until the
    // fiber switches away.
    let said = unsafe { fiber.switch(Order::Tell(place)) };
    debug_assert!(matches!(said, Some(Said::Told)), "it waits on");
    told
}
