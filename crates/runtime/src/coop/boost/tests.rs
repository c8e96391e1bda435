//! The helper's states, one by one: with times and a system that the test supplies.

extern crate std;

use alloc::vec::Vec;
use core::cell::RefCell;

use antiphon_linux::Linux;
use antiphon_platform::ThreadId;

use super::{Boosts, Borrower, Helper, NEVER, Own, Place, Raise, Times};
use crate::coop::{Demotion, Options};

const MS: u64 = 1_000_000;
const LOOP: ThreadId = ThreadId(7);

/// Which threads are raised, and how long the one thread has run.
#[derive(Default)]
struct World {
    raised: Vec<ThreadId>,
    ran_ns: Option<u64>,
    refuses: bool,
    /// Whether the thread that was last raised is behind the others.
    behind: bool,
}

struct System<'a>(&'a RefCell<World>);

impl Raise for System<'_> {
    type Before = ();

    fn raise(&mut self, thread: ThreadId, behind: bool) -> Option<((), u64)> {
        let mut world = self.0.borrow_mut();
        world.behind = behind;
        if world.refuses {
            return None;
        }
        assert!(!world.raised.contains(&thread), "raised twice");
        world.raised.push(thread);
        Some(((), world.ran_ns?))
    }

    fn lower(&mut self, thread: ThreadId, (): ()) -> Option<u64> {
        let mut world = self.0.borrow_mut();
        let at = world.raised.iter().position(|&one| one == thread).expect("it was raised");
        world.raised.swap_remove(at);
        world.ran_ns
    }

    fn ran_ns(&mut self, _: ThreadId) -> Option<u64> {
        self.0.borrow().ran_ns
    }
}

/// One loop whose timer is due at 1 ms, and a helper with a slack of 1 ms.
fn with(test: impl FnOnce(&Boosts<Linux>, Place, &RefCell<World>, Helper<'_, Linux, System<'_>>)) {
    let world = RefCell::new(World { ran_ns: Some(0), ..World::default() });
    let boosts = Boosts::new(2);
    let place = boosts.sit(LOOP).expect("there is room");
    boosts.publish(&place, Some(MS), 0);
    test(&boosts, place, &world, Helper::new(&boosts, Options::default(), System(&world)));
}

/// Calls `look` from 1 ms on, whenever the helper wants to. Returns when it would look next.
fn looks_until(helper: &mut Helper<'_, Linux, System<'_>>, end: u64) -> u64 {
    let mut at = MS;
    while at < end {
        at = helper.look(at);
    }
    at
}

#[test]
fn who_is_late_is_raised_until_it_has_dispatched() {
    with(|boosts, place, world, mut helper| {
        assert_eq!(helper.look(MS / 2), MS);
        assert!(world.borrow().raised.is_empty());
        assert_eq!(helper.look(MS), 2 * MS);
        assert_eq!(world.borrow().raised, [LOOP]);
        world.borrow_mut().ran_ns = Some(MS / 4);
        boosts.publish(&place, Some(9 * MS), 0);
        assert_eq!(helper.look(MS + MS / 4), 9 * MS);
        assert!(world.borrow().raised.is_empty());
        assert_eq!(boosts.borrowed(&place), (1, MS / 4));
        boosts.publish(&place, None, 0);
        assert_eq!(helper.look(9 * MS), NEVER);
    });
}

#[test]
fn who_runs_beyond_the_slack_is_lowered_for_a_while() {
    with(|boosts, place, world, mut helper| {
        helper.look(MS);
        world.borrow_mut().ran_ns = Some(MS - 100_000);
        let again = helper.look(2 * MS);
        assert!(again > 2 * MS && again <= 3 * MS, "it has not had its slack: {again}");
        world.borrow_mut().ran_ns = Some(MS + 25_000);
        assert_eq!(helper.look(again), again + MS / 4);
        assert!(world.borrow().raised.is_empty());
        assert_eq!(boosts.counts(&place).demotions, [1, 0, 0]);
        assert_eq!(helper.look(again + MS / 8), again + MS / 4, "it pauses");
        // That was no overrun of the loop: the loop is helped, and dispatches.
        assert_eq!(helper.look(again + MS / 4), again + MS / 4 + MS);
        assert_eq!(world.borrow().raised, [LOOP]);
        assert!(world.borrow().behind, "others that are raised do not wait for it again");
        assert_eq!(helper.look(again + MS / 2), again + MS / 4 + MS);
        assert!(world.borrow().behind);
        boosts.publish(&place, Some(MS), 0);
        assert_eq!(helper.look(again + MS / 2), again + MS / 2 + MS);
        assert_eq!(world.borrow().raised, [LOOP], "it has polled, and is late again");
        assert!(!world.borrow().behind, "as any other that is late");
        assert_eq!(boosts.counts(&place).demotions, [1, 0, 0]);
    });
}

