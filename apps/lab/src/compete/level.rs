//! The run-queue level of a run: programs of the run compete with each other on it, and the level
//! as a whole competes with others.
//!
//! Each run is a session of its own, so where the kernel has autogroups and the process is in the
//! root control group, the session is the level. In any other control group, that group is the
//! level.

use std::fs;

use antiphon_coop::Tier;
use antiphon_linux::schedule::{NICE, set_nice};
use antiphon_platform::ThreadId;
use serde::{Deserialize, Serialize};

/// The level of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The control group of its CPU time.
    pub cgroup: Option<String>,
    /// Autogroup and its nice value, as in `/proc/self/autogroup`, if it is a level.
    pub autogroup: Option<String>,
    /// Whether it weighs more than others, as requested.
    pub first: bool,
    /// Why it does not weigh more, though that was requested.
    pub not_first: Option<String>,
}

/// Returns whether a tier is weaker against programs on another level.
pub fn weakens(tier: Tier) -> bool {
    matches!(tier, Tier::Split | Tier::Baton)
}

const AUTOGROUP: &str = "/proc/self/autogroup";
/// Nice value of maximal weight.
const FIRST: i32 = *NICE.start();

impl Level {
    /// Puts this process and all that it starts on one level; with `first`, if permitted, on one
    /// that weighs more than all others.
    pub fn take(first: bool) -> Self {
        // SAFETY: takes no arguments. It fails if the process leads its group, and then changes
        // nothing.
        unsafe { libc::setsid() };
        let refused = first.then(Self::weigh_most).and_then(Result::err);
        Self { first: first && refused.is_none(), not_first: refused, ..Self::here() }
    }

    /// Gives the session the maximal weight.
    fn weigh_most() -> Result<(), String> {
        Self::can_be_taken()?;
        fs::write(AUTOGROUP, FIRST.to_string()).map_err(|error| {
            // A session may have the weight that its threads may have.
            let tried = std::thread::spawn(|| set_nice(ThreadId(0), FIRST)).join();
            let refused = tried.ok().and_then(Result::err);
            refused.map_or_else(|| format!("{AUTOGROUP}: {error}"), |why| why.to_string())
        })
    }

    /// Checks whether a session is a level here.
    ///
    /// # Errors
    ///
    /// One line that says why not, and what would help.
    pub fn can_be_taken() -> Result<(), String> {
        let here = Self::here();
        match (&here.autogroup, &here.cgroup) {
            (Some(_), _) => Ok(()),
            (None, Some(group)) if group != "/" => Err(format!(
                "programs of the control group {group} are on one level whatever their sessions: \
                 run it in the first group"
            )),
            (None, _) => Err("the kernel makes no group of a session: \
                              sysctl kernel.sched_autogroup_enabled=1"
                .to_owned()),
        }
    }

    /// Returns the level of this process, and of all that it starts.
    pub fn here() -> Self {
        let cgroup = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group(&text));
        let on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
        let on = on.is_ok_and(|on| on.trim() == "1");
        let counts = on && cgroup.as_deref().is_none_or(|group| group == "/");
        let autogroup = fs::read_to_string(AUTOGROUP).ok().filter(|_| counts);
        let autogroup = autogroup.map(|text| text.trim().to_owned());
        Self { cgroup, autogroup, ..Self::default() }
    }

    /// Describes the level for people.
    pub fn said(&self) -> String {
        let cgroup = self.cgroup.as_deref().unwrap_or("unknown");
        let autogroup = self.autogroup.as_deref().unwrap_or("no autogroup");
        let first = if self.first { "; weighs more than all others" } else { "" };
        format!("cgroup {cgroup}, {autogroup}{first}")
    }
}

/// Returns the group of CPU time from the text of `/proc/self/cgroup`: that of the controller
/// `cpu`, or of version 2.
fn group(text: &str) -> Option<String> {
    let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of_one = lines().find(|(names, _)| names.split(',').any(|name| name == "cpu"));
    let of_two = || lines().find(|(names, _)| names.is_empty());
    of_one.or_else(of_two).map(|(_, group)| group.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_cpu_time_is_found_in_both_versions() {
        let one = "9:name=systemd:/\n4:cpu,cpuacct:/a/b:c\n2:cpuset:/x\n0::/z\n";
        assert_eq!(group(one).as_deref(), Some("/a/b:c"));
        assert_eq!(group("0::/user.slice\n").as_deref(), Some("/user.slice"));
        assert_eq!(group("2:cpuset:/x\n"), None);
    }

    #[test]
    fn a_level_is_said() {
        let level = Level { cgroup: Some("/".into()), ..Level::default() };
        assert_eq!(level.said(), "cgroup /, no autogroup");
        let level = Level { autogroup: Some("/autogroup-5 nice -20".into()), first: true, ..level };
        assert_eq!(level.said(), "cgroup /, /autogroup-5 nice -20; weighs more than all others");
    }
}
