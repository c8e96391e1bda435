//! Models of a sleeper's token: a wake is not lost, and makes the sleeper runnable once.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};

use super::cpu::Cpu;
use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type U32 = <Check as Atomics>::U32;

pub fn entries() -> Vec<Entry> {
    let expired = &["expired", "woken", "rose"];
    Subject("metal-token").models([
        model("wakes-1+1", waking(1, false), PLAIN).reaches(&["rose"]),
        model("wakes-2+1", waking(2, false), PLAIN),
        model("expires-1+1", waking(1, true), PLAIN.expiries(1)).reaches(expired),
        model("expires-2+1", waking(2, true), PLAIN.expiries(1)).reaches(expired),
        model("passes-on-1+1+1", passing_on(), PLAIN),
    ])
}

/// A token, and the CPU whose thread sleeps on it.
struct Sleeper {
    token: U32,
    /// Written by the sleeper before it sleeps, and read by the one that makes it runnable.
    name: Data<*const Cpu>,
    cpu: Cpu,
}

impl Sleeper {
    const fn new() -> Self {
        Self { token: Atomic::ZERO, name: Data::new(ptr::null()), cpu: Cpu::new() }
    }

    fn wake(&self) {
        Cpu::wake(&self.token, || self.name.get());
    }
}

/// Wakers wake a sleeper, which sleeps until it has seen each of them. What one did before its wake
/// is seen behind it. Must reach `expired` and `woken` if the sleeps are `timed`.
fn waking(wakers: usize, timed: bool) -> Program {
    Program::new(wakers as u32 + 1, 2 * wakers as u32, move |scope| {
        let sleeper = scope.share(Sleeper::new());
        let done = scope.share([const { <U32 as Atomic<u32>>::ZERO }; 2]);
        let work = scope.share([const { Data::new(false) }; 2]);
        scope.spawn_each(0..wakers, move |waker| {
            work[waker].set(true);
            // Relaxed: the wake orders.
            done[waker].store(1, Relaxed);
            sleeper.wake();
        });
        scope.spawn(move || {
            let is_done = |waker: &U32| waker.load(Relaxed) == 1;
            sleeper.name.set(&raw const sleeper.cpu);
            let mut woken = sleeper.cpu.sleep(&sleeper.token, timed);
            loop {
                probe(if woken { "woken" } else { "expired" });
                if wakers == 1 && woken {
                    assert!(is_done(&done[0]) && work[0].get(), "what came before the wake");
                    return;
                }
                // One wake is enough for two wakers, if it comes behind both.
                if wakers > 1 && done[..wakers].iter().all(is_done) {
                    return;
                }
                woken = sleeper.cpu.sleep(&sleeper.token, timed);
            }
        });
        scope.finally(|| assert!(sleeper.cpu.is_idle(), "made runnable twice"));
    })
}

/// A token is used by one sleeper after the other, as that of a waiter's node is. A waker that
/// makes a sleeper runnable reads which it is. A wake may come late, and then wakes the other.
fn passing_on() -> Program {
    Program::new(3, 3, |scope| {
        let token = scope.share(<U32 as Atomic<u32>>::ZERO);
        let name = scope.share(Data::new(ptr::null::<Cpu>()));
        let cpus = scope.share([Cpu::new(), Cpu::new()]);
        let turn = scope.share(<U32 as Atomic<u32>>::ZERO);
        let wakes = scope.share([const { <U32 as Atomic<u32>>::ZERO }; 2]);
        scope.spawn_each(cpus.iter().enumerate(), move |(number, cpu)| {
            // Acquire: the node is ours; pairs with the release below.
            turn.wait_while(Acquire, |turn| turn != number as u32);
            name.set(ptr::from_ref(cpu));
            while wakes[number].load(Relaxed) == 0 {
                let _ = cpu.sleep(token, false);
            }
            // Release: pairs with the acquire above.
            turn.store(number as u32 + 1, Release);
        });
        scope.spawn(move || {
            for wake in wakes {
                // Relaxed: the token orders.
                wake.store(1, Relaxed);
                Cpu::wake(token, || name.get());
            }
        });
        scope.finally(|| assert!(cpus.iter().all(Cpu::is_idle), "made runnable twice"));
    })
}
