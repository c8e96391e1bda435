//! The baton: threads of several processes that hand their CPU to each other, without privilege.
//!
//! The thread that has the baton runs; the others sleep. A thread that polls takes the lock of the
//! [table](super::Page), where the [scheduler](super::Scheduler) decides whose turn it is. It hands
//! the baton over, wakes the new holder, and sleeps until it is woken itself. The kernel only runs
//! the threads that do not sleep.
//!
//! ```text
//!              poll: others first                  called, or late
//!   has it ───────────────────────► sleeps, ready ──────────────────► has it
//!      │                                 ▲                 ▲
//!      │ poll, nothing to do             │ `wait` is back  │ takes it from a holder that is late:
//!      └────────────────────► in `wait` ─┘                 │ it sleeps outside of `poll`, runs on,
//!                                                            is stopped, or is dead
//! ```
//!
//! In addition to BATON-1 to 3, which `relay` keeps:
//!
//! - BATON-4: no ready thread sleeps through its release by more than the slack without checking
//!   the holder of the baton. While other threads are ready, one of them watches the holder: it
//!   checks at the time when the holder may lose the baton. A thread that leaves the table makes
//!   sure that there is a watcher. If the watcher is stopped as well, the others check once per
//!   period plus slack. `docs/coop-line.md` has the table.
//! - BATON-5: a holder that keeps the baton beyond its slice and the slack loses it to the first
//!   thread that checks, and is not waited for until it polls. If the holder was only kept from
//!   running, a thread that checks and is due gets the baton, because that thread runs.
//! - BATON-6: a thread is charged the CPU time that the system reports for it, once, with or
//!   without the baton: by itself, or by a thread that takes the baton away or audits it. The
//!   holder of the baton is audited at each check by another thread.
//! - BATON-7: whatever the memory contains, a thread makes progress. It leaves a line that is no
//!   longer its own; it rewrites the values that it has joined with if they were overwritten; and
//!   if it can't get to the table, it runs as if it were alone.
//!
//! *Turned down:* only the holder at the table (a thread that wakes by itself would wait for it); a
//! sleep until the slice of the running thread has ended (each sleeper would wake once a turn);
//! handing each chunk over (two more switches a chunk, for no timer that is due).

use core::marker::PhantomData;
use core::ops::Deref;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, Deadline, SharedWait, ThreadId};

use super::accounts::Accounts;
use super::ask::{Answer, Ask, Cooperate, Halves, Pause, Then};
use super::bits::Bits;
use super::line::{Line, Page, pack, put, unpack};
use super::lines::Lines;
use super::member::{Group, Member, State};
use super::options::Options;
use super::relay::{Held, Relay};
use super::scheduler::Scheduler;
use super::section::Section;

/// The membership of a thread in those that share a page: its `coop_poll`. For the thread that has
/// joined; if another thread polls, or the child of a fork, it acts as [`Alone`](super::Alone). The
/// thread leaves when this is dropped.
#[derive(Debug)]
pub struct Baton<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts> {
    page: D,
    accounts: A,
    options: Options,
    member: Member,
    thread: ThreadId,
    place: usize,
    charged_ns: u64,
    /// Bound to one thread: not `Send`.
    platform: PhantomData<(P, *const ())>,
}

/// The reason why a thread did not become a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSeat {
    /// Each place of the page is taken by a living thread.
    Full,
    /// At each try, the caller was kept from running at the table for longer than other threads
    /// wait there: in at least 64 tries, over at least a second.
    KeptFromRunning,
}

