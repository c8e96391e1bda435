//! Checks whether a preloaded library gets into a program at all.
//!
//! If the file shows that a program can't be reached, one line says so before the run. A program
//! that is reached may still wait in ways that no library sees; the report covers those.

use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use antiphon_record::aside::{self, Tool};

use super::elf;

/// The number of scripts in a row that may name another script as their interpreter: the kernel
/// follows no more.
const DEEPEST: usize = 4;

/// An obstacle that keeps a preloaded library out of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Which program, why, and what to do: in one line.
    pub why: String,
    /// Whether suitable programs that it starts are reached all the same: it passes its environment
    /// on, and is not stopped by the library itself.
    pub hands_on: bool,
}

/// The obstacle that keeps a preloaded library out of `program` when this process's user starts it.
/// `None` if its file shows none.
pub fn obstacle(program: &Path) -> Option<Obstacle> {
    let disabled = std::env::var_os("ANTIPHON_DISABLE");
    if disabled.is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0")) {
        let why = "ANTIPHON_DISABLE is set: the library steps aside; unset it".to_owned();
        return Some(Obstacle { why, hands_on: false });
    }
    // SAFETY: both calls take no arguments and can't fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    obstacle_for(program, user, group)
}

/// The obstacle for a caller with that real user and group. A program in which the library stepped
/// aside is named as a recording names it ([`antiphon_record::aside`]).
pub fn obstacle_for(program: &Path, user: u32, group: u32) -> Option<Obstacle> {
    let name = program.to_str().and_then(aside::split).filter(|_| !program.exists());
    if let Some((program, tool)) = name {
        return Some(Obstacle { why: format!("{program} {}", beside(tool)), hands_on: true });
    }
    let file = interpreter(program);
    let shown = if file == program {
        file.display().to_string()
    } else {
        format!("{}, which runs {},", file.display(), program.display())
    };
    let (why, hands_on) = if gains_privilege(&file, user, group) {
        let why = "gains privileges when it runs (setuid, setgid or file capabilities): the \
                   loader ignores LD_PRELOAD; run it as its owner";
        (why.to_owned(), false)
    } else {
        of_file(&file)?
    };
    Some(Obstacle { why: format!("{shown} {why}"), hands_on })
}

/// The obstacle in a program's file, and whether the program passes the library on to its children.
fn of_file(file: &Path) -> Option<(String, bool)> {
    let elf = elf::read(file)?;
    let machine = elf.machine;
    if elf.bits != 64 || machine != elf::OUR_MACHINE {
        let (kind, hands_on) = match (elf.bits, machine) {
            // Such a program finds the empty library that is unpacked beside ours.
            (32, elf::I386) => ("for 32 bits".to_owned(), cfg!(target_arch = "x86_64")),
            (bits, _) => {
                (format!("for another kind of CPU ({bits} bits, machine {machine})"), false)
            }
        };
        return Some((
            format!("is {kind}: our library does not fit; use a native build"),
            hands_on,
        ));
    }
    let Some(loader) = elf.interpreter else {
        // The loader itself, called with a program to load.
        return (!is_glibcs(file)).then(|| {
            let why = "is statically linked: nothing can be preloaded; link it dynamically, or use \
                       Antiphon's crates in it";
            (why.to_owned(), true)
        });
    };
    if is_glibcs(Path::new(&loader)) {
        return of_sanitizers(&elf::names(file));
    }
    let whose = if loader.contains("ld-musl") { "musl" } else { "another C library" };
    let why =
        format!("is linked to {whose} ({loader}): its locks are not glibc's; use a glibc build");
    Some((why, true))
}

/// The obstacle of a program that contains these names: it is built for a tool that tolerates no
/// locks but glibc's, or no library before its own. Also whether the program passes the library on.
fn of_sanitizers(names: &[u8]) -> Option<(String, bool)> {
    if has(names, b"\0__tsan_init\0") {
        return Some((beside(Tool::ThreadSanitizer).to_owned(), true));
    }
    let runtime = || has(names, b"\0libasan.so") || has(names, b"\0libclang_rt.asan");
    // Our default options make the tool accept the library, unless the program has its own options.
    let own = has(names, b"\0__asan_default_options\0") && runtime();
    let asked = std::env::var_os("ASAN_OPTIONS").unwrap_or_default();
    let bears = asked.as_bytes().windows(BEARS.len()).any(|part| part == BEARS.as_bytes());
    (own && !bears).then(|| {
        let why = format!(
            "is built with -fsanitize=address and options of its own: its runtime refuses to come \
             second; set ASAN_OPTIONS={BEARS}"
        );
        (why, false)
    })
}

