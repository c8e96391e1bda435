//! What must be installed to build the scheduler and to run the machine.

use std::process::{Command, Stdio};

use crate::Failure;

/// Programs, and Debian's packages that have them.
const PROGRAMS: [(&str, &str); 6] = [
    ("clang-19", "clang-19"),
    ("pkg-config", "pkg-config"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("zstd", "zstd"),
    ("dpkg-deb", "dpkg"),
    ("apt-get", "apt"),
];

/// Libraries, and Debian's packages that have them.
const LIBRARIES: [(&str, &str); 2] = [("libelf", "libelf-dev"), ("zlib", "zlib1g-dev")];

/// What building a kernel needs besides.
const OF_A_KERNEL: [(&str, &str); 7] = [
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Checks that all are there.
///
/// # Errors
///
/// Names the packages that are missing.
pub fn check(builds_kernel: bool) -> Result<(), Failure> {
    let runs = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let of_a_kernel = OF_A_KERNEL.iter().filter(|_| builds_kernel);
    let programs = PROGRAMS.iter().chain(of_a_kernel);
    let programs = programs.filter(|(name, _)| !runs(name, &["--version"]));
    let libraries = LIBRARIES.iter().filter(|(name, _)| !runs("pkg-config", &["--exists", name]));
    let missing: Vec<_> = programs.chain(libraries).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    Err(format!("not installed: {missing}; `.ci/setup` installs most of them as root").into())
}
