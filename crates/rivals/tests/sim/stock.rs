//! The kernel's locks on simulated machines: the collapse that the documents begin with. All
//! figures are simulated.

use crate::common::contention::{self, Pace};
use antiphon_rivals::cst::CstMutex;
use antiphon_rivals::stock::{LinuxMutex, LinuxRwSem, QSpinLock};
use antiphon_sim::{Machine, Outcome, Sim};
use antiphon_sync::lock::Lock;

/// Short critical sections on a busy lock.
fn contend<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> Outcome {
    contention::contend::<L>(machine, threads, Pace { section_ns: 50, away_ns: 200 }, limit_ns)
}

fn rate<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> f64 {
    contend::<L>(machine, threads, limit_ns).total_operations() as f64
}

#[test]
fn every_lock_excludes_and_serves_all() {
    for threads in [1, 2, 8] {
        let machine = || Machine::two_sockets().shape(2, 4);
        for outcome in [
            contend::<QSpinLock<Sim>>(machine(), threads, 2_000_000),
            contend::<LinuxMutex<Sim>>(machine(), threads, 2_000_000),
            contend::<LinuxRwSem<Sim>>(machine(), threads, 2_000_000),
        ] {
            assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
        }
    }
}

/// `004_…` and `000_…`: stock locks lose beyond one socket what NUMA-aware ones keep.
#[test]
fn stock_locks_collapse_beyond_one_socket() {
    fn keeps<L: Lock>() -> f64 {
        let of = |threads| rate::<L>(Machine::eight_sockets(), threads, 600_000);
        of(192) / of(24)
    }
    let (spin, mutex) = (keeps::<QSpinLock<Sim>>(), keeps::<LinuxMutex<Sim>>());
    let cst = keeps::<CstMutex<Sim>>();
    println!("simulated, 192 threads : 24: qspinlock {spin:.2}, mutex {mutex:.2}, CST {cst:.2}");
    assert!(spin < 0.6 && mutex < 0.6, "{spin}, {mutex}");
    assert!(cst > 0.7, "{cst}");
}

/// Where threads outnumber cores, spinning only while the owner runs saves the mutex from the
/// collapse of queues of spinners.
#[test]
fn the_mutex_gets_on_where_threads_outnumber_cores() {
    let machine = || Machine::two_sockets().shape(2, 4);
    let of = |threads| rate::<LinuxMutex<Sim>>(machine(), threads, 10_000_000);
    let kept = of(32) / of(8);
    let spin = rate::<QSpinLock<Sim>>(machine(), 32, 10_000_000)
        / rate::<QSpinLock<Sim>>(machine(), 8, 10_000_000);
    println!("simulated, 32 threads on 8 cores : 8: mutex {kept:.2}, qspinlock {spin:.2}");
    assert!(kept > spin, "{kept}, {spin}");
}
