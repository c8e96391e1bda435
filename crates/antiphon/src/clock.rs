//! A clock of counters that no thread has to share, measured on the machine that it runs on.

use std::fmt;
use std::sync::OnceLock;

use antiphon_linux::{Changed, ClockSource, Linux, Pace, pin, source, usable};
use antiphon_sync::clock::{Apart, Least, Meeting, Order, Ordo};

use crate::Mutex;

/// Rounds of a meeting of two CPUs, if there is time: on an idle machine a tenth of a millisecond.
const ROUNDS: u32 = 256;
/// All meetings together, unless each has its least number of rounds only.
const WITHIN_NS: u64 = 30_000_000;
/// How long ticks are counted, to tell them in nanoseconds.
const RATE_NS: u64 = 1_000_000;
/// What is less certain than that was measured on a busy machine: it is tried again so often.
const POOR_NS: u64 = 10_000;
const TRIES: u32 = 4;

/// Timestamps without a shared counter, with a known uncertainty ([Ordo](crate::generic::Ordo)).
///
/// A stamp is what the counter of the CPU under the caller says: some 20 ns, whoever else takes
/// stamps. Counters of two CPUs are apart by a little, which is measured before the first stamp;
/// stamps that are closer than that are [`Order::Uncertain`].
///
/// ```
/// use antiphon::{Clock, Order};
///
/// let clock = Clock::shared()?;
/// let first = clock.now();
/// let second = std::thread::scope(|scope| scope.spawn(|| clock.now()).join().unwrap());
/// assert_ne!(clock.cmp(first, second), Order::Greater);
///
/// let third = clock.new_time(second);
/// assert_eq!(clock.cmp(third, first), Order::Greater);
/// println!("within {} ns, by {}", clock.uncertainty_ns(), clock.source());
/// # Ok::<(), antiphon::NotMeasured>(())
/// ```
///
/// It knows the CPUs that the process could use when it was measured, whatever those of the calling
/// thread were. A program that goes on while CPUs come online, or while the virtual machine it is
/// in is moved to another host, or suspended, measures again; [`verify`](Self::verify) says whether
/// it was.
#[derive(Clone, Debug)]
pub struct Clock {
    ordo: Ordo<Linux>,
    cpus: usize,
    pace: Pace,
}

/// When something happened, by one [`Clock`]. As good on all threads of this machine, for that
/// clock and those that are measured later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The stamp that these bits are of.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// As a number, for an atomic word, say. Never less than before on one CPU, nor the same where
    /// the counter is faster than the reading of it, as on x86-64; 0 is a stamp that is certainly
    /// before all others.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// Why a clock can't be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMeasured {
    /// No thread could be made.
    NoThread,
    /// No thread may be put on a CPU.
    NotPinned,
    /// A CPU was taken away meanwhile.
    Moved,
    /// Ticks can't be told in nanoseconds: the CPU was lost too often.
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
    /// As [`measure`](Self::measure). The next call tries again.
    pub fn shared() -> Result<&'static Self, NotMeasured> {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        static MEASURING: Mutex<()> = Mutex::new(());

        if let Some(clock) = CLOCK.get() {
            return Ok(clock);
        }
        let _alone = MEASURING.lock();
        if let Some(clock) = CLOCK.get() {
            return Ok(clock);
        }
        let clock = Self::measure()?;
        Ok(CLOCK.get_or_init(|| clock))
    }

    /// Measures how far the counters of all CPUs that this process may use are apart. Blocks, while
    /// two threads of its own pass a word to and fro: a few milliseconds on two idle CPUs, and some
    /// 30 ms more at most, or 16 exchanges with each CPU where those take longer. On a busy machine
    /// it does so up to four times, and all the same the clock may come out less certain than it
    /// could: [`uncertainty_ns`](Self::uncertainty_ns) says how certain it is. The two wait for
    /// their turn on each CPU: where a real-time thread (`SCHED_FIFO`) has one, for as long as that
    /// runs, or until the kernel throttles it.
    ///
    /// # Errors
    ///
    /// If threads can't be made or put on CPUs, or the machine is too busy.
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
        // A thread of its own, so that the caller stays where it is.
        let hub = std::thread::Builder::new().spawn(measure_from_a_hub);
        let hub = hub.map_err(|_| NotMeasured::NoThread)?.join();
        hub.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// A stamp of this moment. It is in its place in the program: no access is moved across, except
    /// that earlier plain stores may still be on their way.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        Timestamp(self.ordo.now())
    }

    /// Which of two stamps was taken first, if that is certain.
    #[inline]
    pub fn cmp(&self, one: Timestamp, other: Timestamp) -> Order {
        self.ordo.cmp(one.0, other.0)
    }

    /// A stamp that is certainly after another, of this clock. Spins for as long as stamps are
    /// uncertain, at most; but if the other is of no moment that was (it was made from bits), until
    /// that has come.
    #[must_use]
    pub fn new_time(&self, after: Timestamp) -> Timestamp {
        Timestamp(self.ordo.new_time(after.0))
    }

    /// Stamps that were taken within so many nanoseconds may have no certain order.
    #[must_use]
    pub fn uncertainty_ns(&self) -> u64 {
        (self.ordo.uncertainty() as f64 / self.ticks_per_ns()).ceil() as u64
    }

    /// How many CPUs were measured.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// What stamps are made of: the counters of CPUs, or the monotonic clock and why.
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

    /// Looks whether what was measured still holds, as far as that can be told afterwards: whether
    /// the kernel trusts the counters as it did, and whether they have neither jumped nor changed
    /// their rate. Some microseconds; reads a file of `/sys`. A jump of less than a millisecond, or
    /// of a thousandth of the time since, is not seen.
    ///
    /// # Errors
    ///
    /// What has changed. This clock is of no use any more, then.
    pub fn verify(&self) -> Result<(), Changed> {
        self.pace.verify()
    }

    /// The clock in ticks, for what is generic over the machine.
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

/// Meets the hub on each of these CPUs. Where a CPU has gone, it meets it elsewhere, because it
/// waits; that counts for nothing then.
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
            // SAFETY: the set is ours, and as long as we say.
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
        // Two counters are apart by what a line takes at the least, if there are two.
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
