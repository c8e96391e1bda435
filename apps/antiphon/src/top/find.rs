//! Finds the recording and the pools of a running program.
//!
//! `antiphon run` keeps its recording open, in memory that has a name and no place in a file
//! system. The recording is found among the descriptors of the process of `antiphon run`, or, for a
//! process of the program, through the program's environment. A program that shows its pools has a
//! socket whose name contains its process id.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use antiphon_record::Recording;
use antiphon_report::failure::Failure;
use antiphon_report::shell;

use super::pools::{Blind, Pools, Program};
use crate::run::TAPE;

/// A recording, and its program.
pub struct Source {
    /// The recording, open: it stays even if the program ends.
    pub recording: Recording,
    /// The process of `antiphon run`; `None` if the recording is a file.
    pub runner: Option<u32>,
    /// The command that runs, or the path of the file.
    pub name: String,
}

/// The subject of `top`: at least one of the two fields is present, unless the scheduler is looked
/// at.
pub struct Found {
    /// The recording.
    pub source: Option<Source>,
    /// The program that shows its pools, and the first look at them.
    pub program: Option<(Program, Pools)>,
}

/// Finds the subject that `what` names: a process id, a file, or the only program that runs.
///
/// # Errors
///
/// If there is no such program, or if `what` is not given and there are several.
pub fn find(what: Option<&OsStr>) -> Result<Found, Failure> {
    let Some(what) = what else { return only() };
    match what.to_str().and_then(|text| text.parse::<u32>().ok()) {
        Some(pid) => of_process(pid),
        None => of_file(Path::new(what)),
    }
}

fn only() -> Result<Found, Failure> {
    let runners = all();
    match &runners[..] {
        [] => Err(Failure::missing(
            "no program of yours runs under antiphon run, or shows its pools; start one: \
             antiphon run -- CMD, or ANTIPHON_LOOK=1 CMD",
        )),
        [one] => of_process(*one),
        several => {
            let each = several.iter().map(|&pid| format!("{pid} ({})", program_of(pid)));
            let all = each.collect::<Vec<_>>().join(", ");
            Err(Failure::arguments(format!(
                "several programs run under antiphon run or show their pools; say which: {all}"
            )))
        }
    }
}

fn of_process(pid: u32) -> Result<Found, Failure> {
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return Err(Failure::arguments(format!("there is no process {pid}")));
    }
    let found = match tape_of_runner(pid) {
        Ok(Some(path)) => Some((pid, path)),
        Ok(None) => tape_of_program(pid).or_else(|| tape_that_names(pid)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let whose =
                format!("process {pid} belongs to another user; as root: sudo antiphon top {pid}");
            return Err(Failure::missing(whose));
        }
        Err(error) => return Err(Failure::measured(format!("process {pid}: {error}"))),
    };
    let found = found.and_then(|(runner, path)| Some((runner, Recording::open(&path).ok()?)));
    let source = found.map(|(runner, recording)| Source {
        recording,
        runner: Some(runner),
        name: program_of(runner),
    });
    let program = pools_of(pid, source.as_ref())?;
    if source.is_none() && program.is_none() {
        return Err(Failure::arguments(format!(
            "process {pid} does not run under antiphon run, nor shows its pools; start it as: \
             antiphon run -- CMD, or ANTIPHON_LOOK=1 CMD"
        )));
    }
    Ok(Found { source, program })
}