/// Whether `bytes` contains `part`. A big program has millions of bytes; the C library searches
/// them ten times as fast as a comparison at each byte.
fn has(bytes: &[u8], part: &[u8]) -> bool {
    // SAFETY: both slices are valid for the call, with the lengths passed.
    let found = unsafe {
        libc::memmem(bytes.as_ptr().cast(), bytes.len(), part.as_ptr().cast(), part.len())
    };
    !found.is_null()
}

/// The option that makes AddressSanitizer accept a library before it.
const BEARS: &str = "verify_asan_link_order=0";

/// Why a program keeps glibc's locks under a tool, and what to do about it.
fn beside(tool: Tool) -> &'static str {
    match tool {
        Tool::ThreadSanitizer => {
            "has ThreadSanitizer in it (-fsanitize=thread), which knows glibc's locks alone: the \
             library steps aside; use a build without it"
        }
        Tool::Helgrind => {
            "runs under valgrind's helgrind, which knows glibc's locks alone: the library steps \
             aside; run it without"
        }
        Tool::Drd => {
            "runs under valgrind's drd, which knows glibc's locks alone: the library steps aside; \
             run it without"
        }
    }
}

/// Whether a loader belongs to glibc.
fn is_glibcs(loader: &Path) -> bool {
    let name = loader.file_name().unwrap_or_default().as_bytes();
    [&b"ld-linux"[..], b"ld-lsb"].iter().any(|begin| name.starts_with(begin))
}

/// The program that the kernel starts to run `program`: its loader, or the interpreter of a script.
pub fn loader(program: &Path) -> Option<PathBuf> {
    named_by_script(program).or_else(|| elf::read(program)?.interpreter.map(PathBuf::from))
}

/// Returns whether the file begins as an ELF file does.
pub fn is_elf(program: &Path) -> bool {
    let mut begin = [0; 4];
    File::open(program).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == *b"\x7fELF"
}

/// The file that the kernel finally runs: for a script, its interpreter.
pub fn interpreter(program: &Path) -> PathBuf {
    let mut program = program.to_owned();
    for _ in 0..DEEPEST {
        match of_script(&program) {
            Some(next) => program = next,
            None => break,
        }
    }
    program
}

/// The words of a script's first line.
fn first_line(path: &Path) -> Option<Vec<Vec<u8>>> {
    let mut begin = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    Some(words.map(<[u8]>::to_vec).collect())
}

/// The interpreter that a script names.
fn named_by_script(path: &Path) -> Option<PathBuf> {
    let first = first_line(path)?.into_iter().next()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(first)))
}

/// The interpreter of a script; for `env`, the program that it will run.
fn of_script(path: &Path) -> Option<PathBuf> {
    let interpreter = named_by_script(path)?;
    if interpreter.file_name().is_some_and(|name| name == "env") {
        let is_name = |word: &Vec<u8>| !word.starts_with(b"-") && !word.contains(&b'=');
        if let Some(name) = first_line(path)?.into_iter().skip(1).find(is_name) {
            return super::find(std::ffi::OsStr::from_bytes(&name)).ok();
        }
    }
    Some(interpreter)
}

/// Whether the kernel starts the program in secure mode for that user and group.
fn gains_privilege(path: &Path, user: u32, group: u32) -> bool {
    let Ok(about) = path.metadata() else { return false };
    if ignores_privileges(path) {
        return false;
    }
    let setuid = about.mode() & libc::S_ISUID != 0 && about.uid() != user;
    let setgid = about.mode() & libc::S_ISGID != 0 && about.gid() != group;
    setuid || setgid || (user != 0 && has_capabilities(path))
}

