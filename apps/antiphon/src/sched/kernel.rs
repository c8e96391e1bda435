//! What this machine lacks for the scheduler, by name, with the remedy.

use std::fs;
use std::path::Path;

use antiphon_btf::Kernel;
use antiphon_report::failure::Failure;

/// The kernel's type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Functions of the kernel that the scheduler calls, and that older kernels lack.
const FUNCTIONS: [&str; 2] = ["scx_bpf_dsq_peek", "__scx_bpf_dsq_insert_vtime"];
/// The privileges that load a scheduler, by number: as a case of `cargo xtask vm` has found.
const PRIVILEGES: [(u32, &str); 2] = [(38, "CAP_PERFMON"), (39, "CAP_BPF")];

/// The facts about this machine that decide whether it can have the scheduler.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The kernel's release.
    pub release: String,
    /// Whether the kernel has sched_ext.
    pub has_sched_ext: bool,
    /// What the kernel's configuration says of sched_ext, if it can be read.
    pub configured: Option<bool>,
    /// The kernel's type information, if it has any.
    pub btf: Option<Btf>,
    /// The privileges that this process lacks.
    pub lacks: Vec<&'static str>,
}

/// What the kernel's type information says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Btf {
    /// It can't be read.
    Malformed(String),
    /// It can.
    Readable {
        /// Functions that are described wrongly.
        broken: Vec<String>,
        /// Functions that the scheduler needs, and that the kernel lacks.
        absent: Vec<&'static str>,
    },
}

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether it is a privilege of this process, which only starting needs.
    pub is_privilege: bool,
}

impl Facts {
    /// Reads the facts of this machine.
    pub fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let release = text("/proc/sys/kernel/osrelease").trim().to_owned();
        let configuration = text(&format!("/boot/config-{release}"));
        Self {
            has_sched_ext: Path::new("/sys/kernel/sched_ext").exists(),
            configured: configured(&configuration),
            btf: fs::read(BTF).ok().map(|bytes| Btf::read(&bytes)),
            lacks: lacks(&text("/proc/self/status")),
            release,
        }
    }

    /// Returns whether the kernel's type information is there and right.
    pub fn btf_ok(&self) -> bool {
        matches!(&self.btf, Some(Btf::Readable { broken, .. }) if broken.is_empty())
    }

    /// Returns what is missing.
    pub fn missing(&self) -> Vec<Missing> {
        let mut all = Vec::new();
        let mut lack = |what: String, remedy: &str| {
            all.push(Missing { what, remedy: remedy.to_owned(), is_privilege: false });
        };
        if !self.has_sched_ext {
            let release = &self.release;
            match self.configured {
                _ if version(release) < (6, 12) => lack(
                    format!("Linux {release} has no sched_ext, which came with 6.12"),
                    "boot Linux 7.0 or later",
                ),
                Some(false) => lack(
                    format!("Linux {release} is built without CONFIG_SCHED_CLASS_EXT"),
                    "boot a kernel with it, such as Debian's from trixie-backports",
                ),
                _ => lack(
                    format!("Linux {release} has no /sys/kernel/sched_ext"),
                    "boot a kernel with CONFIG_SCHED_CLASS_EXT, and mount /sys",
                ),
            }
        }
        match &self.btf {
            None => lack(
                format!("the kernel has no type information ({BTF})"),
                "boot a kernel with CONFIG_DEBUG_INFO_BTF",
            ),
            Some(Btf::Malformed(why)) => {
                lack(format!("{BTF} can't be read: {why}"), "boot another kernel");
            }
            Some(Btf::Readable { broken, .. }) if !broken.is_empty() => lack(
                format!(
                    "the kernel's type information describes {} functions wrongly: {}",
                    broken.len(),
                    broken.join(", ")
                ),
                "it was built with pahole before 1.31; boot a kernel that was built with a later \
                 one, such as Debian's 7.0.13 from trixie-backports or 7.2.13 from sid",
            ),
            Some(Btf::Readable { absent, .. }) if self.has_sched_ext && !absent.is_empty() => lack(
                format!("the kernel's sched_ext has no {}", absent.join(" and no ")),
                "boot Linux 7.0 or later",
            ),
            Some(Btf::Readable { .. }) => {}
        }
        if !self.lacks.is_empty() {
            all.push(Missing {
                what: format!("this process lacks {}", self.lacks.join(", ")),
                remedy: "run it as root".to_owned(),
                is_privilege: true,
            });
        }
        all
    }
}

