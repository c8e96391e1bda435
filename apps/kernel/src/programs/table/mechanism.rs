//! A mechanism by which a CPU tells others, and its measurement.

use alloc::vec::Vec;
use core::sync::atomic::Ordering::Release;

use antiphon_metal::kernel::cpu;
use antiphon_metal::println;
use antiphon_metal::statistics::{Summary, deviation};
use antiphon_metal::x86::cpu::tsc_unordered;

use crate::programs::trial::{noted, settle};

/// A way to tell other CPUs of an event. A receiver calls [`note`] as soon as it knows.
pub trait Mechanism {
    /// Waits until CPU `target` can be told.
    fn ready(&self, _target: u32, _trial: usize) {}

    /// Tells CPU `target`, which may be the caller's if [`has_own`](Self::has_own).
    fn unicast(&self, target: u32);

    /// Returns whether the caller's CPU can be told.
    fn has_own(&self) -> bool {
        true
    }

    /// Waits until all other CPUs can be told.
    fn ready_all(&self, _trial: usize) {}

    /// Tells all other CPUs.
    fn broadcast(&self);
}

/// Notes the time, at which this CPU knows of the event.
#[inline(always)]
pub fn note() {
    let now = tsc_unordered();
    // Release: pairs with the acquire in `noted`.
    cpu::this().noted.store(now, Release);
}

/// Measures the mechanism, and prints its figures.
pub fn measure(name: &str, mechanism: &impl Mechanism, trials: usize) {
    let (mut unicast, mut source) = (Vec::new(), Vec::new());
    for target in 1..cpu::count() {
        for trial in 0..trials {
            mechanism.ready(target, trial);
            settle();
            let (sent, knew) = tell(mechanism, target);
            source.push(sent);
            unicast.push(knew);
        }
    }
    print(name, "unicast", &mut unicast);
    print(name, "source", &mut source);
    if mechanism.has_own() {
        let own = |trial| {
            mechanism.ready(cpu::number(), trial);
            settle();
            tell(mechanism, cpu::number()).1
        };
        print(name, "own", &mut (0..trials).map(own).collect::<Vec<_>>());
    }
    broadcasts(name, mechanism, trials);
}

/// Tells one CPU; returns the times at which the sender had done its part and the receiver knew.
fn tell(mechanism: &impl Mechanism, target: u32) -> (u64, u64) {
    let receiver = cpu::get(target);
    let began = tsc_unordered();
    mechanism.unicast(target);
    let sent = tsc_unordered();
    core::hint::spin_loop();
    (sent - began, noted(&receiver.noted) - began)
}

fn broadcasts(name: &str, mechanism: &impl Mechanism, trials: usize) {
    let (mut last, mut source, mut sigma) = (Vec::new(), Vec::new(), Vec::new());
    let others = cpu::count() - 1;
    let mut knew = Vec::with_capacity(others as usize);
    for trial in 0..trials {
        mechanism.ready_all(trial);
        settle();
        let began = tsc_unordered();
        mechanism.broadcast();
        let sent = tsc_unordered();
        core::hint::spin_loop();
        knew.clear();
        knew.extend((1..=others).map(|other| noted(&cpu::get(other).noted) - began));
        source.push(sent - began);
        sigma.push(deviation(&knew));
        last.push(knew.iter().copied().max().unwrap_or_default());
    }
    print(name, "broadcast", &mut last);
    print(name, "broadcast_source", &mut source);
    print(name, "sigma", &mut sigma);
}

fn print(name: &str, what: &str, samples: &mut [u64]) {
    let Some(Summary { min, median, p99, .. }) = Summary::of(samples) else { return };
    println!("{name}.{what}.min={min}");
    println!("{name}.{what}.median={median}");
    println!("{name}.{what}.p99={p99}");
}
