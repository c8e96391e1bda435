//! Mechanisms that notify other threads of an event, behind two small traits.
//!
//! Each is used as its documentation recommends: with the flag, mutex or loop that it needs, and
//! without a system call where none is needed.

mod broadcast;
mod condvar;
mod event;
mod futex;
mod guarded;
mod kernel;
mod line;
mod message;
mod pthread;
mod ring;
mod runtime;
mod rust;
mod serial;
mod signals;

pub mod one {
    //! Mechanisms from one thread to another.

    use antiphon_sync::lock::Standard;
    use antiphon_sync::wait::Unpolled;

    use super::guarded::One;
    use super::{condvar, event, futex, kernel, line, message};
    use super::{pthread, ring, runtime, rust, signals};

    crate::bench::visit::subjects! {
        super::OneVisitor:
        OURS:
            "event" => event::Events<Standard>,
            "event+nospin" => event::Events<Unpolled>,
            "condvar" => One<condvar::Condvar<Standard>>,
            "condvar+nospin" => One<condvar::Condvar<Unpolled>>,
            "eventcount" => event::Counted<Standard>,
            "eventcount+nospin" => event::Counted<Unpolled>,
            "message" => message::Post<true>,
            "message+nospin" => message::Post<false>,
        ;
        PEERS:
            "spin" => line::Spin,
            "futex" => futex::One,
            "pthread-cond" => One<pthread::Pthread>,
            "std" => One<rust::Std>,
            "parking_lot" => One<rust::ParkingLot>,
            "eventfd" => kernel::EventFd,
            "pipe" => kernel::Pipe,
            "io_uring" => ring::Ring,
            "signal" => signals::Handler,
            "sigwait" => signals::Waiting,
            "tokio" => runtime::Tokio,
        ;
    }
}

pub mod many {
    //! Mechanisms from one thread to several.

    use antiphon_sync::lock::Standard;
    use antiphon_sync::wait::Unpolled;

    use super::guarded::All;
    use super::serial::Serial;
    use super::{broadcast, condvar, event, futex, message, pthread, rust};

    crate::bench::visit::subjects! {
        super::ManyVisitor:
        OURS:
            "broadcast" => broadcast::Cast<Standard>,
            "broadcast+nospin" => broadcast::Cast<Unpolled>,
            "event" => Serial<event::Events<Standard>>,
            "event+nospin" => Serial<event::Events<Unpolled>>,
            "condvar" => All<condvar::Condvar<Standard>>,
            "condvar+nospin" => All<condvar::Condvar<Unpolled>>,
            "eventcount" => event::Counted<Standard>,
            "eventcount+nospin" => event::Counted<Unpolled>,
            "latch" => event::Latches<Standard>,
            "latch+nospin" => event::Latches<Unpolled>,
            "message" => Serial<message::Post<true>>,
            "message+nospin" => Serial<message::Post<false>>,
        ;
        PEERS:
            "futex" => futex::All,
            "pthread-cond" => All<pthread::Pthread>,
            "std" => All<rust::Std>,
            "parking_lot" => All<rust::ParkingLot>,
            "serial-futex" => Serial<futex::One>,
        ;
    }
}

/// Notifies one thread. Only one thread waits at a time, and it is not notified again before its
/// wait has returned.
pub trait Mechanism: Sized + Sync {
    /// Whether a waiter eventually sleeps.
    const SLEEPS: bool = true;

    /// Makes the mechanism, neither notified nor waited for.
    ///
    /// # Errors
    ///
    /// One line, if this machine can't have it: what is missing and how to get it.
    fn new() -> Result<Self, String>;

    /// Called once by the thread that will wait, before another thread notifies it.
    fn enter(&self) {}

    /// Notifies the current or the next waiter.
    fn signal(&self);

    /// Waits until notified; each [`signal`](Self::signal) ends one wait.
    fn wait(&self);
}

/// Notifies several threads at once, in rounds that count from 1.
pub trait Broadcast: Sized + Sync {
    /// Makes the mechanism for `waiters` threads, before the first round.
    ///
    /// # Errors
    ///
    /// One line, if this machine lacks it: what is missing and how to get it.
    fn new(waiters: usize) -> Result<Self, String>;

    /// Called once by each thread that will wait, with its number.
    fn enter(&self, _waiter: usize) {}

