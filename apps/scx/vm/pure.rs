//! The policy in Rust on the events of the cases: what the one in the kernel should decide.

use antiphon_runtime::coop::{Group, Member, Members, Options, Pick, Scheduler, WEIGHT};

/// The order in which threads run that are due, and that wake up in the order of their numbers.
/// `rank` is the order of their releases.
pub fn order(threads: usize, rank: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut cpu = Scheduler::new(Members::new(), Options::default());
    for id in 0..threads {
        cpu.join(Member::new(Group::Own, WEIGHT));
        cpu.poll(id, 0, Some(1_000 * rank(id) as u64 + 1), None);
    }
    for id in 0..threads {
        cpu.wake(id);
    }
    let mut ran = Vec::new();
    while let Pick::Run { id, .. } = cpu.pick(1_000_000) {
        ran.push(id);
        cpu.leave(id, 1_000);
    }
    ran
}

/// The shares of threads that always want the CPU, by their weights.
pub fn shares(weights: &[u32], time_ns: u64) -> Vec<f64> {
    let mut cpu = Scheduler::new(Members::new(), Options::default());
    for weight in weights {
        cpu.join(Member::new(Group::Own, *weight));
    }
    let mut ran = vec![0; weights.len()];
    let mut now_ns = 0;
    while now_ns < time_ns
        && let Pick::Run { id, until_ns, .. } = cpu.pick(now_ns)
    {
        ran[id] += until_ns - now_ns;
        cpu.preempt(id, until_ns - now_ns);
        now_ns = until_ns;
    }
    ran.iter().map(|one| *one as f64 / now_ns as f64).collect()
}

/// The share of a thread that is always due and yields after `turn_ns`, beside one that never
/// polls.
pub fn liar(is_policed: bool, turn_ns: u64, time_ns: u64) -> f64 {
    let mut options = Options::default();
    if !is_policed {
        options.threshold_ns = i64::MAX as u64;
    }
    let mut cpu = Scheduler::new(Members::new(), options);
    let liar = cpu.join(Member::default());
    cpu.join(Member::default());
    let (mut now_ns, mut ran) = (0, 0);
    while now_ns < time_ns
        && let Pick::Run { id, until_ns, .. } = cpu.pick(now_ns)
    {
        if Some(id) == liar {
            ran += turn_ns;
            now_ns += turn_ns;
            cpu.poll(id, turn_ns, Some(1), Some(0));
        } else {
            cpu.preempt(id, until_ns - now_ns);
            now_ns = until_ns;
        }
    }
    ran as f64 / now_ns as f64
}

/// The shares of two members of a group and of a thread beside them, all of which always want the
/// CPU. The members' importance grows with what they have had, by these factors.
pub fn group(factors: [u64; 2], turn_ns: u64, time_ns: u64) -> [f64; 3] {
    let mut cpu = Scheduler::new(Members::new(), Options::default());
    for _ in factors {
        cpu.join(Member::new(Group::Number(1), WEIGHT));
    }
    cpu.join(Member::default());
    let (mut now_ns, mut ran) = (0, [0; 3]);
    while now_ns < time_ns
        && let Pick::Run { id, until_ns, .. } = cpu.pick(now_ns)
    {
        let ns = if id < factors.len() { turn_ns } else { until_ns - now_ns };
        ran[id] += ns;
        now_ns += ns;
        match factors.get(id) {
            Some(factor) => _ = cpu.poll(id, ns, None, Some(1 + ran[id] * factor)),
            None => cpu.preempt(id, ns),
        }
    }
    ran.map(|one| one as f64 / now_ns as f64)
}
