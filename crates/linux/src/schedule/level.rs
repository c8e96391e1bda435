//! The scheduler's groups, which determine the threads that share a CPU with each other.
//!
//! A CPU is divided among groups first, and then among the threads of each group. A thread with a
//! short slice goes before other threads of its own group only; and a group that has had more than
//! its share waits as a whole, whatever is due in it.

use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

/// The group of the calling process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// No group: its threads share the CPU with all threads outside groups.
    Flat,
    /// The group of its session: threads of other sessions, for example of another terminal, are in
    /// other groups.
    Autogroup(u64),
    /// A control group: threads that are not in it are in others, or none.
    Group(String),
    /// The kernel does not report the group.
    Unknown,
}

/// Returns the group of the calling process. Reads files of `/proc` and `/sys`.
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
    /// Returns whether the calling process has this group for itself, so that the threads that it
    /// competes with are in other groups. Also `false` if that is not known. Reads files of `/proc`
    /// and `/sys`; for a session, one file of each process.
    #[must_use]
    pub fn is_own(&self) -> bool {
        let me = process::id();
        match self {
            Self::Flat | Self::Unknown => false,
            // A process that does not lead its session is in a session that another process made.
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

/// The directory of the group in a line of `/proc/self/cgroup`.
fn folder(line: &str, group: &str) -> Option<PathBuf> {
    let controllers = line.split(':').nth(1)?;
    let slash = if controllers.is_empty() { "" } else { "/" };
    Some(PathBuf::from(format!("/sys/fs/cgroup{slash}{controllers}{group}")))
}

/// Returns whether that process leads a session and is its only member.
fn is_session(process: u32) -> bool {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut members = numbers.filter(|&other| session(other) == Some(process));
    members.next() == Some(process) && members.next().is_none()
}

fn session(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which may contain any characters: state, parent, group, session.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(3)?.parse().ok()
}

/// The group in a line of `/proc/self/cgroup`, if CPU time is divided by it.
fn group(line: &str) -> Option<&str> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = (path != "/").then_some(path)?;
    let by_cpu = if controllers.is_empty() {
        // Version 2: where the CPU controller is enabled, the group has a weight.
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
        // The child becomes the leader of its own session.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while session(other.id()) != Some(other.id()) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let (leads, child, flat) = (is_session(other.id()), other.id(), Level::Flat.is_own());
        other.kill().and_then(|()| other.wait()).expect("it is ours");
        assert!(leads && !flat && !is_session(child), "{leads} {flat}");
        // The parent of this process is in the same session, or this process leads none.
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
