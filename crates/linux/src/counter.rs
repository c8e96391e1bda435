//! The CPU's own counter as a clock: whether it is reliable, and its ordered reading.
//!
//! The counter can serve as a clock where it counts at one rate whatever the CPU's frequency and
//! sleep state, and where the counters of all CPUs were started together. The processor promises
//! the first. Only the kernel has checked the second: where the counters differ, or the firmware or
//! the hypervisor breaks them, the kernel keeps its own time by another clock source.
//!
//! | machine | the counter is used if |
//! |---|---|
//! | x86-64 | the processor calls it invariant, and the kernel's clock source is `tsc` |
//! | AArch64 | the clock source is `arch_sys_counter`: the architecture promises the rest |
//! | others | never: the monotonic clock is read instead |
//!
//! Invariant is bit 8 of EDX in CPUID 80000007h, in AMD's and Intel's manuals.
//!
//! A hypervisor may migrate its guest to a machine whose counters began at another time. Guests
//! meant for migration get a clock source of the hypervisor, so `tsc` is trusted in a guest too;
//! but [`ClockSource`] reports a guest, and [`Pace`](crate::Pace) detects a migration afterwards.
//!
//! **Order.** [`Clocks::counter`](antiphon_platform::Clocks::counter) promises that earlier loads
//! are done when the counter is read, and that later accesses have not begun. `rdtsc` alone
//! promises neither. Intel's manual (volume 2, RDTSC) gives an `lfence` before it for the first,
//! and an `lfence` after it for the second; Linux makes AMD's processors wait at an `lfence` too.
//! `rdtscp` would replace the first `lfence` only, and not every x86-64 has it. A read-modify-write
//! is done once its store is visible to all CPUs; a plain store may wait in the store buffer, and
//! an `mfence` for it would double the cost. On AArch64, `dsb ish` waits for accesses, and an `isb`
//! keeps the reading on its side.

use core::fmt;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Clock;

use crate::{clock, sys, tsc};

/// The counter that [`Clocks::counter`](antiphon_platform::Clocks::counter) reads on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The CPU's counter.
    Counter {
        /// Whether this is a virtual machine, which may be migrated.
        guest: bool,
    },
    /// The monotonic clock, in nanoseconds.
    Monotonic(Distrust),
}

/// The reason why the counters of CPUs are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// No counter of this kind of processor is known here.
    Architecture,
    /// The processor's counter changes its rate.
    NotInvariant,
    /// The kernel does not keep its time by the counter.
    ByKernel,
    /// The kernel doesn't name its clock source.
    Unknown,
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter { guest: false } => f.write_str("the counters of the CPUs"),
            Self::Counter { guest: true } => f.write_str(
                "the counters of the CPUs of a virtual machine: if it is moved to \
                             another host, measure again",
            ),
            Self::Monotonic(why) => write!(f, "the monotonic clock, because {why}"),
        }
    }
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Architecture => "this kind of processor has no counter that is known here",
            Self::NotInvariant => "the processor's counter changes its rate (no invariant TSC)",
            Self::ByKernel => {
                "the kernel does not trust the CPUs' counters: see current_clocksource in \
                 /sys/devices/system/clocksource/clocksource0"
            }
            Self::Unknown => {
                "the kernel does not say whether it trusts the CPUs' counters: \
                 /sys/devices/system/clocksource can't be read"
            }
        })
    }
}

/// The answers that [`SOURCE`] stands for, from 1 on; 0 means not asked yet. Answers up to `GUEST`
/// are counters.
const ANSWERS: [ClockSource; 6] = [
    ClockSource::Counter { guest: false },
    ClockSource::Counter { guest: true },
    ClockSource::Monotonic(Distrust::Architecture),
    ClockSource::Monotonic(Distrust::NotInvariant),
    ClockSource::Monotonic(Distrust::ByKernel),
    ClockSource::Monotonic(Distrust::Unknown),
];
const GUEST: u8 = 2;

/// Relaxed throughout: all threads find the same answer.
static SOURCE: AtomicU8 = AtomicU8::new(0);

/// The properties of this machine's counter. The first call in a process reads a file of `/sys`.
#[must_use]
pub fn source() -> ClockSource {
    match SOURCE.load(Relaxed) {
        0 => find(),
        answer => ANSWERS[usize::from(answer) - 1],
    }
}

