//! Remote core locking (RCL): one thread only runs the critical sections of others.
//!
//! Source: J.-P. Lozi, F. David, G. Thomas, J. Lawall, G. Muller, "Remote Core Locking: Migrating
//! Critical-Section Execution to Improve the Performance of Multithreaded Applications", USENIX ATC
//! 2012.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `state` | one of the words below |
//! | 4–7 | `server` | name of the node of the server, or of the last if there is none |
//! | 8– | `boxes` | for each CPU, the name of its mailbox; 0 until it is used |
//! | | `data` | the value that the sections work on |
//!
//! ```text
//!            lend                        nothing to do
//!   NOBODY ───────► SERVES ◄───────────────────────────► ASLEEP
//!     ▲               │ stop       a client has posted     │
//!     │               ▼                                    │ stop
//!     └────────── LEAVES ◄─────────────────────────────────┘
//!       the server has left
//! ```
//!
//! A client posts its section in the mailbox of its CPU, or in another if a second client has taken
//! that, and waits until the box is emptied; the server scans all boxes. For each section two cache
//! lines move, the box and the section itself, and no other client touches them: nothing is
//! contended.
//!
//! Departures: published servers never sleep, and have threads in reserve, so that one section may
//! wait for another's; here a section that waits delays all others.
//!
//! - RCL-1: there is at most one server: it has taken `state` away from `NOBODY`.
//! - RCL-2: a server that sleeps leaves no client waiting. A client posts, fences and checks
//!   `state`; the server stores `ASLEEP`, fences and scans the boxes once more.
//! - RCL-3: a thread that replaces `ASLEEP` wakes the server that has stored it. It reads the name
//!   after its exchange, so it gets that server's name or a later one's. There is a later one only
//!   if that server has left and needs no wake; an extra wake does no harm. A name read before the
//!   exchange may be an earlier server's: `ASLEEP` does not say which server sleeps.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Budget, Clock, CpuId, Platform, WaiterRef};

use super::mailbox::Mailbox;
use super::section::{Finally, Section};
use crate::arena;
use crate::classic::node::Node;

const NOBODY: u32 = 0;
const SERVES: u32 = 1;
const ASLEEP: u32 = 2;
const LEAVES: u32 = 3;

/// Shortest possible pause between two rounds.
const PAUSE: Budget = Budget::ns(1);

/// A value whose critical sections are run by a thread that is lent to it: 8 bytes beside the
/// value, 4 bytes for each of `CPUS` CPUs, and a mailbox of 64 bytes for each CPU that has used it,
/// which is given back when the lock is dropped; on a simulated machine, that must happen inside
/// the simulation.
///
/// While no server runs, arriving clients wait for one. Clients spin for at most `SPIN_NS`
/// nanoseconds, less if another thread wants their CPU, and then sleep; an idle server also spins
/// for `SPIN_NS` and then sleeps.
#[repr(C)]
pub struct Rcl<T, P: Platform, const CPUS: usize = 64, const SPIN_NS: u32 = 1_000_000> {
    state: P::U32,
    server: P::U32,
    boxes: [P::U32; CPUS],
    data: UnsafeCell<T>,
    platform: PhantomData<P>,
}

// SAFETY: only the server accesses the value (RCL-1), whichever thread that is, and each server's
// work happens before the next one's. A section and its result are `Send`.
unsafe impl<T: Send, P: Platform, const CPUS: usize, const SPIN_NS: u32> Sync
    for Rcl<T, P, CPUS, SPIN_NS>
{
}

impl<T, P: Platform, const CPUS: usize, const SPIN_NS: u32> Rcl<T, P, CPUS, SPIN_NS> {
    /// Creates a lock with the value `data` and without a server.
    pub const fn new(data: T) -> Self {
        assert!(CPUS > 0, "a lock without a mailbox");
        Self {
            state: P::U32::ZERO,
            server: P::U32::ZERO,
            boxes: [const { P::U32::ZERO }; CPUS],
            data: UnsafeCell::new(data),
            platform: PhantomData,
        }
    }

    /// Lets the server run `section` on the value, and returns its result. Blocks until then, also
    /// while no server runs; spins and then sleeps. Naps while all mailboxes are taken, or no node
    /// is free for the caller.
    ///
    /// # Panics
    ///
    /// If the section panics, which also ends the server.
    pub fn with<F, R>(&self, section: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send,
        R: Send,
    {
        let section = Section::<T, P, F, R>::new(section);
        let name = section.name();
        let posted = loop {
            let CpuId(cpu) = P::cpu();
            let mut boxes = (0..CPUS).map(|step| &self.boxes[(cpu as usize + step) % CPUS]);
            let of = |word| Mailbox::<P>::of(word).filter(|mailbox| mailbox.post(name));
            match boxes.find_map(of) {
                Some(posted) => break posted,
                None => Node::<P>::nap(),
            }
        };
        // RCL-2: pairs with the fence in `sleep`.
        P::fence(SeqCst);
        // Relaxed: by the fence it sees what the server stored before its own fence, and `wake`
        // acquires.
        if self.state.load(Relaxed) == ASLEEP {
            self.wake(SERVES);
        }
        posted.wait(name, section.sleeper(), SPIN_NS);
        section.result()
    }

    /// Makes the thread that [runs](Server::run) the returned value the server; returns `None` if
    /// there is a server.
    pub fn lend(&self) -> Option<Server<'_, T, P, CPUS, SPIN_NS>> {
        // Acquire: pairs with the release by which the last server has left.
        self.state.compare_exchange(NOBODY, SERVES, Acquire, Relaxed).ok()?;
        Some(Server { lock: self })
    }

