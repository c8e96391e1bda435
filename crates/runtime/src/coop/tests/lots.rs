//! The invariants hold after random events, and the start of virtual time changes nothing.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::lines;
use crate::coop::{
    Group, Head, Member, Members, Options, Pick, Scheduler, Standing, State, Table, VirtualTime,
};

/// An event of a random run.
#[derive(Clone, Debug)]
enum Happens {
    Join { group: u8, weight: u32 },
    Leave { who: usize },
    Poll { ran_ns: u64, release_in_ns: Option<i64>, importance: Option<u64> },
    Block { ran_ns: u64 },
    Wake { who: usize },
    Preempt { ran_ns: u64 },
    Expire { ran_ns: u64 },
    Pick { later_ns: u64 },
}

fn happens() -> impl Strategy<Value = Happens> {
    use proptest::option::of;
    let ran = || 0..30_000_000u64;
    let weight = prop_oneof![1..90_000u32, 1..20u32];
    prop_oneof![
        2 => (0..4u8, weight).prop_map(|(group, weight)| Happens::Join { group, weight }),
        1 => (0..16usize).prop_map(|who| Happens::Leave { who }),
        6 => (ran(), of(-1_000_000..30_000_000i64), of(0..100u64))
            .prop_map(|(ran_ns, release_in_ns, importance)| {
                Happens::Poll { ran_ns, release_in_ns, importance }
            }),
        1 => ran().prop_map(|ran_ns| Happens::Block { ran_ns }),
        3 => (0..16usize).prop_map(|who| Happens::Wake { who }),
        2 => ran().prop_map(|ran_ns| Happens::Preempt { ran_ns }),
        2 => ran().prop_map(|ran_ns| Happens::Expire { ran_ns }),
        8 => (0..10_000_000u64).prop_map(|later_ns| Happens::Pick { later_ns }),
    ]
}

/// A scheduler whose virtual time begins at a given value, and a clock.
struct World<T: Table = Members> {
    scheduler: Scheduler<T>,
    now_ns: u64,
}

impl World {
    fn new(begins: u64) -> Self {
        Self::over(Members::new(), begins)
    }
}

impl<T: Table> World<T> {
    fn over(mut table: T, begins: u64) -> Self {
        table.set_head(Head { least: VirtualTime(begins), ..Head::default() });
        Self { scheduler: Scheduler::new(table, Options::default()), now_ns: 1 << 40 }
    }

    /// Applies an event; returns the scheduler's answer.
    fn does(&mut self, what: &Happens) -> (Option<Pick>, Option<Standing>) {
        let running = self.scheduler.table().head().running.map(|running| running.id);
        match (what, running) {
            (Happens::Join { group, weight }, _) => {
                let group = match group {
                    0 => Group::Own,
                    n => Group::Number(u32::from(*n)),
                };
                self.scheduler.join(Member::new(group, *weight));
            }
            (Happens::Leave { who }, _) => self.scheduler.leave(*who, 1000),
            (Happens::Wake { who }, _) => self.scheduler.wake(*who),
            (Happens::Poll { ran_ns, release_in_ns, importance }, Some(id)) => {
                let release = release_in_ns.map(|ns| self.now_ns.saturating_add_signed(ns));
                return (None, Some(self.scheduler.poll(id, *ran_ns, release, *importance)));
            }
            (Happens::Block { ran_ns }, Some(id)) => self.scheduler.block(id, *ran_ns),
            (Happens::Preempt { ran_ns }, Some(id)) => self.scheduler.preempt(id, *ran_ns),
            (Happens::Expire { ran_ns }, Some(_)) => {
                let until = self.scheduler.table().head().running.map(|r| r.until_ns);
                self.now_ns = self.now_ns.max(until.unwrap_or(0));
                let demoted = self.scheduler.expire(self.now_ns, *ran_ns);
                return (None, demoted.map(Standing::Demoted));
            }
            (Happens::Pick { later_ns }, _) => {
                self.now_ns += later_ns;
                return (Some(self.scheduler.pick(self.now_ns)), None);
            }
            (_, None) => {}
        }
        (None, None)
    }

