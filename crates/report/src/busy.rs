//! Time for which CPUs were busy, from the kernel's counts for each CPU (`/proc/stat`), in
//! hundredths of a second. It includes the time of all programs, and that which a hypervisor took.

use std::fs;

/// The kernel's ticks of USER_HZ, which is 100 for all programs.
const TICKS_PER_S: f64 = 100.0;
/// Fields of a line of `/proc/stat` in which a CPU does not work for this system's programs: idle,
/// and idle with input or output under way. The fields after the eighth are parts of the first two.
const IDLE: [usize; 2] = [3, 4];
const FIELDS: usize = 8;

/// Busy time of all CPUs together since the machine has started, in seconds. `None` if the kernel
/// does not tell.
#[must_use]
pub fn of_all_cpus_s() -> Option<f64> {
    busy_s(&[(0, usize::MAX)])
}

/// The same for the CPUs that this process may use.
#[must_use]
pub fn of_allowed_cpus_s() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    busy_s(&cpus(list)?)
}

fn busy_s(cpus: &[(usize, usize)]) -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    Some(ticks(&stat, cpus)? as f64 / TICKS_PER_S)
}

/// The CPUs of a list such as `0-3,6`, as ranges with both ends.
fn cpus(list: &str) -> Option<Vec<(usize, usize)>> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    list.trim().split(',').map(range).collect()
}

/// The ticks in which these CPUs were busy, in the text of `/proc/stat`. `None` if it has none of
/// them, or not all fields.
fn ticks(stat: &str, cpus: &[(usize, usize)]) -> Option<u64> {
    let mut all = None;
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        let cpu = words.next().and_then(|word| word.strip_prefix("cpu")?.parse().ok());
        let Some(cpu) = cpu else { continue };
        if cpus.iter().any(|&(first, last)| (first..=last).contains(&cpu)) {
            let times: Vec<u64> =
                words.take(FIELDS).map(str::parse).collect::<Result<_, _>>().ok()?;
            let idle = IDLE.iter().map(|&at| times.get(at)).sum::<Option<u64>>()?;
            all = Some(all.unwrap_or(0) + times.iter().sum::<u64>() - idle);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 800 900 8 16 32 1 0\n\
                        cpu1 100 0 0 0 0 0 0 0 0 0\ncpu10 1000 0 0 7 0 0 0 0 0 0\nintr 5\n";

    #[test]
    fn idle_time_and_other_cpus_do_not_count() {
        assert_eq!(ticks(STAT, &[(0, 0)]), Some(63));
        assert_eq!(ticks(STAT, &[(0, 0), (2, 10)]), Some(1063));
        assert_eq!(ticks(STAT, &[(1, 1)]), Some(100));
        assert_eq!(ticks(STAT, &[(2, 9)]), None);
        assert_eq!(ticks("cpu0 40 0\n", &[(0, 0)]), None);
    }

    #[test]
    fn a_list_has_ranges_and_single_numbers() {
        assert_eq!(cpus("\t0-3,6\n"), Some(vec![(0, 3), (6, 6)]));
        assert_eq!(cpus("x"), None);
    }

    #[test]
    fn this_machine_tells() {
        let (allowed, all) = (of_allowed_cpus_s(), of_all_cpus_s());
        assert!(allowed.is_some_and(|time| time > 0.0) && allowed <= all, "{allowed:?} {all:?}");
    }
}