#[test]
fn who_polls_is_helped_without_a_pause() {
    with(|boosts, place, world, mut helper| {
        helper.look(MS);
        world.borrow_mut().ran_ns = Some(MS);
        assert_eq!(helper.look(2 * MS), 2 * MS + MS / 4);
        boosts.publish(&place, Some(MS), 0);
        helper.look(2 * MS + 1);
        assert_eq!(world.borrow().raised, [LOOP]);
        assert!(!world.borrow().behind);
        // The next pause is as short as the first.
        world.borrow_mut().ran_ns = Some(2 * MS);
        assert_eq!(helper.look(4 * MS), 4 * MS + MS / 4);
    });
}

#[test]
fn who_never_polls_is_raised_ever_more_seldom() {
    with(|boosts, place, world, mut helper| {
        let mut at = MS;
        while at < 101 * MS {
            if !world.borrow().raised.is_empty() {
                // The loop is raised, so it has run all the time from the last look on.
                let ran_ns = world.borrow().ran_ns.map(|ran_ns| ran_ns + MS);
                world.borrow_mut().ran_ns = ran_ns;
            }
            at = helper.look(at);
        }
        // BOOST-6.
        let counts = boosts.counts(&place);
        assert_eq!((counts.demotions, counts.borrowed_ns), ([9, 0, 0], 9 * MS));
    });
}

#[test]
fn who_sleeps_while_it_is_raised_is_lowered_for_a_while() {
    with(|boosts, place, world, mut helper| {
        let at = looks_until(&mut helper, 11 * MS);
        assert_eq!((boosts.counts(&place).demotions, at), ([0, 0, 0], 11 * MS));
        assert_eq!(helper.look(at), at + MS / 4);
        assert!(world.borrow().raised.is_empty());
        assert_eq!(boosts.counts(&place).demotions, [0, 1, 0]);
        // The loop may have been kept from running by others: it is helped again.
        let at = at + MS / 4;
        assert_eq!(helper.look(at), at + MS);
        assert_eq!(world.borrow().raised, [LOOP]);
        // Behind others that went on, the loop had no CPU time either: its pause does not grow for
        // that.
        let mut at = at + MS;
        while !world.borrow().raised.is_empty() {
            at = helper.look(at);
        }
        assert_eq!((boosts.counts(&place).demotions, at), ([0, 2, 0], 21 * MS + MS / 2));
    });
}

/// BOOST-7: a delay of the helper does not count as sleep.
#[test]
fn who_could_not_run_as_little_as_the_helper_has_not_slept() {
    with(|boosts, place, world, mut helper| {
        assert_eq!(helper.look(MS), 2 * MS);
        assert_eq!(helper.look(30 * MS), 31 * MS, "the helper was 28 ms late");
        assert_eq!(world.borrow().raised, [LOOP]);
        // Two of the ten slacks are over.
        let mut at = 31 * MS;
        while !world.borrow().raised.is_empty() {
            at = helper.look(at);
        }
        assert_eq!((boosts.counts(&place).demotions, at), ([0, 1, 0], 39 * MS + MS / 4));
    });
}

#[test]
fn who_polls_has_not_slept() {
    with(|boosts, place, world, mut helper| {
        let at = looks_until(&mut helper, 11 * MS);
        // After nine of ten slacks; and the loop is late again.
        boosts.publish(&place, Some(MS), 0);
        assert_eq!(helper.look(at), at + MS);
        assert_eq!(world.borrow().raised, [LOOP]);
        assert_eq!(boosts.counts(&place).demotions, [0; 3]);
    });
}

/// BOOST-4: a loop that owes more than the threshold is not raised.
#[test]
fn what_was_lent_since_the_last_poll_is_owed_too() {
    let half = Options::default().threshold_ns / 2;
    with(|boosts, place, world, mut helper| {
        boosts.publish(&place, Some(MS), half);
        helper.look(MS);
        world.borrow_mut().ran_ns = Some(half + 1);
        let again = helper.look(2 * MS);
        assert_eq!(boosts.counts(&place).demotions, [1, 0, 0]);
        assert_eq!(helper.look(again), NEVER);
        assert!(world.borrow().raised.is_empty());
        assert_eq!(boosts.counts(&place).demotions, [1, 0, 1]);
    });
}

