//! The preload libraries, for locks and for loops: embedded in the command, and unpacked on demand.
//!
//! They go to `$XDG_CACHE_HOME/antiphon` or `~/.cache/antiphon`. Root's go to
//! `/var/cache/antiphon`, where programs that root runs as another user can read them. If that
//! folder can't be written, is mounted `noexec`, or can't be named in `LD_PRELOAD` (whose entries
//! end at spaces and colons), they go to a private folder of the user under the temporary
//! directory, `/var/tmp`, `/dev/shm` or `$XDG_RUNTIME_DIR`. There, a folder that is named after the
//! contents' hash has
//!
//! | file | for |
//! |---|---|
//! | `lib/x86_64-linux-gnu/antiphon-preload.so`, or this machine's `$LIB` | programs like ours |
//! | `antiphon-preload-coop.so` beside it | the same, with `run --coop` |
//! | the same under other names of `$LIB` | 32-bit programs: an empty library ([`stub`]) |
//!
//! and `LD_PRELOAD` names them through `$LIB`, which each loader replaces by its own name. So a
//! child that is a 32-bit program finds libraries that it can load, instead of ones that it
//! complains of. A child linked to musl, which knows no `$LIB`, finds none and starts without; it
//! would not survive ours. A file appears under its name only when it is complete, and is compared
//! before it is used. Files that other versions have left there are removed when no process needs
//! them ([`old`]).

mod old;
mod stub;

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use antiphon_record::inherit;
use antiphon_report::folders;

use crate::sites::Sites;

/// Names and contents of the libraries.
static LIBRARIES: [(&str, &[u8]); 2] = [
    (NAME, include_bytes!(concat!(env!("OUT_DIR"), "/antiphon-preload.so"))),
    (COOP_NAME, include_bytes!(concat!(env!("OUT_DIR"), "/antiphon-preload-coop.so"))),
];
/// A hash of the contents of the libraries, which distinguishes versions. The folder is safe
/// because only its owner may write it.
const VERSION: &str = env!("ANTIPHON_PRELOAD_VERSION");
const NAME: &str = "antiphon-preload.so";
const COOP_NAME: &str = "antiphon-preload-coop.so";
/// The beginning of the names of versions' folders.
const PREFIX: &str = "preload-";

/// The variable that names libraries for the loader to preload.
const LD_PRELOAD: &str = "LD_PRELOAD";
/// The values of `$LIB` for the loaders of 32-bit programs on a machine like ours.
const NAMES_OF_32_BITS: &[&str] =
    if cfg!(target_arch = "x86_64") { &["lib/i386-linux-gnu", "lib32", "lib"] } else { &[] };

/// The locks of the library.
pub const LOCKS: [&str; 2] = ["shfl-mutex", LIGHT];
/// The mutex that unlocks without a locked instruction, where the process can do that.
pub const LIGHT: &str = "shfl-mutex+light";
/// No lock of the library: the program keeps glibc's.
pub const GLIBC: &str = "glibc";

/// The locks that a program can be run with.
pub fn choices() -> Vec<&'static str> {
    LOCKS.into_iter().chain([GLIBC]).collect()
}

/// How the library is preloaded into a program.
pub struct Under<'a> {
    /// The path that [`unpack`] returned.
    pub library: &'a Path,
    /// The lock to run it with: one of [`choices`].
    pub lock: &'a str,
    /// The path of the recording that the library writes to, if it records.
    pub recording: Option<&'a str>,
    /// Policies by call site.
    pub sites: Option<&'a Sites>,
    /// Whether programs that the program executes have the library, too.
    pub children: bool,
    /// A further library to preload.
    pub beside: Option<&'a Path>,
}

impl Under<'_> {
    /// Preloads the library in `command`, before libraries that are preloaded already.
    pub fn put(&self, command: &mut Command) {
        let libraries: Vec<_> = [self.library].into_iter().chain(self.beside).collect();
        put(&libraries, command);
        let mut set = vec![(inherit::LOCK, OsString::from(self.lock))];
        set.extend(self.recording.map(|path| (antiphon_record::VARIABLE, path.into())));
        let sites = self.sites.map(|sites| (antiphon_record::sites::VARIABLE, sites.path().into()));
        set.extend(sites);
        if !self.children {
            set.push((inherit::CHILDREN, "0".into()));
            // From these the library restores the variables when it is loaded.
            let before = inherit::SET.iter().filter_map(|name| {
                Some((format!("{}{name}", inherit::BEFORE), std::env::var_os(name)?))
            });
            command.envs(before);
        }
        command.envs(set);
    }
}

/// Preloads libraries in `command`, before those that are preloaded already.
pub fn put(libraries: &[&Path], command: &mut Command) {
    let before = std::env::var_os(LD_PRELOAD);
    command.env(LD_PRELOAD, variable(libraries, before.as_deref()));
}

fn variable(libraries: &[&Path], before: Option<&OsStr>) -> OsString {
    let libraries = libraries.iter().map(|library| library.as_os_str());
    let all: Vec<_> = libraries.chain(before.filter(|before| !before.is_empty())).collect();
    all.join(OsStr::new(":"))
}

/// The path of the library for loops, beside `library`, which [`unpack`] returned.
pub fn for_loops(library: &Path) -> PathBuf {
    library.with_file_name(COOP_NAME)
}

