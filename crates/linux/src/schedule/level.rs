//! Which threads share the CPU with which: the scheduler's groups.
//!
//! A CPU is shared out among groups first, and then among the threads of each. A thread with a
//! short slice goes before others of its own group only; and a group that has had more than its
//! part waits as a whole, whatever is due in it.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// The group that the caller's threads are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// No group: they share the CPU with all threads that are in none.
    Flat,
    /// The group of their session: threads of other sessions, for example of another terminal, are
    /// in other groups.
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

impl Level {
    /// Whether this is a group that the calling process has for itself: the threads that it
    /// competes with are in others. `false` also if that is not known. Reads files of `/proc` and
    /// `/sys`; of a session, one of each process.
    #[must_use]
    pub fn is_own(&self) -> bool {
        let me = process::id();
        match self {
            Self::Flat | Self::Unknown => false,
            // A process that leads no session has come into one that another has made.
            Self::Autogroup(_) => is_session(me),
            Self::Group(_) => {
                let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
                let members = groups.lines().find_map(|line| folder(line, group(line)?));
                let members =
                    members.and_then(|folder| fs::read_to_string(folder.join("cgroup.procs")).ok());
                members.is_some_and(|members| members.trim() == me.to_string())
            }
        }
    }
}

/// Where the files are of the group of a line of `/proc/self/cgroup`.
fn folder(line: &str, group: &str) -> Option<PathBuf> {
    let controllers = line.split(':').nth(1)?;
    let slash = if controllers.is_empty() { "" } else { "/" };
    Some(PathBuf::from(format!("/sys/fs/cgroup{slash}{controllers}{group}")))
}

/// Whether that process leads a session, and is all of it.
fn is_session(process: u32) -> bool {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut members = numbers.filter(|&other| session(other) == Some(process));
    members.next() == Some(process) && members.next().is_none()
}

fn session(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may have anything in it: state, parent, group, session.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(3)?.parse().ok()
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
    fn the_files_of_a_group_are_found_in_both_versions() {
        let of = |line| folder(line, "/a/b").map(|folder| folder.display().to_string());
        assert_eq!(of("1:cpu,cpuacct:/a/b").as_deref(), Some("/sys/fs/cgroup/cpu,cpuacct/a/b"));
        assert_eq!(of("0::/a/b").as_deref(), Some("/sys/fs/cgroup/a/b"));
    }

    #[test]
    fn a_group_of_several_is_nobodys_own() {
        let Ok(mut other) = process::Command::new("setsid").args(["sleep", "60"]).spawn() else {
            return println!("skipped: no setsid");
        };
        // It becomes one that leads a session, of this one's.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while session(other.id()) != Some(other.id()) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let (leads, child, flat) = (is_session(other.id()), other.id(), Level::Flat.is_own());
        other.kill().and_then(|()| other.wait()).expect("it is ours");
        assert!(leads && !flat && !is_session(child), "{leads} {flat}");
        // The process that has started this one is in its session, or this one leads none.
        let mut below = process::Command::new("sleep").arg("60").spawn().expect("a process");
        let own = Level::Autogroup(1).is_own();
        below.kill().and_then(|()| below.wait()).expect("it is ours");
        assert!(!own);
    }

    #[test]
    fn there_is_one_here() {
        assert_eq!(level(), level());
    }
}
