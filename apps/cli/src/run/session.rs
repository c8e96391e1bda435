//! A run of CMD: its program is found, the library is put under it, it is watched to its end, and
//! what was recorded becomes a report.

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Platform as _};
use antiphon_record::{Recording, Scope};

use super::child::{self, Ended};
use super::coop::Coop;
use super::summary::{KeptOut, Report, Run};
use super::{ends, notes, sampler};
use crate::failure::Failure;
use crate::preload::{self, Under};
use crate::program::{self, Refusal};
use crate::sites::Sites;

/// What is wanted of a run.
pub struct Session<'a> {
    /// CMD and its arguments.
    pub command: &'a [OsString],
    /// What it is run with: one of [`preload::choices`].
    pub lock: &'a str,
    /// How much is recorded.
    pub scope: Scope,
    /// Whether what CMD executes has the library, too.
    pub children: bool,
    /// Policies by call site.
    pub sites: Option<&'a Path>,
    /// How its event loops are to share their CPU, if they are.
    pub coop: Option<&'a Coop>,
}

/// A run that is over.
pub struct Done<W> {
    /// What there is to say of it.
    pub report: Report,
    /// How CMD ended.
    pub ended: Ended,
    /// Who watched.
    pub watcher: W,
}

impl Session<'_> {
    /// Runs CMD to its end. `watch` is called with the recording before CMD starts.
    ///
    /// # Errors
    ///
    /// If CMD can't be started, or `watch` fails; CMD's own failure is none.
    pub fn run<W>(
        &self,
        watch: impl FnOnce(&Arc<Recording>) -> Result<W, Failure>,
    ) -> Result<Done<W>, Failure> {
        let program = program::find(&self.command[0]).map_err(refused)?;
        let inside = self.scope.is_full() || self.lock != preload::GLIBC;
        let kept_out = program::obstacle(&program).filter(|_| inside || self.coop.is_some());
        let kept_out = kept_out.map(|obstacle| KeptOut::new(obstacle, !self.children));
        if let Some(kept_out) = &kept_out {
            let what = notes::done(self.lock, inside, self.coop.is_some());
            // Whoever closed stderr does not want to know.
            let _ = writeln!(std::io::stderr(), "antiphon: {}", kept_out.beforehand(&what));
        }
        if self.sites.is_some() && self.lock == preload::GLIBC {
            let message = "--sites chooses policies of our locks; leave --lock glibc out";
            return Err(Failure::wrapper(message));
        }
        let sites = self.sites.map(|path| Sites::read(path, &program));
        let sites = sites.transpose().map_err(Failure::wrapper)?;
        let tape = Tape::new(self.scope)?;
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        if kept_out.as_ref().is_none_or(|kept_out| kept_out.only_cmd) {
            self.put_libraries(&mut command, inside.then_some(&*tape.path), sites.as_ref())?;
        }
        let watcher = watch(&tape.recording)?;
        let begun = Instant::now();
        let child = match self.coop {
            Some(coop) => coop.start(&mut command),
            None => child::start(&mut command),
        };
        let child =
            child.map_err(|error| refused(Refusal::of(&self.command[0], &program, &error)))?;
        let pid = child.pid();
        let sampler = sampler::Sampler::start(pid, Arc::clone(&tape.recording));
        let ended = child.wait().map_err(|error| Failure::wrapper(format!("waiting: {error}")))?;
        let (wall, end_ns) = (begun.elapsed(), Linux::now(Clock::Monotonic));
        let sampled = sampler.stop().map_err(unread)?;
        let mut snapshot = tape.recording.read().map_err(unread)?;
        ends::close(&mut snapshot, &sampled, pid, end_ns);
        let words = self.command.iter().map(|word| word.to_string_lossy().into());
        let run = Run {
            command: words.collect(),
            lock: self.lock.to_owned(),
            profile: self.scope.is_full(),
            wall,
            ended: ended.to_string(),
            kept_out,
            children: self.children,
            unmatched: sites.as_ref().map(Sites::unmatched).transpose().map_err(unread)?,
        };
        let mut report = Report::new(run, &snapshot, &sampled);
        report.coop = self.coop.map(Coop::report).transpose().map_err(unread)?;
        Ok(Done { report, ended, watcher })
    }

    /// Puts the libraries that are wanted under `command`; that for locks if it has a recording.
    fn put_libraries(
        &self,
        command: &mut Command,
        recording: Option<&str>,
        sites: Option<&Sites>,
    ) -> Result<(), Failure> {
        if recording.is_none() && self.coop.is_none() {
            return Ok(());
        }
        let library = preload::unpack().map_err(Failure::wrapper)?;
        let for_loops = preload::for_loops(&library);
        let beside = self.coop.map(|coop| {
            coop.put(command);
            &*for_loops
        });
        if recording.is_some() {
            let (lock, children) = (self.lock, self.children);
            Under { library: &library, lock, recording, sites, children, beside }.put(command);
        } else {
            preload::put(beside.as_slice(), command);
        }
        Ok(())
    }
}

/// A recording that can't be read.
fn unread(error: std::io::Error) -> Failure {
    Failure::wrapper(format!("reading the recording: {error}"))
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::NotFound(why) => Failure::not_found(why),
        Refusal::CannotRun(why) => Failure::cannot_run(why),
    }
}

/// The name under which the mappings of a process show a recording.
pub const TAPE: &CStr = c"antiphon-recording";

/// A recording in memory that has no name in any file system, so that nothing is left of it
/// whatever becomes of us.
struct Tape {
    recording: Arc<Recording>,
    /// By which CMD and its children open it, while this process is there.
    path: String,
}

impl Tape {
    fn new(scope: Scope) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::wrapper(format!("the recording: {error}"));
        // SAFETY: a string that ends in zero.
        let fd = unsafe { libc::memfd_create(TAPE.as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(fail(std::io::Error::last_os_error()));
        }
        // SAFETY: a new descriptor, known to nobody else.
        let file = unsafe { File::from_raw_fd(fd) };
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Self { recording: Arc::new(Recording::begin(file, scope).map_err(fail)?), path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_can_be_opened_by_its_path_and_read() {
        let tape = Tape::new(Scope::Full).unwrap_or_else(|_| panic!("no memfd"));
        let opened = Recording::open(Path::new(&tape.path)).and_then(|recording| recording.read());
        assert_eq!(opened.map(|snapshot| snapshot.scope).ok(), Some(Some(Scope::Full)));
    }
}
