//! Which threads share the CPU with which: the scheduler's groups.
//!
//! A CPU is shared out among groups first, and then among the threads of each. Who has a short
//! slice is before others of its own group only; and a group that has had more than its part waits
//! as a whole, whatever is due in it.

use core::fmt;
use std::fs;
use std::path::Path;

/// The group that the caller's threads are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// None: they share the CPU with all threads that are in none.
    Flat,
    /// Their session's: threads of other sessions, as of another terminal, are in other groups.
    Autogroup(u64),
    /// A control group: threads that are not in it are in others, or none.
    Group(String),
    /// The kernel does not tell.
    Unknown,
}

/// The group of the calling process. Reads files of `/proc` and `/sys`.
#[must_use]
pub fn level() -> Level {
    let Ok(groups) = fs::read_to_string("/proc/self/cgroup") else { return Level::Unknown };
    if let Some(path) = groups.lines().find_map(group) {
        return Level::Group(path.into());
    }
    let enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    if enabled.is_ok_and(|word| word.trim() == "1")
        && let Ok(told) = fs::read_to_string("/proc/self/autogroup")
        && let Some(number) = autogroup(&told)
    {
        return Level::Autogroup(number);
    }
    Level::Flat
}

/// The group of a line of `/proc/self/cgroup`, if it is one that CPUs are shared out by.
fn group(line: &str) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = (path != "/").then_some(path)?;
    let by_cpu = if controllers.is_empty() {
        // Version 2: where the controller is on, the group has a weight.
        Path::new(&format!("/sys/fs/cgroup{path}/cpu.weight")).exists()
    } else {
        controllers.split(',').any(|name| name == "cpu")
    };
    by_cpu.then_some(path)
}

/// The number of `/autogroup-NUMBER nice N`.
fn autogroup(told: &str) -> Option<u64> {
    told.strip_prefix("/autogroup-")?.split_whitespace().next()?.parse().ok()
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flat => f.write_str("in no group: threads compete one by one"),
            Self::Autogroup(number) => {
                write!(f, "in autogroup {number}: other sessions compete as wholes")
            }
            Self::Group(path) => write!(f, "in group {path}: other groups compete as wholes"),
            Self::Unknown => f.write_str("in an unknown group: no /proc"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_cpus_is_told_from_others() {
        assert_eq!(group("1:cpu,cpuacct:/players"), Some("/players"));
        assert_eq!(group("1:cpu:/"), None);
        assert_eq!(group("4:memory:/players"), None);
        assert_eq!(group("0::/no such group"), None);
        assert_eq!(autogroup("/autogroup-53 nice 8\n"), Some(53));
        assert_eq!(autogroup(""), None);
    }

    #[test]
    fn there_is_one_here() {
        assert_eq!(level(), level());
    }
}