/// The pools that the process shows, or else those of the first process of its recording that shows
/// any.
fn pools_of(pid: u32, source: Option<&Source>) -> Result<Option<(Program, Pools)>, Failure> {
    let recorded = source.and_then(|source| source.recording.read().ok());
    let recorded = recorded.map(|snapshot| snapshot.processes).unwrap_or_default();
    let others = recorded.iter().map(|process| process.pid).filter(|&other| other != pid);
    for pid in std::iter::once(pid).chain(others) {
        let mut program = Program::new(pid);
        match program.look() {
            Ok(pools) => return Ok(Some((program, pools))),
            Err(Blind::Shows(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(Failure::measured(format!(
                    "process {pid} shows its pools, but does not answer: check whether it is \
                    stopped"
                )));
            }
            Err(Blind::Shows(_)) => {}
            Err(Blind::Says(failure)) => return Err(failure),
        }
    }
    Ok(None)
}

fn of_file(path: &Path) -> Result<Found, Failure> {
    let wrong = |error: io::Error| {
        let ends_early = error.kind() == io::ErrorKind::UnexpectedEof;
        let why = if ends_early { "not a recording".to_owned() } else { error.to_string() };
        let what = "give a process id, or the file of a recording";
        Failure::arguments(format!("{}: {why}; {what}", path.display()))
    };
    let recording = Recording::open(path).map_err(wrong)?;
    let source = Source { recording, runner: None, name: path.display().to_string() };
    Ok(Found { source: Some(source), program: None })
}

/// All processes of `antiphon run`, and all processes that show their pools and do not run under
/// one of these.
fn all() -> Vec<u32> {
    let mut all = runners();
    let runs = |pid: u32| tape_of_program(pid).is_some_and(|(runner, _)| all.contains(&runner));
    let alone: Vec<_> = Program::all().into_iter().filter(|&pid| !runs(pid)).collect();
    all.extend(alone);
    all
}

/// All processes of `antiphon run` whose descriptors we may read.
fn runners() -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut runners: Vec<u32> =
        ids.filter(|&pid| matches!(tape_of_runner(pid), Ok(Some(_)))).collect();
    runners.sort_unstable();
    runners
}

/// The recording that a process has open for writing. Only `antiphon run` keeps it open so: a
/// program maps it and closes it, and `top` reads it.
fn tape_of_runner(pid: u32) -> io::Result<Option<PathBuf>> {
    let name = format!("/memfd:{} (deleted)", TAPE.to_string_lossy());
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // A descriptor may be closed meanwhile.
        let Ok(path) = entry.map(|entry| entry.path()) else { continue };
        if fs::read_link(&path).is_ok_and(|link| link.as_os_str() == &*name) && is_written(&path) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn is_written(descriptor: &Path) -> bool {
    let information = descriptor.to_string_lossy().replace("/fd/", "/fdinfo/");
    let text = fs::read_to_string(information).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE == libc::O_RDWR)
}

/// The recording that a process was started to write, and the process that started it.
fn tape_of_program(pid: u32) -> Option<(u32, PathBuf)> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variable = [antiphon_record::VARIABLE.as_bytes(), b"="].concat();
    let value = environment.split(|&byte| byte == 0).find_map(|it| it.strip_prefix(&*variable))?;
    let path = PathBuf::from(OsStr::from_bytes(value));
    let runner = path.strip_prefix("/proc").ok()?.iter().next()?.to_str()?.parse().ok()?;
    Some((runner, path))
}

/// The recording that lists the process: for a process that has written its title over its
/// environment.
fn tape_that_names(pid: u32) -> Option<(u32, PathBuf)> {
    runners().into_iter().find_map(|runner| {
        let path = tape_of_runner(runner).ok()??;
        let snapshot = Recording::open(&path).ok()?.read().ok()?;
        snapshot.processes.iter().any(|process| process.pid == pid).then_some((runner, path))
    })
}

/// The command that `antiphon run` runs in process `runner`, as far as its arguments tell.
fn program_of(runner: u32) -> String {
    let words = words_of(runner);
    let after = words.iter().position(|word| word == "--").map_or(0, |at| at + 1);
    shell::line(&words[after..])
}

/// The command line of a process.
pub fn command_of(pid: u32) -> String {
    shell::line(words_of(pid))
}

fn words_of(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // Each word ends in a zero.
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_refused() {
        for what in ["/proc/self/exe", "/no/such/file", "4294967295", "0"] {
            assert!(find(Some(OsStr::new(what))).is_err(), "{what}");
        }
    }
}
