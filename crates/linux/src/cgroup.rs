//! The CPU quota of the control group that this process is in, read from `/proc` and `/sys`.
//!
//! | version | which group | its quota, in µs of CPU for each period |
//! |---|---|---|
//! | 2 | the line `0::PATH` of `/proc/self/cgroup` | `cpu.max`: `QUOTA PERIOD`, `max PERIOD` |
//! | 1 | the line `N:…cpu…:PATH` | `cpu.cfs_quota_us` (−1: none), `cpu.cfs_period_us` |
//!
//! The quotas of all ancestor groups apply too. In a container, `PATH` may be a path of the host
//! that the container does not see; then only the root of its own view has a file. Names longer
//! than the buffers are cut off; at worst, a quota is overlooked.
//!
//! Reading needs 1.5 KiB of stack and no other memory, and happens once or twice in a process's
//! life.

use core::ffi::CStr;

use crate::sys::read_file;

/// The version of the control-group interface, which determines the file of the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The number of CPUs whose time the tightest quota allows, rounded up. `None` if there is no
/// quota.
pub(crate) fn quota() -> Option<u32> {
    let mut buffer = [0; 768];
    let groups = read_file(c"/proc/self/cgroup", &mut buffer)?;
    let quotas = groups.split(|&byte| byte == b'\n').filter_map(|line| {
        let (version, group) = group(line)?;
        tightest(version, group)
    });
    quotas.min()
}

/// The version and the group of one line, if the line concerns CPUs.
fn group(line: &[u8]) -> Option<(Version, &[u8])> {
    let mut fields = line.splitn(3, |&byte| byte == b':');
    let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    if number == b"0" && controllers.is_empty() {
        return Some((Version::Two, group));
    }
    let mut controllers = controllers.split(|&byte| byte == b',');
    controllers.any(|name| name == b"cpu").then_some((Version::One, group))
}

/// The tightest quota of `group` and its ancestors.
fn tightest(version: Version, mut group: &[u8]) -> Option<u32> {
    let mut found = None;
    loop {
        let own = match version {
            Version::One => own_quota_of_one(group),
            Version::Two => own_quota_of_two(group),
        };
        found = [found, own].into_iter().flatten().min();
        let Some(parent) = group.iter().rposition(|&byte| byte == b'/') else { return found };
        group = &group[..parent];
    }
}

fn own_quota_of_two(group: &[u8]) -> Option<u32> {
    let mut buffer = [0; 48];
    let path = Path::new(&[b"/sys/fs/cgroup", group, b"/cpu.max"])?;
    let mut words = read_file(path.as_c(), &mut buffer)?.split(|byte| byte.is_ascii_whitespace());
    cpus(number(words.next()?)?, number(words.next()?)?)
}

fn own_quota_of_one(group: &[u8]) -> Option<u32> {
    let value = |name| {
        let mut buffer = [0; 24];
        let path = Path::new(&[b"/sys/fs/cgroup/cpu", group, name])?;
        number(read_file(path.as_c(), &mut buffer)?.trim_ascii())
    };
    cpus(value(b"/cpu.cfs_quota_us")?, value(b"/cpu.cfs_period_us")?)
}

/// Returns `None` for text that is not a number, such as `max` and `-1`.
fn number(digits: &[u8]) -> Option<u64> {
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn cpus(quota: u64, period: u64) -> Option<u32> {
    if period == 0 {
        return None;
    }
    u32::try_from(quota.div_ceil(period).max(1)).ok()
}

/// A file name built on the stack.
struct Path {
    bytes: [u8; 512],
}

impl Path {
    /// Returns `None` if the name would be too long.
    fn new(parts: &[&[u8]]) -> Option<Self> {
        let mut bytes = [0; 512];
        let mut end = 0;
        for part in parts {
            bytes.get_mut(end..end + part.len())?.copy_from_slice(part);
            end += part.len();
        }
        // At least one zero must be left.
        (end < bytes.len()).then_some(Self { bytes })
    }

    fn as_c(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_group_of_either_version() {
        assert_eq!(group(b"0::/user.slice/a"), Some((Version::Two, &b"/user.slice/a"[..])));
        assert_eq!(group(b"4:cpu,cpuacct:/docker/x"), Some((Version::One, &b"/docker/x"[..])));
        assert_eq!(group(b"4:cpuset:/docker/x"), None);
        assert_eq!(group(b"1:name=systemd:/"), None);
        assert_eq!(group(b""), None);
        assert_eq!(group(b"0::/with:colons"), Some((Version::Two, &b"/with:colons"[..])));
    }

    #[test]
    fn a_quota_is_rounded_up_and_max_is_none() {
        assert_eq!(cpus(150_000, 100_000), Some(2));
        assert_eq!(cpus(10_000, 100_000), Some(1));
        assert_eq!(cpus(10_000, 0), None);
        assert_eq!(number(b"max"), None);
        assert_eq!(number(b"-1"), None);
        assert_eq!(number(b"100000"), Some(100_000));
    }

    #[test]
    fn a_path_is_joined_and_bounded() {
        assert_eq!(
            Path::new(&[b"/a", b"", b"/b"]).map(|p| p.as_c().to_owned()),
            Some(c"/a/b".into())
        );
        assert!(Path::new(&[&[b'x'; 511]]).is_some());
        assert!(Path::new(&[&[b'x'; 511], b"y"]).is_none());
    }

    #[test]
    fn walking_up_from_a_group_that_is_not_there_ends() {
        assert_eq!(tightest(Version::One, b"/no/such/group/anywhere"), tightest(Version::One, b""));
        assert_eq!(tightest(Version::Two, b"/no/such/group/anywhere"), tightest(Version::Two, b""));
    }
}