    /// Checks the invariants after any event, and after the pick `pick`.
    fn check(&self, before: Head, pick: Option<Pick>) -> Result<(), TestCaseError> {
        let (scheduler, options) = (&self.scheduler, self.scheduler.options());
        let head = scheduler.table().head();
        let members: Vec<_> = scheduler.members().collect();
        prop_assert!(head.least.ahead_ns(before.least) >= 0, "COOP-3");
        for (id, one) in &members {
            let wants = matches!(one.state, State::Ready | State::Running);
            let ahead = one.virtual_time.ahead_ns(head.least);
            prop_assert!(!wants || ahead >= 0, "COOP-4: {one:?} is {ahead} ns ahead");
            let running = head.running.is_some_and(|running| running.id == *id);
            prop_assert_eq!(running, one.state == State::Running);
            for (_, other) in &members {
                let same = one.group != Group::Own && one.group == other.group;
                prop_assert!(!same || one.virtual_time == other.virtual_time, "COOP-2");
            }
        }
        match pick {
            Some(Pick::Idle { until_ns }) => {
                let ready = members.iter().any(|(_, m)| m.state == State::Ready);
                prop_assert!(!ready, "idle while somebody is ready");
                prop_assert!(until_ns.is_none_or(|at| at > self.now_ns), "idle until the past");
            }
            Some(Pick::Run { id, due, slice_end_ns, until_ns }) => {
                let (_, picked) = members.iter().find(|(other, _)| *other == id).expect("a member");
                let earlier = members.iter().filter(|(other, m)| {
                    let at = m.release_ns.filter(|_| m.standing == Standing::Cooperative);
                    *other != id
                        && m.state == State::Ready
                        && at.is_some_and(|at| at <= self.now_ns)
                });
                for (_, other) in earlier {
                    prop_assert!(due && picked.release_ns <= other.release_ns, "not the earliest");
                }
                let ahead = picked.virtual_time.ahead_ns(head.least);
                let believed = ahead <= options.threshold_ns as i64;
                prop_assert!(!due || believed, "COOP-5: due, and {ahead} ns ahead");
                prop_assert!(due || ahead == 0, "neither due nor last: {ahead} ns ahead");
                prop_assert!(slice_end_ns <= self.now_ns + options.period_ns);
                prop_assert!(until_ns >= self.now_ns + options.min_slice_ns);
                prop_assert!(until_ns <= slice_end_ns + options.slack_ns.max(options.min_slice_ns));
            }
            None => {}
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_invariants_hold(begins: u64, all in proptest::collection::vec(happens(), 1..200)) {
        let mut world = World::new(begins);
        for what in &all {
            let before = world.scheduler.table().head();
            let (pick, _) = world.does(what);
            world.check(before, pick)?;
        }
    }

    /// Checks that the invariants hold for lines that processes share, too.
    #[test]
    fn the_invariants_hold_of_a_page(
        begins: u64,
        all in proptest::collection::vec(happens(), 1..200),
    ) {
        let mut world = World::over(lines(), begins);
        for what in &all {
            let before = world.scheduler.table().head();
            let (pick, _) = world.does(what);
            world.check(before, pick)?;
        }
    }

    /// COOP-1: where virtual time begins, and whether it wraps around, changes no answer.
    #[test]
    fn virtual_time_may_wrap_around(
        before_the_end in 0..200_000_000_000u64,
        all in proptest::collection::vec(happens(), 1..200),
    ) {
        let mut from_zero = World::new(0);
        let mut wraps = World::new(0u64.wrapping_sub(before_the_end));
        for what in &all {
            prop_assert_eq!(from_zero.does(what), wraps.does(what));
        }
    }
}