impl Btf {
    fn read(bytes: &[u8]) -> Self {
        match Kernel::read(bytes) {
            Ok(kernel) => Self::Readable {
                broken: kernel.broken().into_iter().map(str::to_owned).collect(),
                absent: FUNCTIONS.into_iter().filter(|name| !kernel.has(name)).collect(),
            },
            Err(error) => Self::Malformed(error.to_string()),
        }
    }
}

/// The failure of a machine that lacks something: all of it, in one line.
pub fn failure(missing: &[&Missing]) -> Failure {
    let all = missing.iter().map(|one| format!("{} ({})", one.what, one.remedy));
    Failure::missing(all.collect::<Vec<_>>().join("; "))
}

/// What a kernel's configuration says of sched_ext; `None` if it says nothing.
fn configured(text: &str) -> Option<bool> {
    text.lines().find_map(|line| match line.trim() {
        "CONFIG_SCHED_CLASS_EXT=y" => Some(true),
        "# CONFIG_SCHED_CLASS_EXT is not set" => Some(false),
        _ => None,
    })
}

/// The first two numbers of a release.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
    let mut next = || numbers.next().flatten().unwrap_or(0);
    (next(), next())
}

/// The privileges that a process lacks, by its `/proc/PID/status`.
fn lacks(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let has = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    PRIVILEGES.iter().filter(|(bit, _)| has >> bit & 1 == 0).map(|(_, name)| *name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Facts {
        Facts {
            release: "7.0.13+deb13-cloud-amd64".to_owned(),
            has_sched_ext: true,
            btf: Some(Btf::Readable { broken: Vec::new(), absent: Vec::new() }),
            ..Facts::default()
        }
    }

    fn only(facts: &Facts) -> String {
        let [one] = &facts.missing()[..] else { panic!("{:?}", facts.missing()) };
        format!("{}; {}", one.what, one.remedy)
    }

    #[test]
    fn a_machine_with_everything_lacks_nothing() {
        assert_eq!(whole().missing(), []);
        assert!(whole().btf_ok());
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let old = Facts { release: "6.1.0-41".into(), has_sched_ext: false, ..whole() };
        assert!(only(&old).contains("Linux 6.1.0-41 has no sched_ext"), "{}", only(&old));
        let configured = Some(false);
        let off = Facts { release: "6.18.5".into(), has_sched_ext: false, configured, ..whole() };
        assert!(only(&off).contains("without CONFIG_SCHED_CLASS_EXT; boot"), "{}", only(&off));
        let broken = vec!["scx_bpf_create_dsq".to_owned(), "scx_bpf_kick_cpu".to_owned()];
        let wrong = Btf::Readable { broken, absent: Vec::new() };
        let wrong = Facts { btf: Some(wrong), ..whole() };
        assert!(!wrong.btf_ok());
        let told = only(&wrong);
        assert!(told.contains("2 functions wrongly: scx_bpf_create_dsq, scx_bpf"), "{told}");
        assert!(told.contains("pahole before 1.31"), "{told}");
        let absent = Btf::Readable { broken: Vec::new(), absent: vec!["scx_bpf_dsq_peek"] };
        let absent = Facts { btf: Some(absent), ..whole() };
        assert!(only(&absent).contains("no scx_bpf_dsq_peek; boot Linux 7.0"));
        let none = Facts { btf: None, ..whole() };
        assert!(only(&none).contains("CONFIG_DEBUG_INFO_BTF"));
        let user = Facts { lacks: vec!["CAP_BPF"], ..whole() };
        assert!(only(&user).contains("lacks CAP_BPF; run it as root"));
        assert!(user.missing()[0].is_privilege);
    }

    #[test]
    fn texts_of_the_system_are_understood() {
        assert_eq!(configured("CONFIG_SCHED_CLASS_EXT=y\n"), Some(true));
        assert_eq!(configured("# CONFIG_SCHED_CLASS_EXT is not set\n"), Some(false));
        assert_eq!(configured(""), None);
        assert_eq!((version("6.12.117-1"), version("none")), ((6, 12), (0, 0)));
        assert_eq!(lacks("Name:\tx\nCapEff:\t000001ffffffffff\n"), Vec::<&str>::new());
        assert_eq!(lacks("CapEff:\t0000008000000000\n"), ["CAP_PERFMON"]);
    }
}
