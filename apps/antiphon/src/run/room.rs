//! Checks whether there is room for threads of this process beside CMD's processes and threads.
//!
//! The kernel limits the tasks of a user (`ulimit -u`) and of a control group. This process is one
//! task more than CMD alone, which can't be avoided; but the thread that samples CMD's threads is
//! left out where it could take the place of one of CMD's.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// If a limit leaves at least this many tasks, one more thread of ours does no harm.
const ENOUGH: u64 = 32;

/// The limit that leaves too little room for a thread of ours; `None` if no limit does.
pub fn scarce() -> Option<&'static str> {
    if left_to_user().is_some_and(|left| left < ENOUGH) {
        return Some("the limit on processes (ulimit -u)");
    }
    groups()
        .iter()
        .any(|group| left_to_group(group).is_some_and(|left| left < ENOUGH))
        .then_some("the control group's limit on processes (pids.max)")
}

/// The number of tasks that this process's user may still start; `None` without a limit.
fn left_to_user() -> Option<u64> {
    // SAFETY: takes no arguments and can't fail.
    let user = unsafe { libc::getuid() };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes to our memory.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NPROC, &raw mut limit) } == 0;
    // The kernel exempts root from this limit.
    if !known || user == 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    Some(limit.rlim_cur.saturating_sub(tasks_of(user)))
}

/// The number of a user's tasks, as far as `/proc` shows.
fn tasks_of(user: u32) -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let ours = processes.flatten().filter(|process| {
        process.metadata().is_ok_and(|about| about.is_dir() && about.uid() == user)
    });
    ours.filter_map(|process| fs::read_dir(process.path().join("task")).ok())
        .map(|tasks| tasks.count() as u64)
        .sum()
}

/// The folders of the control groups that limit this process's tasks: its own group and those above
/// it.
fn groups() -> Vec<PathBuf> {
    let lines = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let folder = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let root = match fields.next()? {
            "" => "/sys/fs/cgroup",
            controllers if controllers.split(',').any(|it| it == "pids") => "/sys/fs/cgroup/pids",
            _ => return None,
        };
        Some((root.to_owned(), fields.next()?.trim_start_matches('/').to_owned()))
    };
    let folders = lines.lines().filter_map(folder).flat_map(|(root, group)| {
        let above = Path::new(&group).ancestors().map(|group| Path::new(&root).join(group));
        above.collect::<Vec<_>>()
    });
    folders.collect()
}

/// The number of tasks that a control group may still start; `None` without a limit.
fn left_to_group(folder: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    Some(number("pids.max")?.saturating_sub(number("pids.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_among_its_users_tasks() {
        // SAFETY: takes no arguments and can't fail.
        assert!(tasks_of(unsafe { libc::getuid() }) >= 1);
    }

    #[test]
    fn a_group_has_what_its_limit_leaves() {
        let folder = std::env::temp_dir().join(format!("antiphon-room-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
        write("pids.current", "7\n");
        assert_eq!(left_to_group(&folder), None);
        write("pids.max", "max\n");
        assert_eq!(left_to_group(&folder), None);
        write("pids.max", "9\n");
        assert_eq!(left_to_group(&folder), Some(2));
        write("pids.max", "3\n");
        assert_eq!(left_to_group(&folder), Some(0));
        fs::remove_dir_all(&folder).expect("it was there");
    }
}
