//! Control groups of a run, one for each of its programs: run-queue levels other than sessions.
//!
//! | version | where | is a level if it has |
//! |---|---|---|
//! | 1 | below the run's own group of the controller `cpu` | `cpu.shares` |
//! | 2 | beside the run's own group: below one with processes there can be none | `cpu.weight` |
//!
//! They are removed when the run is over; those of a killed run are removed by the next run.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Control groups, which are removed when this is dropped.
pub struct Groups {
    folders: Vec<PathBuf>,
}

/// Prefix of the names of groups.
const PREFIX: &str = "antiphon-";
/// CPU time that real-time threads of all groups together may use in a second, in microseconds:
/// less than the kernel's usual limit for all of them.
const REAL_TIME_US: usize = 900_000;
/// Length of one wait for the last process of a group to end, and the maximal number of such waits.
const NAP: Duration = Duration::from_millis(10);
const NAPS: u32 = 100;

impl Groups {
    /// Makes `number` groups.
    ///
    /// # Errors
    ///
    /// One line, if this is not permitted or there are no control groups; it says what would help.
    pub fn make(number: usize) -> Result<Self, String> {
        let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let (place, file) = place(&text).ok_or("this kernel has no control groups of CPU time")?;
        remove_old(&place);
        let mut groups = Self { folders: Vec::new() };
        for index in 0..number {
            let folder = place.join(format!("{PREFIX}{}-{index}", std::process::id()));
            fs::create_dir(&folder).map_err(|error| refused(&place, &error))?;
            groups.folders.push(folder);
        }
        let levels = groups.folders.iter().all(|folder| folder.join(file).exists());
        levels.then_some(groups).ok_or_else(|| {
            let place = place.display();
            format!("groups in {place} have no {file}: write +cpu to its cgroup.subtree_control")
        })
    }

    /// Lets real-time threads run in the groups, where the kernel has a real-time budget for each
    /// group.
    ///
    /// # Errors
    ///
    /// One line, if this is not permitted or exceeds the budget.
    pub fn give_real_time(&self) -> Result<(), String> {
        let runtime_us = REAL_TIME_US / self.folders.len().max(1);
        let files = self.folders.iter().map(|folder| folder.join("cpu.rt_runtime_us"));
        for file in files.filter(|file| file.exists()) {
            fs::write(&file, runtime_us.to_string()).map_err(|error| {
                let file = file.display();
                format!("{file} can't be {runtime_us} ({error}): have more in the group above")
            })?;
        }
        Ok(())
    }

    /// Returns the folder of the group `number`.
    pub fn folder(&self, number: usize) -> Option<&PathBuf> {
        self.folders.get(number)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            // The children of a killed program end a little later.
            let busy = |tried: &Error| tried.kind() == ErrorKind::ResourceBusy;
            let mut naps = 0..NAPS;
            while fs::remove_dir(folder).is_err_and(|error| busy(&error)) && naps.next().is_some() {
                thread::sleep(NAP);
            }
        }
    }
}

/// Moves the calling process into the group.
///
/// # Errors
///
/// One line, if this is not permitted.
pub fn enter(folder: &Path) -> Result<(), String> {
    let own = std::process::id().to_string();
    fs::write(folder.join("cgroup.procs"), own).map_err(|error| refused(folder, &error))
}

fn refused(place: &Path, error: &Error) -> String {
    let place = place.display();
    format!(
        "no control groups can be had in {place} ({error}): be root, or have it delegated \
         (systemd-run --user --scope -p Delegate=yes)"
    )
}

/// Returns the folder in which groups are made, from the text of `/proc/self/cgroup`, and the file
/// that a group has if it is a level.
fn place(text: &str) -> Option<(PathBuf, &'static str)> {
    let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    if let Some((names, own)) = lines().find(|(names, _)| names.split(',').any(|it| it == "cpu")) {
        let folder = format!("/sys/fs/cgroup/{names}{}", own.trim_end_matches('/'));
        return Some((PathBuf::from(folder), "cpu.shares"));
    }
    let (_, own) = lines().find(|(names, _)| names.is_empty())?;
    let above = own.rsplit_once('/').map_or("", |(above, _)| above);
    Some((PathBuf::from(format!("/sys/fs/cgroup{above}")), "cpu.weight"))
}

/// Removes the groups of runs that have ended; groups in use can't be removed.
fn remove_old(place: &Path) {
    let names = fs::read_dir(place).into_iter().flatten().flatten();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let process = process.and_then(|process| process.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            // Another process may have removed it meanwhile.
            let _ = fs::remove_dir(place.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_made_where_there_may_be_some() {
        let of = |text: &str| place(text).map(|(place, file)| (place.display().to_string(), file));
        let found = |place: &str, file| Some((place.to_owned(), file));
        assert_eq!(
            of("9:name=systemd:/x\n1:cpu:/\n0::/\n"),
            found("/sys/fs/cgroup/cpu", "cpu.shares")
        );
        let one = of("4:cpu,cpuacct:/a/b\n");
        assert_eq!(one, found("/sys/fs/cgroup/cpu,cpuacct/a/b", "cpu.shares"));
        assert_eq!(
            of("0::/user.slice/a.scope\n"),
            found("/sys/fs/cgroup/user.slice", "cpu.weight")
        );
        assert_eq!(of("0::/\n"), found("/sys/fs/cgroup", "cpu.weight"));
        assert_eq!(of("3:cpuset:/\n"), None);
    }

    #[test]
    fn groups_are_gone_when_the_run_is_over() {
        let groups = match Groups::make(2) {
            Ok(groups) => groups,
            Err(why) => return println!("skipped: {why}"),
        };
        let folders = groups.folders.clone();
        assert!(folders.len() == 2 && folders.iter().all(|folder| folder.exists()));
        drop(groups);
        assert!(folders.iter().all(|folder| !folder.exists()));
        // A folder named after a process that can't exist: its number is out of range.
        let old = folders[0].with_file_name(format!("{PREFIX}{}-0", u32::MAX));
        fs::create_dir(&old).expect("as above");
        drop(Groups::make(1).expect("as above"));
        assert!(!old.exists());
    }
}