    /// Notifies all waiters that `round` has begun. Called by one thread, round after round, when
    /// all of them wait.
    fn tell(&self, round: u32);

    /// Waits until `round` has begun.
    fn wait(&self, waiter: usize, round: u32);
}

/// An operation on a mechanism whose name is known only at run time.
pub trait OneVisitor {
    /// The result of the visit.
    type Output;

    /// Runs the operation on mechanism `M`.
    fn visit<M: Mechanism>(self) -> Self::Output;
}

/// A visitor of a mechanism for several threads.
pub trait ManyVisitor {
    /// The result of the visit.
    type Output;

    /// Runs the operation on mechanism `B`.
    fn visit<B: Broadcast>(self) -> Self::Output;
}

/// The mechanisms of a family for one thread and for several, each once.
fn both(one: &[&'static str], many: &[&'static str]) -> Vec<&'static str> {
    let more = many.iter().filter(|name| !one.contains(name));
    one.iter().chain(more).copied().collect()
}

/// Our mechanisms, by their names on the command line.
pub fn ours() -> Vec<&'static str> {
    both(one::OURS, many::OURS)
}

/// The mechanisms to compare with.
pub fn peers() -> Vec<&'static str> {
    both(one::PEERS, many::PEERS)
}

/// The mechanisms by which programs commonly sleep and wake; the others are for information only.
pub const COMMON: [&str; 3] = ["futex", "pthread-cond", "parking_lot"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;

    const ROUNDS: u32 = 50;

    struct Alternate;

    impl OneVisitor for Alternate {
        type Output = Result<(u32, u32), String>;

        /// Two threads notify each other in turn; then one thread is notified before it waits.
        fn visit<M: Mechanism>(self) -> Self::Output {
            let (there, back, seen) = (M::new()?, M::new()?, AtomicU32::new(0));
            let mine = std::thread::scope(|scope| {
                scope.spawn(|| {
                    there.enter();
                    for _ in 0..ROUNDS {
                        there.wait();
                        seen.fetch_add(1, Relaxed);
                        back.signal();
                    }
                });
                back.enter();
                // A notifier that addresses a thread must know the waiter first.
                std::thread::sleep(std::time::Duration::from_millis(20));
                (0..ROUNDS)
                    .map(|_| {
                        there.signal();
                        back.wait();
                        1
                    })
                    .sum()
            });
            let alone = M::new()?;
            alone.enter();
            alone.signal();
            alone.wait();
            Ok((mine, seen.into_inner()))
        }
    }

    struct Rounds;

    impl ManyVisitor for Rounds {
        type Output = Result<u32, String>;

        fn visit<B: Broadcast>(self) -> Self::Output {
            let waiters = 3;
            let all = B::new(waiters)?;
            let (seen, ready) = (AtomicU32::new(0), std::sync::Barrier::new(waiters + 1));
            std::thread::scope(|scope| {
                for waiter in 0..waiters {
                    let (all, seen, ready) = (&all, &seen, &ready);
                    scope.spawn(move || {
                        all.enter(waiter);
                        for round in 1..=ROUNDS {
                            ready.wait();
                            all.wait(waiter, round);
                            seen.fetch_add(1, Relaxed);
                            ready.wait();
                        }
                    });
                }
                for round in 1..=ROUNDS {
                    ready.wait();
                    all.tell(round);
                    ready.wait();
                }
            });
            Ok(seen.into_inner())
        }
    }

    #[test]
    fn each_signal_ends_one_wait() {
        for name in one::OURS.iter().chain(one::PEERS) {
            match one::visit(name, Alternate) {
                Some(Ok(seen)) => assert_eq!(seen, (ROUNDS, ROUNDS), "{name}"),
                // A kernel that refuses io_uring reports it as missing.
                Some(Err(missing)) => assert_eq!(*name, "io_uring", "{missing}"),
                None => panic!("{name} has no type"),
            }
        }
        assert!(one::visit("no such mechanism", Alternate).is_none());
    }

    #[test]
    fn each_broadcast_ends_the_wait_of_all() {
        for name in many::OURS.iter().chain(many::PEERS) {
            assert_eq!(many::visit(name, Rounds), Some(Ok(3 * ROUNDS)), "{name}");
        }
        assert!(COMMON.iter().all(|name| one::PEERS.contains(name) && many::PEERS.contains(name)));
    }
}
