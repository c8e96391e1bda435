//! Whether a preloaded library gets into a program at all.
//!
//! What can be told from the file is told before the run, in one line. A program that is reached
//! may still wait in ways that no library sees: that is the report's business.

use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::elf;

/// A script may name another script as its interpreter; the kernel follows so many.
const DEEPEST: usize = 4;

/// What keeps a preloaded library out of `program`, in one line. `None` if nothing that can be told
/// from its file.
pub fn obstacle(program: &Path) -> Option<String> {
    let disabled = std::env::var_os("ANTIPHON_DISABLE");
    if disabled.is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0")) {
        return Some("ANTIPHON_DISABLE is set: the library steps aside; unset it".to_owned());
    }
    let program = interpreter(program);
    let shown = program.display();
    if gains_privilege(&program) {
        return Some(format!(
            "{shown} gains privileges when it runs (setuid, setgid or file \
                             capabilities): the loader ignores LD_PRELOAD; run it as its owner"
        ));
    }
    let elf = elf::read(&program)?;
    if elf.bits != 64 || elf.machine != elf::OUR_MACHINE {
        return Some(format!(
            "{shown} is for another kind of CPU ({} bits, machine {}): our \
                             library does not fit; use a native build",
            elf.bits, elf.machine
        ));
    }
    match elf.interpreter {
        None => Some(format!(
            "{shown} is statically linked: nothing can be preloaded; link it \
                              dynamically, or use Antiphon's crates in it"
        )),
        Some(loader) if loader.contains("ld-musl") => Some(format!(
            "{shown} is linked to musl ({loader}): its locks are not glibc's; use a \
                          glibc build"
        )),
        Some(_) => None,
    }
}

/// What the kernel starts to run `program`: its loader, or the interpreter of a script.
pub fn loader(program: &Path) -> Option<PathBuf> {
    named_by_script(program).or_else(|| elf::read(program)?.interpreter.map(PathBuf::from))
}

/// Whether it begins as a program does.
pub fn is_elf(program: &Path) -> bool {
    let mut begin = [0; 4];
    File::open(program).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == *b"\x7fELF"
}

/// The file that the kernel runs in the end: of a script, its interpreter.
fn interpreter(program: &Path) -> PathBuf {
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

/// The same, and of `env` what that will run.
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

/// Whether the kernel starts it in secure mode for us.
fn gains_privilege(path: &Path) -> bool {
    let Ok(about) = path.metadata() else { return false };
    // SAFETY: both take nothing and can't fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let setuid = about.mode() & libc::S_ISUID != 0 && about.uid() != user;
    let setgid = about.mode() & libc::S_ISGID != 0 && about.gid() != group;
    setuid || setgid || (user != 0 && has_capabilities(path))
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
    fn a_file_of_headers_alone_is_static_or_foreign() {
        let folder = std::env::temp_dir().join(format!("antiphon-static-{}", std::process::id()));
        assert!(fs::create_dir_all(&folder).is_ok());
        let write = |class: u8, machine: u16| {
            let mut header = [0_u8; 64];
            header[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
            header[18..20].copy_from_slice(&machine.to_le_bytes());
            let path = folder.join(format!("program-{class}-{machine}"));
            assert!(fs::write(&path, header).is_ok());
            obstacle(&path).unwrap_or_default()
        };
        assert!(write(2, elf::OUR_MACHINE).contains("statically linked"));
        assert!(write(2, 40).contains("another kind of CPU"));
        assert!(write(1, 3).contains("32 bits"));
        assert!(fs::remove_dir_all(&folder).is_ok());
    }
}