    /// Asks the server to leave, even if it does not run yet; returns whether there is one. Does
    /// not wait for it. A client whose section has not begun then waits for the next server. A
    /// section may call this.
    pub fn stop(&self) -> bool {
        self.wake(LEAVES)
    }

    /// Returns the value; `&mut self` excludes other threads.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// SERVES or ASLEEP → `then`, and wakes the server if it sleeps. Returns whether there is a
    /// server.
    fn wake(&self, then: u32) -> bool {
        // Relaxed, here and where the exchange fails: only the state is read.
        let mut seen = self.state.load(Relaxed);
        while ![NOBODY, LEAVES, then].contains(&seen) {
            // Acquire: pairs with the release in `sleep`, for the name of the server's node.
            // Nothing is released: the server scans the boxes after it has seen `SERVES`, and
            // fences before it sleeps again.
            match self.state.compare_exchange(seen, then, Acquire, Relaxed) {
                Ok(_) => {
                    // RCL-3: not before the exchange.
                    if seen == ASLEEP
                        && let Some(sleeper) = self.sleeper()
                    {
                        P::unpark(sleeper);
                    }
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        seen != NOBODY
    }

    /// Returns the server's node, as the thread that has replaced `ASLEEP` sees it.
    fn sleeper(&self) -> Option<WaiterRef> {
        // Relaxed: acquired with `ASLEEP`.
        Node::<P>::at(self.server.load(Relaxed))?.reference()
    }
}

impl<T, P: Platform, const CPUS: usize, const SPIN_NS: u32> Drop for Rcl<T, P, CPUS, SPIN_NS> {
    fn drop(&mut self) {
        for word in &self.boxes {
            if let Some(mailbox) = Mailbox::<P>::at(word) {
                mailbox.give();
            }
        }
    }
}

/// The right to serve a lock: the thread that runs it is lent to the lock. Dropping it gives the
/// right back.
#[must_use = "no section is served before the server runs"]
pub struct Server<'a, T, P: Platform, const CPUS: usize, const SPIN_NS: u32> {
    lock: &'a Rcl<T, P, CPUS, SPIN_NS>,
}

impl<T, P: Platform, const CPUS: usize, const SPIN_NS: u32> Server<'_, T, P, CPUS, SPIN_NS> {
    /// Runs sections on the calling thread until [`Rcl::stop`]. Spins while idle, and then sleeps;
    /// naps first while no node is free for the caller.
    ///
    /// # Panics
    ///
    /// If a section panics. Then no thread serves until another is lent.
    pub fn run(self) {
        let me = Node::<P>::take();
        let back = Finally(|| arena::<P>().give(me.id));
        // Relaxed: published with `ASLEEP`.
        self.lock.server.store(me.bits(), Relaxed);
        let mut idle_since = None;
        // Relaxed: a posted section is acquired box by box.
        while self.lock.state.load(Relaxed) != LEAVES {
            if self.round() {
                idle_since = None;
            } else if Self::is_to_sleep(&mut idle_since) {
                self.sleep(&me);
                idle_since = None;
            } else {
                // The result does not matter: a round is next.
                let _ = self.lock.state.spin_while(Relaxed, PAUSE, |state| state == SERVES);
            }
        }
        drop(back);
    }

    /// Runs the posted sections; returns whether there were any.
    fn round(&self) -> bool {
        let mut found = false;
        for mailbox in self.lock.boxes.iter().filter_map(Mailbox::<P>::at) {
            let Some(posted) = mailbox.section() else { continue };
            found = true;
            // Empties the box even if the section panics.
            let emptied = Finally(|| mailbox.empty(posted));
            // SAFETY: we are the server (RCL-1), so the value is ours; by BOX-1 the section's owner
            // waits, and the section runs only this once.
            unsafe { posted.name().run::<T, P>(&mut *self.lock.data.get()) };
            drop(emptied);
        }
        found
    }

    /// Returns whether `SPIN_NS` have passed after `idle_since` without a section to run. Sets
    /// `idle_since` to the current time if it is `None`.
    fn is_to_sleep(idle_since: &mut Option<u64>) -> bool {
        SPIN_NS == 0 || {
            let now = P::now(Clock::Monotonic);
            now - *idle_since.get_or_insert(now) >= SPIN_NS.into()
        }
    }

    /// Sleeps until a client has posted, or the server must leave.
    fn sleep(&self, me: &Node<P>) {
        let state = &self.lock.state;
        // Release: the name of our node; pairs with the acquire in `wake`. Relaxed where it fails:
        // the server must leave, which `run` sees next.
        if state.compare_exchange(SERVES, ASLEEP, Release, Relaxed).is_err() {
            return;
        }
        // RCL-2: pairs with the fence in `with`.
        P::fence(SeqCst);
        let posted =
            |word| Mailbox::<P>::at(word).is_some_and(|mailbox| mailbox.section().is_some());
        if self.lock.boxes.iter().any(posted) {
            self.lock.wake(SERVES);
            return;
        }
        // Relaxed: as in `run`.
        while state.load(Relaxed) == ASLEEP {
            // The reason for the return does not matter: the loop checks the state.
            let _ = P::park(me.waiter, None);
        }
    }
}

impl<T, P: Platform, const CPUS: usize, const SPIN_NS: u32> Drop
    for Server<'_, T, P, CPUS, SPIN_NS>
{
    fn drop(&mut self) {
        // Release: what was done to the value; pairs with the acquire in `lend`.
        self.lock.state.store(NOBODY, Release);
    }
}
