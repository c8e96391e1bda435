//! Toy locks for testing the machine, written against the platform interface.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Platform, WaiterId};
use antiphon_sim::{OwnLine, Sim};

use crate::{Word, arena};

pub trait Lock: 'static {
    const NEW: Self;
    fn lock(&self);
    fn unlock(&self);
}

/// Test and set.
pub struct Tas(Word);

impl Lock for Tas {
    const NEW: Self = Self(Word::ZERO);

    fn lock(&self) {
        while self.0.swap(1, Acquire) != 0 {}
    }

    fn unlock(&self) {
        self.0.store(0, Release);
    }
}

/// Test, then test and set.
pub struct Ttas(Word);

impl Lock for Ttas {
    const NEW: Self = Self(Word::ZERO);

    fn lock(&self) {
        while self.0.swap(1, Acquire) != 0 {
            self.0.wait_while(Relaxed, |held| held != 0);
        }
    }

    fn unlock(&self) {
        self.0.store(0, Release);
    }
}

/// First come, first served; all watch one word.
pub struct Ticket {
    next: Word,
    serving: Word,
}

impl Lock for Ticket {
    const NEW: Self = Self { next: Word::ZERO, serving: Word::ZERO };

    fn lock(&self) {
        let ticket = self.next.fetch_add(1, Relaxed);
        self.serving.wait_while(Acquire, |serving| serving != ticket);
    }

    fn unlock(&self) {
        self.serving.store(self.serving.load(Relaxed) + 1, Release);
    }
}

/// A queue of nodes, each watching its own word.
pub struct Mcs {
    tail: Word,
    /// The owner's note; an arriving thread must not take it away with the tail.
    holder: OwnLine<Word>,
}

impl Lock for Mcs {
    const NEW: Self = Self { tail: Word::ZERO, holder: OwnLine(Word::ZERO) };

    fn lock(&self) {
        let me = arena().take().expect("a free node");
        let node = arena().resolve(me).expect("just taken");
        node.next.store(0, Relaxed);
        node.status.store(0, Relaxed);
        let ahead = self.tail.swap(me.bits(), AcqRel);
        if let Some(ahead) = WaiterId::from_bits(ahead).and_then(|id| arena().resolve(id)) {
            ahead.next.store(me.bits(), Release);
            node.status.wait_while(Acquire, |status| status == 0);
        }
        self.holder.store(me.bits(), Relaxed);
    }

    fn unlock(&self) {
        let me = WaiterId::from_bits(self.holder.load(Relaxed)).expect("held");
        let node = arena().resolve(me).expect("in use");
        if node.next.load(Acquire) != 0
            || self.tail.compare_exchange(me.bits(), 0, Release, Relaxed).is_err()
        {
            let next = node.next.wait_while(Acquire, |next| next == 0);
            let next = WaiterId::from_bits(next).and_then(|id| arena().resolve(id));
            next.expect("in use").status.store(1, Release);
        }
        arena().give(me);
    }
}

/// Spins for a moment and then sleeps on a stack of waiters; an arriving thread may take the lock.
pub struct Parking {
    held: Word,
    /// Only the holder pops, so a node can't come back while another thread pops it.
    sleepers: Word,
}

impl Parking {
    fn try_lock(&self) -> bool {
        self.held.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Wakes one sleeper unless another thread holds the lock, which then will.
    fn kick(&self) {
        if self.sleepers.load(Relaxed) == 0 || !self.try_lock() {
            return;
        }
        let mut sleeper = None;
        let mut head = self.sleepers.load(Acquire);
        while let Some(id) = WaiterId::from_bits(head) {
            let node = arena().resolve(id).expect("in use");
            match self.sleepers.compare_exchange(head, node.next.load(Relaxed), Acquire, Acquire) {
                Ok(_) => {
                    sleeper = Some((node, arena().reference(id.index()).expect("in use")));
                    break;
                }
                Err(now) => head = now,
            }
        }
        self.held.store(0, Release);
        if let Some((node, reference)) = sleeper {
            node.status.store(1, Release);
            Sim::unpark(reference);
        }
    }

    fn sleep(&self) {
        let me = arena().take().expect("a free node");
        let node = arena().resolve(me).expect("just taken");
        node.status.store(0, Relaxed);
        let mut head = self.sleepers.load(Relaxed);
        loop {
            node.next.store(head, Relaxed);
            match self.sleepers.compare_exchange(head, me.bits(), Release, Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        self.kick();
        while node.status.load(Acquire) == 0 {
            let _ = Sim::park(node, None);
        }
        arena().give(me);
    }
}

impl Lock for Parking {
    const NEW: Self = Self { held: Word::ZERO, sleepers: Word::ZERO };

    fn lock(&self) {
        while !self.try_lock() {
            let spun = self.held.spin_while(Relaxed, Budget::ns(2_000), |held| held != 0);
            if spun.is_err() {
                self.sleep();
            }
        }
    }

    fn unlock(&self) {
        self.held.store(0, Release);
        self.kick();
    }
}