/// Reads the counter, ordered as [`Clocks::counter`](antiphon_platform::Clocks::counter) promises.
#[inline]
pub(crate) fn read() -> u64 {
    match SOURCE.load(Relaxed) {
        1..=GUEST => tsc::ticks_in_order(),
        0 => {
            find();
            read()
        }
        _ => clock_in_order(),
    }
}

/// Reads the monotonic clock, ordered between accesses as the counter is.
#[cold]
fn clock_in_order() -> u64 {
    tsc::ticks_in_order();
    let ns = clock::now(Clock::Monotonic);
    tsc::ticks_in_order();
    ns
}

#[cold]
#[inline(never)]
fn find() -> ClockSource {
    let source = ask();
    let answer = (1..).zip(ANSWERS).find(|&(_, answer)| answer == source);
    SOURCE.store(answer.map_or(0, |(number, _)| number), Relaxed);
    source
}

/// Asks the processor and the kernel.
pub(crate) fn ask() -> ClockSource {
    let mut buffer = [0; 64];
    let path = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    judged(&processor(), sys::read_file(path, &mut buffer).map(<[u8]>::trim_ascii))
}

/// The processor's description of its counter.
struct Processor {
    /// The kernel's name for the counter, if there is one.
    name: Option<&'static [u8]>,
    invariant: bool,
    guest: bool,
}

fn judged(processor: &Processor, clock_source: Option<&[u8]>) -> ClockSource {
    match (processor.name, clock_source) {
        (None, _) => ClockSource::Monotonic(Distrust::Architecture),
        _ if !processor.invariant => ClockSource::Monotonic(Distrust::NotInvariant),
        (_, None) => ClockSource::Monotonic(Distrust::Unknown),
        (name, used) if name != used => ClockSource::Monotonic(Distrust::ByKernel),
        _ => ClockSource::Counter { guest: processor.guest },
    }
}

#[cfg(target_arch = "x86_64")]
fn processor() -> Processor {
    use core::arch::x86_64::__cpuid;

    let invariant =
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0;
    Processor { name: Some(b"tsc"), invariant, guest: __cpuid(1).ecx & 1 << 31 != 0 }
}

/// The counter of AArch64 does not tell a guest that it is one.
#[cfg(target_arch = "aarch64")]
fn processor() -> Processor {
    Processor { name: Some(b"arch_sys_counter"), invariant: true, guest: false }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn processor() -> Processor {
    Processor { name: None, invariant: false, guest: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Linux;
    use antiphon_platform::Clocks as _;

    const SOUND: Processor = Processor { name: Some(b"tsc"), invariant: true, guest: false };

    #[test]
    fn a_counter_is_believed_if_the_processor_and_the_kernel_say_so() {
        let guest = Processor { guest: true, ..SOUND };
        assert_eq!(judged(&SOUND, Some(b"tsc")), ClockSource::Counter { guest: false });
        assert_eq!(judged(&guest, Some(b"tsc")), ClockSource::Counter { guest: true });
        let slows = Processor { invariant: false, ..SOUND };
        let none = Processor { name: None, ..SOUND };
        for (processor, clock_source, why) in [
            (&guest, Some(&b"kvm-clock"[..]), Distrust::ByKernel),
            (&SOUND, Some(b"hpet"), Distrust::ByKernel),
            (&SOUND, None, Distrust::Unknown),
            (&slows, Some(b"tsc"), Distrust::NotInvariant),
            (&none, Some(b"tsc"), Distrust::Architecture),
        ] {
            assert_eq!(judged(processor, clock_source), ClockSource::Monotonic(why));
            assert!(ANSWERS.contains(&ClockSource::Monotonic(why)));
        }
    }

    #[test]
    fn each_answer_is_told_in_its_own_words() {
        let mut said = ANSWERS.map(|answer| answer.to_string());
        said.sort();
        assert!(said.windows(2).all(|pair| pair[0] != pair[1]), "{said:?}");
        assert!(said.iter().all(|words| !words.contains("  ")), "{said:?}");
    }

    #[test]
    fn it_goes_on_and_is_waited_for() {
        let first = read();
        assert!(Linux::counter_after(first + 1_000) > first + 1_000);
        assert_eq!(source(), source());
    }
}
