//! The kernel's counts for a program, read from outside, because the program may not have the CPU
//! to report them.

use std::fs;

use super::work::cpu_ns;

/// CPU time and switches of a process and all that it has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, in nanoseconds; that of ended children has a resolution of a hundredth of a
    /// second.
    pub cpu_ns: u64,
    /// Context switches, voluntary or not, without those of children that have ended.
    pub switches: u64,
}

impl Usage {
    /// Returns the usage of this process up to now; zero, if it has ended.
    pub fn of(process: u32) -> Self {
        let mut usage =
            Self { cpu_ns: process_ns(process).unwrap_or(0) + ended_ns(process), switches: 0 };
        let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        for task in entries.map(|entry| entry.path()) {
            let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
            usage.switches += switches(&read("status"));
            for child in read("children").split_whitespace().filter_map(|id| id.parse().ok()) {
                let child = Self::of(child);
                usage.cpu_ns += child.cpu_ns;
                usage.switches += child.switches;
            }
        }
        usage
    }

    /// Returns the usage since the earlier moment `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// Returns the CPU time of all threads of a process, in nanoseconds; `None` if it has ended.
pub fn process_ns(process: u32) -> Option<u64> {
    let mut clock = 0;
    // SAFETY: `clock` is a local variable.
    let failed = unsafe { libc::clock_getcpuclockid(process as i32, &raw mut clock) };
    if failed == 0 { cpu_ns(clock) } else { None }
}

/// Returns the CPU time of the children that the process has waited for, in nanoseconds: `cutime`
/// and `cstime`. Source: proc(5).
fn ended_ns(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    of_stat(&stat).unwrap_or(0)
}

fn of_stat(stat: &str) -> Option<u64> {
    // The name, in brackets, may contain spaces and brackets; field 3 follows it.
    let (_, fields) = stat.rsplit_once(')')?;
    let times: Vec<u64> = fields.split_whitespace().skip(13).take(2).flat_map(str::parse).collect();
    Some(times.iter().sum::<u64>() * 10_000_000)
}

fn switches(status: &str) -> u64 {
    let counts = status.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        name.ends_with("voluntary_ctxt_switches").then(|| count.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 100 200 3 4 20 0 1 0 5";
        assert_eq!(of_stat(stat), Some(70_000_000));
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(switches(status), 11);
    }

    #[test]
    fn what_a_process_uses_grows_and_that_of_none_is_none() {
        let me = std::process::id();
        let before = Usage::of(me);
        while Usage::of(me).since(before).cpu_ns < 1_000_000 {}
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Usage::of(me).since(before).switches > 0);
        assert_eq!(Usage::of(1 << 23), Usage::default(), "no kernel has so many");
    }
}