/// Unpacks the libraries, unless that has been done; returns the path of the one for locks, for
/// [`Under`].
///
/// # Errors
///
/// One line, if no folder is suitable.
pub fn unpack() -> Result<PathBuf, String> {
    let mut refusals = Vec::new();
    for folder in folders::all() {
        match unpack_in(&folder) {
            Ok(name) => return Ok(name),
            Err(error) => refusals.push(format!("{}: {error}", folder.display())),
        }
    }
    let refusals = refusals.join("; ");
    Err(format!("no place to unpack the preload libraries; set XDG_CACHE_HOME ({refusals})"))
}

fn unpack_in(folder: &Path) -> io::Result<PathBuf> {
    folders::make_own(folder)?;
    let version = format!("{PREFIX}{VERSION}");
    // The lock is taken before our files are there: until then no process may remove the folder.
    old::sweep(folder, &version);
    let folder = folder.join(version);
    let Some(ours) = name_of_64_bits() else {
        // This loader's `$LIB` is not known: a plain name is used, and loaders of other programs
        // complain.
        place_all(&folder)?;
        can_be_mapped(&folder.join(NAME))?;
        return Ok(folder.join(NAME));
    };
    place_all(&folder.join(&ours))?;
    can_be_mapped(&folder.join(&ours).join(NAME))?;
    for theirs in NAMES_OF_32_BITS.iter().filter(|theirs| Path::new(theirs) != ours) {
        for (name, _) in LIBRARIES {
            place(&folder.join(theirs), name, &stub::library())?;
        }
    }
    Ok(folder.join("$LIB").join(NAME))
}

/// Whether code in that file can be run: it can't in a file system mounted `noexec`.
fn can_be_mapped(path: &Path) -> io::Result<()> {
    let file = fs::File::open(path)?;
    let (at, access, fd) =
        (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd());
    // SAFETY: the kernel chooses an unused address for the new mapping.
    let mapped = unsafe { libc::mmap(at, 1, access, libc::MAP_PRIVATE, fd, 0) };
    if mapped == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        let noexec = error.raw_os_error() == Some(libc::EPERM);
        return Err(if noexec { io::Error::other("mounted noexec") } else { error });
    }
    // SAFETY: mapped above.
    unsafe { libc::munmap(mapped, 1) };
    Ok(())
}

/// The value of `$LIB` for the loader of this process: the end of the path where it found libc.
fn name_of_64_bits() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| lib_of(&line[line.find('/')?..]))
}

/// The end of a libc's folder: `lib/x86_64-linux-gnu` for `/usr/lib/x86_64-linux-gnu/libc.so.6`.
fn lib_of(path: &str) -> Option<PathBuf> {
    let folder = path.strip_suffix("/libc.so.6")?;
    let begin = folder.match_indices("/lib").map(|(at, _)| at).next()?;
    Some(PathBuf::from(&folder[begin + 1..]))
}

fn place_all(folder: &Path) -> io::Result<()> {
    LIBRARIES.iter().try_for_each(|(name, contents)| place(folder, name, contents))
}

/// Writes `contents` to `folder` under that name, unless they are there already.
fn place(folder: &Path, name: &str, contents: &[u8]) -> io::Result<()> {
    let path = folder.join(name);
    if fs::read(&path).is_ok_and(|there| there == contents) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let unfinished = folder.join(format!(".{}.unfinished", std::process::id()));
    let written = fs::write(&unfinished, contents)
        .and_then(|()| fs::set_permissions(&unfinished, Permissions::from_mode(0o755)))
        .and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_stands_first() {
        let variable =
            |before: Option<&str>| variable(&[Path::new("/a.so")], before.map(OsStr::new));
        assert_eq!(variable(None), "/a.so");
        assert_eq!(variable(Some("")), "/a.so");
        assert_eq!(variable(Some("/b.so /c.so")), "/a.so:/b.so /c.so");
    }

    #[test]
    fn each_distribution_has_its_lib() {
        let of = |path: &str| lib_of(path).map(|name| name.display().to_string());
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(of("/usr/lib/x86_64-linux-gnu/libc.so.6"), is("lib/x86_64-linux-gnu"));
        assert_eq!(of("/lib64/libc.so.6"), is("lib64"));
        assert_eq!(of("/nix/store/abc-glibc/lib/libc.so.6"), is("lib"));
        assert_eq!(of("/usr/lib/libm.so.6"), None);
    }

    #[test]
    fn an_unpacked_library_is_whole_and_a_damaged_one_is_replaced() {
        let folder = std::env::temp_dir().join(format!("antiphon-test-{}", std::process::id()));
        let whole = |name: PathBuf| {
            let lib = name_of_64_bits().unwrap_or_default();
            let path = name.display().to_string().replace("$LIB", &lib.display().to_string());
            assert_eq!(fs::read(&path).ok().as_deref(), Some(LIBRARIES[0].1), "{path}");
            let loops = for_loops(Path::new(&path));
            assert_eq!(fs::read(loops).ok().as_deref(), Some(LIBRARIES[1].1), "{path}");
            path
        };
        let first = unpack_in(&folder).map(whole).unwrap_or_default();
        assert!(fs::write(&first, b"damaged").is_ok());
        assert_eq!(unpack_in(&folder).map(whole).ok(), Some(first));
        assert!(fs::set_permissions(&folder, Permissions::from_mode(0o777)).is_ok());
        assert!(unpack_in(&folder).is_err());
        assert!(fs::remove_dir_all(&folder).is_ok());
    }
}
