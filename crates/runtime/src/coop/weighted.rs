//! Threads of one group among which the kernel divides a CPU, by weights that they choose.
//!
//! They have lines in a [page](super::Page), as the threads with a baton do; but they hand nothing
//! over. Each publishes when its next timer is due and how important its work is, reads the lines
//! of others, and sets its weight in the kernel's scheduler by its rank in its group
//! ([`weights`](super::weights)). So a group has its share of the CPU and its members divide it by
//! importance, while the kernel decides when each of them runs: a helper that
//! [boosts](super::boost) them makes them run on time.
//!
//! - WEIGHTED-1: a thread writes its own line only, and only while it owns that. What it reads may
//!   be any value: its weight is then some weight from a 15th to 15 times the weight that it has
//!   joined with.
//! - WEIGHTED-2: a thread that has published nothing new for [`ABSENT_NS`] is not counted as a
//!   member of the group: a thread that is stopped, or was killed, keeps no share from the rest for
//!   longer.
//!
//! *Turned down:* the baton, with the weight of all for its holder (only one thread of the group is
//! ready at a time, and would have to weigh as much as all by its one nice value); naps of less
//! important members (the time that they give away goes to threads outside of the group, too).

use core::ops::Deref;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, SharedWait};

use super::accounts::Accounts;
use super::ask::{Alone, Answer, Ask, Cooperate};
use super::baton::{Baton, NoSeat};
use super::line::{Line, PLACES, Page, unpack};
use super::member::Group;
use super::weights::{Control, MOST_STEPS, Rival, part, weight};

/// The means to set a thread's weight in the system's scheduler.
pub trait Weigh {
    /// Sets the weight of the calling thread to 1.25 to the power of `-steps` of its weight before
    /// any step, or as near to that as is permitted.
    fn step(&mut self, steps: i32);
}

/// A member whose thread the kernel runs, with a weight by the rank of its work in its group. For
/// the thread that has joined; if another thread polls, or the child of a fork, it acts as
/// [`Alone`]. When it is dropped, the thread leaves and gets its former weight back.
#[derive(Debug)]
pub struct Weighted<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts, W: Weigh> {
    seat: Baton<P, D, A>,
    system: W,
    control: Control,
    looked_ns: u64,
    /// For each place: the account that was last read there, and when that was first seen.
    seen: [(u64, u64); PLACES],
}

/// The shortest time between two choices of a weight, in nanoseconds: a typical tick of a kernel.
const LOOKS_NS: u64 = 4_000_000;
/// A thread that has had no CPU for this long is not counted (WEIGHTED-2).
pub const ABSENT_NS: u64 = 1_000_000_000;

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts, W: Weigh> Weighted<P, D, A, W> {
    /// Makes the calling thread a member, with a group and a weight relative to others of the
    /// group.
    ///
    /// # Errors
    ///
    /// See [`NoSeat`].
    pub fn join(
        page: D,
        accounts: A,
        system: W,
        group: Group,
        weight: u32,
    ) -> Result<Self, NoSeat> {
        let seat = Baton::join(page, accounts, group, weight)?;
        Ok(Self { seat, system, control: Control::NEW, looked_ns: 0, seen: [(0, 0); PLACES] })
    }

    /// The page of the membership.
    pub fn page(&self) -> &Page<P> {
        self.seat.page()
    }

    /// Chooses a weight, if the last choice was [`LOOKS_NS`] ago.
    fn weigh(&mut self, ask: Ask, now_ns: u64) {
        // WEIGHTED-1: another thread may have taken the line while this one slept.
        if now_ns < self.looked_ns.saturating_add(LOOKS_NS) || !self.seat.is_seated() {
            return;
        }
        let since_ns = now_ns - core::mem::replace(&mut self.looked_ns, now_ns);
        self.seat.show_account();
        for (place, seen) in self.seen.iter_mut().enumerate() {
            // Relaxed: a count that only grows.
            let account = self.seat.page().lines[place].charged_ns.load(Relaxed);
            if seen.0 != account || seen.1 == 0 {
                *seen = (account, now_ns);
            }
        }
        let steps = match ask.importance {
            Some(importance) => self.steps(importance, now_ns, since_ns),
            // A member without best-effort work has the weight that it has joined with.
            None => 0,
        };
        self.system.step(steps);
        self.seat.show_steps(steps);
    }

    /// Returns by how many steps the member should weigh less than the weight that it has joined
    /// with.
    fn steps(&mut self, importance: u64, now_ns: u64, since_ns: u64) -> i32 {
        let Group::Number(group) = self.seat.group() else { return 0 };
        let (page, seen) = (self.seat.page(), &self.seen);
        let rivals = self.seat.others().filter_map(|(place, line)| {
            let told = line.told();
            let present = now_ns.saturating_sub(seen[place].1) < ABSENT_NS;
            let same = told.group == Group::Number(group);
            let importance = told.importance.filter(|_| present && same)?;
            Some((place, Rival { importance, weight: told.weight }))
        });
        let (mut weigh, mut joined) = (0, 0);
        let mut add = |steps: i32, own: u32| {
            weigh += u64::from(weight(steps)) * u64::from(own);
            joined += u64::from(weight(0)) * u64::from(own);
        };
        for (place, Rival { weight: own, .. }) in rivals.clone() {
            // Relaxed: a guess. An impossible value counts as 0.
            let steps = page.tallies[place].steps.load(Relaxed).cast_signed();
            add(if (-MOST_STEPS..=MOST_STEPS).contains(&steps) { steps } else { 0 }, own);
        }
        let me = Rival { importance, weight: self.seat.weight() };
        let part = part(me, rivals.map(|(_, rival)| rival));
        let steps = self.control.next(part, since_ns);
        add(steps, me.weight);
        self.control.see(weigh, joined);
        steps
    }

    /// Returns the next release of any other member, and when the next weight is chosen. It has no
    /// importance: a poll does not decide which thread runs.
    fn answer(&self, now_ns: u64) -> Answer {
        let releases = self.seat.others().filter_map(|(_, line)| line.told().release_ns);
        // An overdue release is about to be dispatched: the caller can't wait for it.
        let release_ns = releases.filter(|&at| at > now_ns).min();
        Answer { release_ns, importance: None, poll_at_ns: Some(now_ns.saturating_add(LOOKS_NS)) }
    }
}

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts, W: Weigh> Cooperate
    for Weighted<P, D, A, W>
{
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        if !self.seat.say_beside(ask) {
            return Alone.poll(ask, wait);
        }
        wait(if ask.importance.is_some() { Some(0) } else { ask.release_ns });
        let now_ns = P::now(Clock::Monotonic);
        self.weigh(ask, now_ns);
        self.answer(now_ns)
    }

    fn tell(&mut self, release_ns: Option<u64>) {
        self.seat.say_release(release_ns);
    }
}

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts, W: Weigh> Drop
    for Weighted<P, D, A, W>
{
    fn drop(&mut self) {
        if self.seat.is_mine() {
            self.system.step(0);
        }
    }
}

/// The values that the thread of a line has published. Relaxed, all: a guess, for a thread that
/// does not hold the table's lock.
pub(super) struct Told {
    pub group: Group,
    pub weight: u32,
    pub release_ns: Option<u64>,
    pub importance: Option<u64>,
}

impl<P: SharedWait> Line<P> {
    pub(super) fn told(&self) -> Told {
        let (group, weight) = self.part_of();
        Told {
            group,
            weight,
            release_ns: unpack(self.release.load(Relaxed)),
            importance: unpack(self.importance.load(Relaxed)),
        }
    }
}
