//! Timestamps without a shared counter: a [`Clock`] made of the counters of the CPUs, measured on
//! the machine that it runs on.
//!
//! ```
//! use antiphon_clock::{Clock, Order};
//!
//! let clock = Clock::shared()?;
//! let first = clock.now();
//! let second = std::thread::scope(|scope| scope.spawn(|| clock.now()).join().unwrap());
//! assert_ne!(clock.cmp(first, second), Order::Greater);
//!
//! let third = clock.new_time(second);
//! assert_eq!(clock.cmp(third, first), Order::Greater);
//! println!("within {} ns, by {}", clock.uncertainty_ns(), clock.source());
//! # Ok::<(), antiphon_clock::NotMeasured>(())
//! ```
//!
//! A stamp is the value of the counter of the current CPU: about 20 ns, however many threads take
//! stamps. The counters of two CPUs differ a little, which is measured before the first stamp;
//! stamps that are closer than that are [`Order::Uncertain`].

use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

pub use antiphon_linux::{Changed as ClockChanged, ClockSource, Distrust};
use antiphon_linux::{Changed, Linux, Pace, pin, source, usable};
pub use antiphon_sync::clock::Order;
use antiphon_sync::clock::{Apart, Least, Meeting, Ordo};

/// Rounds of a meeting of two CPUs, if there is time: on an idle machine a tenth of a millisecond.
const ROUNDS: u32 = 256;
/// Time limit for all meetings together, except that each has at least the minimum number of
/// rounds.
const WITHIN_NS: u64 = 30_000_000;
/// Time for which ticks are counted, to convert them to nanoseconds.
const RATE_NS: u64 = 1_000_000;
/// A measurement that is less certain than this was made on a busy machine, and is tried again, up
/// to `TRIES` times.
const POOR_NS: u64 = 10_000;
const TRIES: u32 = 4;

/// Timestamps without a shared counter, with a known uncertainty ([`Ordo`]).
///
/// The clock covers the CPUs that the process could use when it was measured, whatever the affinity
/// of the calling thread. A program that goes on while CPUs come online, or while its virtual
/// machine is moved to another host or suspended, must measure again; [`verify`](Self::verify)
/// detects this.
#[derive(Clone, Debug)]
pub struct Clock {
    ordo: Ordo<Linux>,
    cpus: usize,
    pace: Pace,
}

/// A point in time by a [`Clock`]. It is valid on all threads of this machine, for that clock and
/// for clocks measured later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The stamp made of these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The stamp as a number, for example for an atomic word. On one CPU it never decreases, and it
    /// is never the same twice where the counter is faster than reading it, as on x86-64; 0 is a
    /// stamp certainly before all others.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// Why a clock cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    /// A thread could not be created.
    NoThread,
    /// A thread may not be bound to a CPU.
    NotPinned,
    /// A CPU was taken away meanwhile.
    Moved,
    /// Ticks cannot be converted to nanoseconds: the thread lost its CPU too often.
    Disturbed,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoThread => "the clock needs a second thread for a moment: see ulimit -u",
            Self::NotPinned => {
                "the clock is measured by threads on all CPUs, and sched_setaffinity is refused: \
                 permit it in the filter of system calls"
            }
            Self::Moved => "a CPU was taken away while the clock was measured: measure again",
            Self::Disturbed => {
                "the CPU was lost too often while the clock was measured: measure again when \
                 there is less to do"
            }
        })
    }
}

impl std::error::Error for NotMeasured {}

impl Clock {
    /// The clock of this process; the first call measures it, and blocks for that.
    ///
    /// # Errors
    ///
    /// As for [`measure`](Self::measure). The next call tries again.
    pub fn shared() -> Result<&'static Self, NotMeasured> {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        static MEASURING: Mutex<()> = Mutex::new(());