/// Immediate tries of a thread whose visit to the table was invalidated.
const TRIES: u32 = 4;
/// The minimum number of tries, and the minimum time, for a thread that joins. Where more threads
/// want a CPU than there are, a thread at the table is soon kept from running for longer than
/// others wait for it. That ends when the other threads have had their turn, which no number of
/// tries ensures.
const TRIES_TO_JOIN: u32 = 64;
const JOINS_FOR_NS: u64 = 1_000_000_000;

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts> Baton<P, D, A> {
    /// Makes the calling thread a member, with a group and a weight. It keeps running as before
    /// until it polls. Frees the places of threads that have ended. A thread has one membership per
    /// page: the latest. Blocks while others are at the table.
    ///
    /// # Errors
    ///
    /// See [`NoSeat`].
    pub fn join(page: D, accounts: A, group: Group, weight: u32) -> Result<Self, NoSeat> {
        let options = page.header.options();
        let mut baton = Self {
            page,
            accounts,
            options,
            member: Member::new(group, weight.min(Bits::WEIGHT)),
            thread: P::thread(),
            place: usize::MAX,
            charged_ns: 0,
            platform: PhantomData,
        };
        baton.charged_ns = baton.accounts.own_ns();
        let begun_ns = P::now(Clock::Monotonic);
        let mut tries = 0;
        loop {
            match baton.visit(Seated::No, |_, _| ()) {
                Visit::Stands => return Ok(baton),
                Visit::NoPlace => return Err(NoSeat::Full),
                Visit::GivenUp => tries += 1,
            }
            let since_ns = P::now(Clock::Monotonic).saturating_sub(begun_ns);
            if tries >= TRIES_TO_JOIN && since_ns >= JOINS_FOR_NS {
                return Err(NoSeat::KeptFromRunning);
            }
        }
    }

    /// The member's place in the page.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The page of the membership.
    pub fn page(&self) -> &Page<P> {
        &self.page
    }

    /// The options by which the page is scheduled.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Calls `what` at the table, and makes sure that a thread gets the baton. Returns whether the
    /// change is valid.
    fn at_table(&mut self, seat: Seated, what: impl FnOnce(&mut Section<'_, P, A>, usize)) -> bool {
        self.visit(seat, what) == Visit::Stands
    }

    /// Like `at_table`, but returns why the change is not valid.
    fn visit(&mut self, seat: Seated, what: impl FnOnce(&mut Section<'_, P, A>, usize)) -> Visit {
        let page = &*self.page;
        let Some(at) = page.now.relay.enter(self.thread, self.options.slack_ns) else {
            return Visit::GivenUp;
        };
        let now_ns = P::now(Clock::Monotonic);
        let lines = Lines::new(page, at, self.thread, &self.options, now_ns);
        let mut section = Section {
            scheduler: Scheduler::new(lines, self.options),
            page,
            accounts: &mut self.accounts,
            thread: self.thread,
            now_ns,
        };
        if !section.is_seated(self.place) {
            // The thread never had a place, or another took it for one of its own (BATON-7).
            let place = match seat {
                Seated::No => section.join(self.member, self.charged_ns),
                Seated::Leaves => None,
            };
            let Some(place) = place else { return Visit::NoPlace };
            self.place = place;
        }
        section.restore(self.place, &self.member);
        what(&mut section, self.place);
        section.settle(self.place);
        if section.finish(self.place) { Visit::Stands } else { Visit::GivenUp }
    }

    /// Returns whether the line still belongs to the thread.
    pub(super) fn is_seated(&self) -> bool {
        self.page.thread(self.place) == Some(self.thread)
    }

    fn holds(&self) -> bool {
        self.is_its(self.page.now.relay.held())
    }

    fn is_its(&self, held: Held) -> bool {
        held.place() == Some(self.place) && self.is_seated()
    }

    /// A thread that has work and is in the middle of its slice goes on: it only publishes `ask`.
    fn goes_on(&self, ask: Ask) -> bool {
        if ask.importance.is_none() || !self.holds() {
            return false;
        }
        // Relaxed: written before the baton was handed over. A thread that can't wait may have
        // moved it to an earlier time after that; this is seen soon.
        let end_ns = self.page.now.slice_end_ns.load(Relaxed);
        let left_ns = end_ns.saturating_sub(P::now(Clock::Monotonic));
        if left_ns == 0 || left_ns > self.options.period_ns {
            return false;
        }
        self.say(ask);
        true
    }

    /// Publishes `ask` in the thread's line.
    fn say(&self, ask: Ask) {
        let line = &self.page.lines[self.place];
        put::<P>(&line.release, pack(ask.release_ns));
        put::<P>(&line.importance, pack(ask.importance));
    }

    /// Gives the CPU away, as the scheduler decides. Returns whether the change is valid.
    fn give(&mut self, ask: Ask) -> bool {
        let own_ns = self.accounts.own_ns();
        let charged_ns = self.charged_ns;
        let done = self.at_table(Seated::No, |section, place| {
            section.charge(place, own_ns, charged_ns);
            section.scheduler.poll(place, 0, ask.release_ns, ask.importance);
            section.audit(place);
        });
        if done {
            self.charged_ns = own_ns;
        }
        done
    }

    /// Publishes that the caller is ready, and checks whether it can run (BATON-5).
    fn look(&mut self) -> bool {
        self.at_table(Seated::No, |section, place| {
            section.heal(place);
            section.audit_running(place);
        })
    }

    /// Sleeps until the caller has the baton. Returns whether it has.
    fn turn(&mut self, ask: Ask) -> bool {
        let mut failures = 0;
        while failures < TRIES {
            let Some(line) = self.page.lines.get(self.place) else { return false };
            let (calls, held) = self.page.now.relay.look(&line.turn);
            if self.is_its(held) {
                return true;
            }
            let until = self.net(ask);
            if until > P::now(Clock::Monotonic) {
                let deadline = Deadline { clock: Clock::Monotonic, ns: until };
                Relay::<P>::wait(&line.turn, calls, deadline);
                if P::now(Clock::Monotonic) < until {
                    continue;
                }
            }
            failures = if self.look() { 0 } else { failures + 1 };
        }
        false
    }

    /// Returns until when to sleep without a check (BATON-4): a thread that is due, or is the
    /// watcher, checks as soon as the holder may lose the baton.
    fn net(&self, ask: Ask) -> u64 {
        let now_ns = P::now(Clock::Monotonic);
        let slack_ns = self.options.slack_ns;
        let held = self.page.now.relay.held();
        if held.place().is_none_or(|id| self.page.thread(id).is_none()) {
            return 0;
        }
        // Relaxed: written before the baton was handed over, or changed after that: a guess.
        let until_ns = self.page.now.until_ns.load(Relaxed);
        let longest_ns = now_ns.saturating_add(self.options.period_ns).saturating_add(slack_ns);
        let is_due = ask.release_ns.is_some_and(|at| at <= now_ns);
        let release_ns = ask.release_ns.filter(|_| !is_due);
        let late_ns = release_ns.map_or(longest_ns, |at| at.saturating_add(slack_ns));
        let watches = self.page.now.relay.watcher() == Some(self.place);
        let watch_ns = match (is_due, watches) {
            (true, _) => until_ns,
            (_, true) => self.watch_until(until_ns, now_ns),
            _ => longest_ns,
        };
        late_ns.min(watch_ns).min(longest_ns)
    }

    /// Returns until when a watcher may sleep. If another thread checks in time, because it is due
    /// by then, the watcher sleeps until the next holder of the baton may lose it, at the earliest.
    fn watch_until(&self, until_ns: u64, now_ns: u64) -> u64 {
        let Options { period_ns, slack_ns, .. } = self.options;
        // Relaxed: a guess.
        let release = |line: &Line<P>| unpack(line.release.load(Relaxed));
        let looks = |line: &Line<P>| match Bits::from_word(line.bits.load(Relaxed)).state() {
            State::Ready | State::Waiting => {
                release(line).is_some_and(|at| at.saturating_add(slack_ns) <= until_ns)
            }
            // The thread has the baton, or is late for the release it told, or is run by the
            // kernel.
            State::Running | State::Asleep => false,
        };
        if self.others().any(|(_, line)| looks(line)) {
            let slice_ns = period_ns / self.page.used().max(1) as u64;
            until_ns.max(now_ns.saturating_add(slice_ns).saturating_add(slack_ns))
        } else {
            until_ns
        }
    }

    fn answer(&self) -> Answer {
        let Some(line) = self.page.lines.get(self.place) else { return Answer::default() };
        // Relaxed, all: written before the baton was handed over.
        let end_ns = self.page.now.slice_end_ns.load(Relaxed);
        // A thread that has lost the baton already, or has never got it, must ask again at once
        // (BATON-5).
        let poll_at_ns = Some(if self.holds() { end_ns } else { 0 });
        Answer {
            release_ns: unpack(line.others_release.load(Relaxed)),
            importance: unpack(line.others_importance.load(Relaxed)),
            poll_at_ns,
        }
    }
}

/// For members that only publish, and that the kernel runs.
impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts> Baton<P, D, A> {
    /// Returns whether the caller is the thread that has joined.
    pub(super) fn is_mine(&self) -> bool {
        P::thread() == self.thread
    }

    /// The member's group.
    pub(super) fn group(&self) -> Group {
        self.member.group
    }

    /// The member's weight in its group, at least 1.
    pub(super) fn weight(&self) -> u32 {
        self.member.weight
    }

    /// The lines of other threads, with their places.
    pub(super) fn others(&self) -> impl Iterator<Item = (usize, &Line<P>)> + Clone {
        let page = &*self.page;
        let lines = page.lines.iter().enumerate().take(page.used());
        lines.filter(|(place, _)| *place != self.place && page.thread(*place).is_some())
    }

    /// Publishes `ask` if the caller has a line, or gets one. Returns whether it has.
    pub(super) fn say_beside(&mut self, ask: Ask) -> bool {
        if !self.is_mine() {
            return false;
        }
        let seated = self.is_seated() || self.at_table(Seated::No, |_, _| ());
        if seated {
            self.say(ask);
        }
        seated
    }

    /// Publishes a new release of the caller, if it has a line.
    pub(super) fn say_release(&self, release_ns: Option<u64>) {
        if self.is_mine() && self.is_seated() {
            put::<P>(&self.page.lines[self.place].release, pack(release_ns));
        }
    }

    /// Publishes the caller's weight.
    pub(super) fn show_steps(&self, steps: i32) {
        // Relaxed: a guess, for others.
        self.page.tallies[self.place].steps.store(steps.cast_unsigned(), Relaxed);
    }

    /// Publishes the CPU time of the caller.
    pub(super) fn show_account(&mut self) {
        self.charged_ns = self.accounts.own_ns();
        put::<P>(&self.page.lines[self.place].charged_ns, self.charged_ns);
    }
}

/// The result of a visit to the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    /// The change is valid.
    Stands,
    /// Other threads have given up on the caller, or it did not get to the table.
    GivenUp,
    /// No place is free for the caller.
    NoPlace,
}

/// What a thread without a place does at the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seated {
    /// The thread takes a place.
    No,
    /// The thread leaves, and takes no place.
    Leaves,
}

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts> Cooperate for Baton<P, D, A> {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        let pause = self.before(ask);
        wait(pause.until_ns);
        self.after(pause)
    }

    fn rest(&mut self) {
        if P::thread() == self.thread {
            // A thread that does not get to the table is late, as one that does not poll.
            let _ = (0..TRIES).any(|_| self.give(Ask::default()));
        }
    }
}

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts> Halves for Baton<P, D, A> {
    fn before(&mut self, ask: Ask) -> Pause {
        if P::thread() != self.thread {
            return Pause::alone(ask);
        }
        let has_turn = Pause { until_ns: Some(0), ask, then: Then::HasTurn };
        if self.goes_on(ask) {
            return has_turn;
        }
        if !(0..TRIES).any(|_| self.give(ask)) {
            return Pause::alone(ask);
        }
        if ask.importance.is_none() && !self.holds() {
            // BATON-5 is left to the others: the caller waits here, so it does not have the baton.
            return Pause { until_ns: ask.release_ns, ask, then: Then::WantsTurn };
        }
        self.turn(ask);
        has_turn
    }

    fn after(&mut self, pause: Pause) -> Answer {
        if pause.then == Then::Goes || P::thread() != self.thread {
            return Answer::default();
        }
        if pause.then == Then::WantsTurn && !self.holds() {
            self.look();
            self.turn(pause.ask);
        }
        self.answer()
    }
}

impl<P: SharedWait, D: Deref<Target = Page<P>>, A: Accounts> Drop for Baton<P, D, A> {
    fn drop(&mut self) {
        if P::thread() != self.thread {
            return;
        }
        let (own_ns, charged_ns) = (self.accounts.own_ns(), self.charged_ns);
        // If that fails, a thread that joins frees the line after this thread has ended.
        let _ = self.at_table(Seated::Leaves, |section, place| {
            section.charge(place, own_ns, charged_ns);
            section.scheduler.leave(place, 0);
        });
    }
}