/// Whether the file is in a file system mounted `nosuid`, whose programs gain no privileges.
fn ignores_privileges(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut about = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends in zero; `about` is our memory, and initialised if the call succeeds.
    unsafe {
        libc::statvfs(path.as_ptr(), about.as_mut_ptr()) == 0
            && about.assume_init().f_flag & libc::ST_NOSUID != 0
    }
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let name = c"security.capability";
    // SAFETY: both strings end in zero; no buffer is given, so none is written.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_dynamic_program_is_reached_and_so_is_a_script_of_it() {
        assert_eq!(obstacle(Path::new("/proc/self/exe")), None);
        let folder = std::env::temp_dir().join(format!("antiphon-reach-{}", std::process::id()));
        let script = folder.join("script");
        assert!(fs::create_dir_all(&folder).is_ok());
        for line in ["#!/bin/sh\n", "#! /usr/bin/env -S sh -e\n"] {
            assert!(fs::write(&script, line).is_ok());
            let name = interpreter(&script);
            assert!(name.ends_with("bin/sh"), "{}", name.display());
            assert_eq!(obstacle(&script), None);
        }
        assert!(fs::remove_dir_all(&folder).is_ok());
    }

    #[test]
    fn sanitizers_are_told_by_names_in_the_file() {
        let of = |names: &[u8]| of_sanitizers(names).unwrap_or_default();
        let (why, hands_on) = of(b"\0libtsan.so.2\0libc.so.6\0__tsan_init\0");
        assert!(why.contains("ThreadSanitizer") && hands_on, "{why}");
        let (why, hands_on) = of(b"\0libasan.so.8\0__asan_default_options\0");
        assert!(why.contains(BEARS) && !hands_on, "{why}");
        for names in [&b"\0libasan.so.8\0__asan_init\0"[..], b"\0libc.so.6\0__tsan_initial\0"] {
            assert_eq!(of_sanitizers(names), None);
        }
    }

    #[test]
    fn one_that_stepped_aside_is_told_by_its_tool() {
        let told = obstacle_for(Path::new("/no/such/program (helgrind)"), 0, 0);
        let why = told.map(|found| found.why).unwrap_or_default();
        assert!(why.starts_with("/no/such/program runs under valgrind's helgrind"), "{why}");
    }

    #[test]
    fn loaders_are_told_by_their_names() {
        for name in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"] {
            assert!(is_glibcs(Path::new(name)), "{name}");
        }
        for name in ["/lib/ld-musl-x86_64.so.1", "/system/bin/linker64", "/bin/sh"] {
            assert!(!is_glibcs(Path::new(name)), "{name}");
        }
        // The loader names no interpreter, but is not a static program.
        let loader = elf::read(Path::new("/proc/self/exe")).and_then(|elf| elf.interpreter);
        assert_eq!(loader.map(|loader| obstacle(Path::new(&loader))), Some(None));
    }

    #[test]
    fn privileges_are_gained_by_who_does_not_have_them() {
        let folder = std::env::temp_dir().join(format!("antiphon-setuid-{}", std::process::id()));
        assert!(fs::create_dir_all(&folder).is_ok());
        let program = folder.join("program");
        assert!(fs::copy("/proc/self/exe", &program).is_ok());
        let mode = |mode| fs::set_permissions(&program, fs::Permissions::from_mode(mode));
        let about = program.metadata().expect("a file");
        let of = |user, group| {
            obstacle_for(&program, user, group).map(|found| (found.why, found.hands_on))
        };
        let (user, group) = (about.uid(), about.gid());
        for (bits, user, group) in [(0o4755, user + 1, group), (0o2755, user, group + 1)] {
            assert!(mode(bits).is_ok());
            let (why, hands_on) = of(user, group).unwrap_or_default();
            assert!(why.contains("run it as its owner") && !hands_on, "{why}");
        }
        assert_eq!(of(user, group), None);
        assert!(fs::remove_dir_all(&folder).is_ok());
    }

    #[test]
    fn a_file_of_headers_alone_is_static_or_foreign() {
        let folder = std::env::temp_dir().join(format!("antiphon-static-{}", std::process::id()));
        assert!(fs::create_dir_all(&folder).is_ok());
        let write = |class: u8, machine: u16| {
            let mut header = [0_u8; 64];
            header[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
            header[18..20].copy_from_slice(&machine.to_le_bytes());
            let path = folder.join(format!("program-{class}-{machine}"));
            assert!(fs::write(&path, header).is_ok());
            obstacle(&path).map(|found| (found.why, found.hands_on)).unwrap_or_default()
        };
        let is = |(why, hands_on): (String, bool), words: &str, expected: bool| {
            assert!(why.contains(words) && hands_on == expected, "{why}, {hands_on}");
        };
        is(write(2, elf::OUR_MACHINE), "statically linked", true);
        // The loader of that machine finds no file at the path of our library.
        is(write(2, 40), "another kind of CPU (64 bits, machine 40)", false);
        is(write(1, 8), "another kind of CPU (32 bits, machine 8)", false);
        is(write(1, elf::I386), "is for 32 bits", cfg!(target_arch = "x86_64"));
        assert!(fs::remove_dir_all(&folder).is_ok());
    }
}