        if let Some(clock) = CLOCK.get() {
            return Ok(clock);
        }
        let _alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(clock) = CLOCK.get() {
            return Ok(clock);
        }
        let clock = Self::measure()?;
        Ok(CLOCK.get_or_init(|| clock))
    }

    /// Measures how far apart the counters of all CPUs are that this process may use. It blocks
    /// while two threads of its own pass a word back and forth: a few milliseconds on two idle
    /// CPUs, and at most about 30 ms more, or 16 exchanges with each CPU if those take longer. On a
    /// busy machine it tries up to four times; still, the clock may come out less certain than it
    /// could: [`uncertainty_ns`](Self::uncertainty_ns) says how certain it is. The two threads wait
    /// for their turn on each CPU: if a real-time thread (`SCHED_FIFO`) occupies one, they wait for
    /// as long as that runs, or until the kernel throttles it.
    ///
    /// # Errors
    ///
    /// If threads cannot be created or bound to CPUs, or if the machine is too busy.
    pub fn measure() -> Result<Self, NotMeasured> {
        let mut best = Self::measure_once()?;
        for _ in 1..TRIES {
            if best.uncertainty_ns() <= POOR_NS {
                break;
            }
            let again = Self::measure_once()?;
            if again.ordo.uncertainty() < best.ordo.uncertainty() {
                best = again;
            }
        }
        Ok(best)
    }

    fn measure_once() -> Result<Self, NotMeasured> {
        // On a separate thread, so that the caller's affinity doesn't change.
        let hub = std::thread::Builder::new().spawn(measure_from_a_hub);
        let hub = hub.map_err(|_| NotMeasured::NoThread)?.join();
        hub.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// A stamp of this moment. It keeps its place in the program: no access is moved across it,
    /// except that earlier plain stores may still be on their way.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.ordo.now())
    }

    /// Returns which of two stamps was taken first, if that is certain.
    #[inline]
    pub fn cmp(&self, one: Timestamp, other: Timestamp) -> Order {
        self.ordo.cmp(one.0, other.0)
    }

    /// A stamp that is certainly after another of this clock. It spins for at most as long as
    /// stamps are uncertain; but if the other stamp is in the future (it was made from bits), it
    /// spins until then.
    #[must_use]
    pub fn new_time(&self, after: Timestamp) -> Timestamp {
        Timestamp(self.ordo.new_time(after.0))
    }

    /// The uncertainty: stamps taken within this many nanoseconds of each other may have no certain
    /// order.
    #[must_use]
    pub fn uncertainty_ns(&self) -> u64 {
        (self.ordo.uncertainty() as f64 / self.ticks_per_ns()).ceil() as u64
    }

    /// Number of CPUs that were measured.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// The source of the stamps: the counters of the CPUs, or the monotonic clock, and why.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        source()
    }

    fn ticks_per_ns(&self) -> f64 {
        match self.source() {
            ClockSource::Monotonic(_) => 1.0,
            ClockSource::Counter { .. } => self.pace.ticks_per_ns(),
        }
    }

    /// Checks whether the measurement still holds, as far as that can be found out afterwards:
    /// whether the kernel trusts the counters as it did, and whether they have neither jumped nor
    /// changed their rate. It takes some microseconds, and reads a file of `/sys`. It does not see
    /// a jump of less than a millisecond, or of less than a thousandth of the time that has passed.
    ///
    /// # Errors
    ///
    /// Returns an error that says what has changed. This clock can no longer be used then.
    pub fn verify(&self) -> Result<(), Changed> {
        self.pace.verify()
    }

    /// The clock in ticks, for code that is generic over the machine.
    #[must_use]
    pub fn ordo(&self) -> Ordo<Linux> {
        self.ordo
    }
}

/// Measures, from the first CPU; leaves the calling thread there.
fn measure_from_a_hub() -> Result<Clock, NotMeasured> {
    let cpus = usable();
    let (&hub, others) = cpus.split_first().ok_or(NotMeasured::NotPinned)?;
    pin(hub).map_err(|_| NotMeasured::NotPinned)?;
    let meetings: Vec<_> = others.iter().map(|_| Meeting::<Linux>::new()).collect();
    let within_ns = WITHIN_NS / cpus.len() as u64;
    let (from_hub, from_others) = std::thread::scope(|scope| {
        let follower =
            std::thread::Builder::new().spawn_scoped(scope, || follow(others, &meetings));
        let follower = follower.map_err(|_| NotMeasured::NoThread)?;
        let lead = |meeting: &Meeting<Linux>| meeting.lead(ROUNDS, within_ns);
        let led: Vec<_> = meetings.iter().map(lead).collect();
        match follower.join() {
            Ok(followed) => Ok((led, followed?)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    let mut apart = Apart::new();
    from_hub.into_iter().zip(from_others).for_each(|(hub, other)| apart.add(hub, other));
    let pace = (0..5).find_map(|_| Pace::measure(RATE_NS)).ok_or(NotMeasured::Disturbed)?;
    Ok(Clock { ordo: Ordo::new(apart.ticks()), cpus: cpus.len(), pace })
}

/// Meets the hub on each of these CPUs. If a CPU has gone offline, the thread meets the hub on
/// another one, because the hub waits; that meeting is not counted.
fn follow(cpus: &[u32], meetings: &[Meeting<Linux>]) -> Result<Vec<Least>, NotMeasured> {
    let follow = |(&cpu, meeting): (&u32, &Meeting<Linux>)| {
        let pinned = pin(cpu);
        let least = meeting.follow();
        pinned.map_or(Err(NotMeasured::Moved), |()| Ok(least))
    };
    let all: Vec<_> = cpus.iter().zip(meetings).map(follow).collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ask_one_clock_and_nobody_is_moved_by_it() {
        let affinity = || {
            let mut set = [0_u64; 32];
            // SAFETY: the set is ours, and has this length.
            let done =
                unsafe { libc::sched_getaffinity(0, size_of_val(&set), set.as_mut_ptr().cast()) };
            (done, set)
        };
        let before = affinity();
        let address = || Clock::shared().map(|clock| std::ptr::from_ref(clock).addr());
        let first = address().expect("this machine has a clock");
        let others: Vec<_> = (0..4).map(|_| std::thread::spawn(address)).collect();
        assert!(others.into_iter().all(|other| other.join().is_ok_and(|it| it == Ok(first))));
        assert_eq!(affinity(), before);
    }

    #[test]
    fn stamps_are_kept_as_bits_and_zero_is_before_all() -> Result<(), NotMeasured> {
        let clock = Clock::shared()?;
        let now = clock.now();
        assert_eq!(Timestamp::from_bits(now.to_bits()), now);
        assert_eq!(clock.cmp(Timestamp::from_bits(0), now), Order::Less);
        assert!(clock.cpus() > 0);
        // If there are two counters, they are apart by at least the time that a cache line takes.
        assert!(clock.cpus() == 1 || clock.uncertainty_ns() > 0);
        assert_eq!(clock.verify(), Ok(()));
        Ok(())
    }

    #[test]
    fn what_went_wrong_is_said_with_a_remedy() {
        use NotMeasured::{Disturbed, Moved, NoThread, NotPinned};
        for error in [NoThread, NotPinned, Moved, Disturbed] {
            let said = error.to_string();
            assert!(said.contains(':') && !said.contains("  "), "{said}");
        }
    }
}