#[test]
fn who_owes_too_much_is_not_raised() {
    let too_much = Options::default().threshold_ns + 1;
    with(|boosts, place, world, mut helper| {
        boosts.publish(&place, Some(MS), too_much);
        assert_eq!((helper.look(MS), helper.look(2 * MS)), (NEVER, NEVER));
        boosts.publish(&place, Some(MS), too_much);
        assert_eq!(helper.look(3 * MS), NEVER);
        assert!(world.borrow().raised.is_empty());
        assert_eq!(boosts.counts(&place).demotions[Demotion::Share as usize], 1);
        boosts.publish(&place, Some(MS), 0);
        helper.look(4 * MS);
        assert_eq!(world.borrow().raised, [LOOP]);
    });
}

/// The loop is late and runs, once per millisecond; the helper looks then.
fn runs_for_100_ms(
    world: &RefCell<World>,
    helper: &mut Helper<'_, Linux, System<'_>>,
    mut does: impl FnMut(),
) {
    helper.look(MS);
    for ms in 1..=100 {
        world.borrow_mut().ran_ns = Some(ms * MS);
        does();
        helper.look((ms + 1) * MS);
    }
}

#[test]
fn timers_that_are_always_late_are_not_before_others_for_good() {
    with(|boosts, place, world, mut helper| {
        // The loop polls, and its next timer is late already; half of what it borrows is owed.
        runs_for_100_ms(world, &mut helper, || {
            boosts.publish(&place, Some(MS), boosts.borrowed(&place).1 / 2);
        });
        assert!(world.borrow().raised.is_empty());
        let counts = boosts.counts(&place);
        let [overrun, slept, share] = counts.demotions;
        assert!((overrun, slept) == (0, 0) && share > 0, "{counts:?}");
        let most_ns = 2 * (Options::default().threshold_ns + 2 * MS);
        assert!(counts.borrowed_ns <= most_ns, "{counts:?}");
    });
}

/// A thread whose system reports no times.
struct Nobody;

impl Own for Nobody {
    fn ran_ns(&mut self) -> u64 {
        0
    }

    fn times(&mut self) -> Option<Times> {
        None
    }
}

/// BOOST-4 holds between two polls, too.
#[test]
fn timers_that_are_dispatched_without_a_poll_are_not_before_others_for_good() {
    with(|boosts, place, world, mut helper| {
        let mut borrower = Borrower::new(boosts, &place, Nobody);
        runs_for_100_ms(world, &mut helper, || borrower.tell(boosts, &place, Some(MS)));
        assert!(world.borrow().raised.is_empty());
        let counts = boosts.counts(&place);
        assert!(counts.demotions[Demotion::Share as usize] > 0, "{counts:?}");
        let most_ns = Options::default().threshold_ns + 2 * MS;
        assert!((MS..=most_ns).contains(&counts.borrowed_ns), "{counts:?}");
    });
}

#[test]
fn who_leaves_is_lowered_and_its_seat_is_anothers() {
    with(|boosts, place, world, mut helper| {
        helper.look(MS);
        std::thread::scope(|scope| {
            let leaves = scope.spawn(|| boosts.leave(place));
            while !world.borrow().raised.is_empty() {
                helper.look(MS);
            }
            leaves.join().expect("it leaves");
        });
        let next = ThreadId(8);
        let place = boosts.sit(next).expect("there is room");
        assert_eq!(helper.look(2 * MS), NEVER);
        boosts.publish(&place, Some(MS), 0);
        helper.look(2 * MS);
        assert_eq!(world.borrow().raised, [next]);
        assert!(boosts.sit(ThreadId(9)).is_some() && boosts.sit(ThreadId(10)).is_none());
    });
}

#[test]
fn nobody_stays_raised_when_the_helper_ends_or_the_thread_has() {
    with(|_, _, world, mut helper| {
        helper.look(MS);
        drop(helper);
        assert!(world.borrow().raised.is_empty());
    });
    with(|boosts, place, world, mut helper| {
        helper.look(MS);
        world.borrow_mut().ran_ns = None;
        assert_eq!(helper.look(2 * MS), NEVER);
        assert_eq!(boosts.borrowed(&place), (1, 0));
    });
}

#[test]
fn who_can_not_be_raised_is_not_tried_again_before_it_polls() {
    with(|boosts, place, world, mut helper| {
        world.borrow_mut().refuses = true;
        assert_eq!((helper.look(MS), helper.look(2 * MS)), (NEVER, NEVER));
        assert_eq!(boosts.counts(&place).refusals, 1);
        boosts.leave(place);
    });
}
