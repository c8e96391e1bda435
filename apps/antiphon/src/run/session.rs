//! A run of CMD: finds the program, preloads the library, watches CMD to its end, and makes a
//! report of the recording.

use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_record::door::Which;
use antiphon_record::{Recording, Scope};
use antiphon_report::failure::Failure;
use antiphon_report::{busy, cpu_time, process};

use super::child::{self, Child, Ended};
use super::coop::Coop;
use super::door::Door;
use super::facts::{KeptOut, Run};
use super::sampler::{Sampled, Sampler};
use super::signals::Signals;
use super::summary::Report;
use super::{ends, notes, room, size};
use crate::memory;
use crate::preload::{self, Under};
use crate::program::{self, Refusal};
use crate::sites::Sites;

/// The settings of a run.
pub struct Session<'a> {
    /// CMD and its arguments.
    pub command: &'a [OsString],
    /// The lock that CMD is run with: one of [`preload::choices`].
    pub lock: &'a str,
    /// The events that are recorded.
    pub scope: Scope,
    /// Whether programs that CMD executes have the library, too.
    pub children: bool,
    /// The file of policies by call site.
    pub sites: Option<&'a Path>,
    /// The way in which CMD's event loops share their CPU, if they do.
    pub coop: Option<&'a Coop>,
}

/// A run that has ended.
pub struct Done<'a, W> {
    /// How CMD ended.
    pub ended: Ended,
    /// The value that `watch` returned.
    pub watcher: W,
    /// The observations of the run.
    pub seen: Seen<'a>,
}

/// The facts about a run that has ended.
pub struct Seen<'a> {
    run: Run,
    tape: Option<Tape>,
    sites: Option<Sites>,
    coop: Option<&'a Coop>,
    pid: u32,
    end_ns: u64,
    sampled: Sampled,
}

impl Seen<'_> {
    /// Makes the report. Nothing writes to the recording any more, unless CMD has left processes
    /// running.
    ///
    /// # Errors
    ///
    /// If the recording can't be read. This does not affect how CMD ended.
    pub fn report(self) -> Result<Report, Failure> {
        // CMD could write to the memory of the recording: a report of it may be wrong, but it must
        // not cost CMD's exit code. The panic message is already on stderr.
        let panicked =
            |_| Err(io::Error::other("the recording is damaged: CMD may have written to it"));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.read()))
            .unwrap_or_else(panicked)
            .map_err(unread)
    }

    fn read(mut self) -> io::Result<Report> {
        self.run.unmatched = self.sites.as_ref().map(Sites::unmatched).transpose()?;
        let is_written = self.tape.as_ref().is_some_and(Tape::is_written);
        let snapshot = self.tape.as_ref().map(|tape| tape.recording.read()).transpose()?;
        let mut snapshot = snapshot.unwrap_or_default();
        let running = is_written.then(|| ends::running(&snapshot, self.pid));
        let closed = ends::close(&mut snapshot, &self.sampled, self.pid, self.end_ns);
        let mut report = Report::new(self.run, &snapshot, &closed, &self.sampled, running);
        report.coop = self.coop.map(Coop::report).transpose()?;
        Ok(report)
    }
}

impl<'a> Session<'a> {
    /// Runs CMD to its end. `watch` is called with the recording, if there is one, before CMD
    /// starts: in a scope of events there always is one.
    ///
    /// # Errors
    ///
    /// If CMD can't be started, or `watch` fails; that CMD itself fails is not an error.
    pub fn run<W>(
        &self,
        watch: impl FnOnce(Option<&Arc<Recording>>) -> Result<W, Failure>,
    ) -> Result<Done<'a, W>, Failure> {
        let program = program::find(&self.command[0]).map_err(refused)?;
        let inside = self.scope.is_full() || self.lock != preload::GLIBC;
        let kept_out = self.kept_out(&program, inside);
        if self.sites.is_some() && self.lock == preload::GLIBC {
            let message = "--sites chooses policies of our locks; leave --lock glibc out";
            return Err(Failure::wrapper(message));
        }
        let sites = self.sites.map(|path| Sites::read(path, &program));
        let sites = sites.transpose().map_err(Failure::wrapper)?;
        let (tape, untaped) = match Tape::new(self.scope, sites.as_ref()) {
            Ok(tape) => (Some(tape), None),
            Err(why) if self.scope == Scope::Events => return Err(no_tape(&why)),
            // A limit costs the recording, not the run.
            Err(why) => (None, Some(why.to_string())),
        };
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        if kept_out.as_ref().is_none_or(|kept_out| kept_out.only_cmd) {
            self.put_libraries(&mut command, inside, tape.as_ref(), sites.as_ref())?;
        }
        // Threads of ours are started from here on; they take no signals either.
        process::hold();
        let recording = tape.as_ref().map(|tape| &tape.recording);
        let watcher = watch(recording)?;
        let (begun, used) = (Instant::now(), cpu_time::of_children());
        let busy_s = busy::of_allowed_cpus_s();
        let child = match self.coop {
            Some(coop) => coop.start(&mut command, &program),
            None => child::start(&mut command, &program),
        };
        let child =
            child.map_err(|error| refused(Refusal::of(&self.command[0], &program, &error)))?;
        // From here on CMD runs: whatever fails in this process, it ends as CMD does.
        let pid = child.pid();
        let sampler = sample(pid, recording.cloned());
        let ended = wait(child, tape.as_ref())
            .map_err(|error| Failure::wrapper(format!("waiting: {error}")))?;
        let (wall, end_ns) = (begun.elapsed(), Linux::now(Clock::Monotonic));
        let busy_s = busy_s.and_then(|before_s| Some(busy::of_allowed_cpus_s()? - before_s));
        let used = cpu_time::of_children() - used;
        let cpu_s = used.all_s();
        let (sampled, unsampled) = match sampler.and_then(Sampler::stop) {
            Ok(sampled) => (sampled, None),
            Err(error) => (Sampled::default(), Some(error.to_string())),
        };
        let words = self.command.iter().map(|word| word.to_string_lossy().into());
        let run = Run {
            command: words.collect(),
            lock: self.lock.to_owned(),
            profile: self.scope.is_full(),
            wall,
            cpu_s,
            system_s: used.system_s,
            others_s: busy_s.map(|busy_s| (busy_s - cpu_s).max(0.0)),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            ended: ended.to_string(),
            kept_out,
            children: self.children,
            unmatched: None,
            unsampled,
            untaped,
        };
        let seen = Seen { run, tape, sites, coop: self.coop, pid, end_ns, sampled };
        Ok(Done { ended, watcher, seen })
    }

    /// The obstacle that keeps the library out of CMD, if there is one; also prints it before CMD
    /// starts.
    fn kept_out(&self, program: &Path, inside: bool) -> Option<KeptOut> {
        let obstacle = program::obstacle(program).filter(|_| inside || self.coop.is_some())?;
        let kept_out = KeptOut::new(obstacle, !self.children);
        let what = notes::done(self.lock, inside, self.coop.is_some());
        // A failed write means that the user has closed stderr.
        let _ = writeln!(io::stderr(), "antiphon: {}", kept_out.beforehand(&what));
        Some(kept_out)
    }

    /// Preloads the required libraries in `command`; the one for locks if `inside`.
    fn put_libraries(
        &self,
        command: &mut Command,
        inside: bool,
        tape: Option<&Tape>,
        sites: Option<&Sites>,
    ) -> Result<(), Failure> {
        if !inside && self.coop.is_none() {
            return Ok(());
        }
        let library = preload::unpack().map_err(Failure::wrapper)?;
        let for_loops = preload::for_loops(&library);
        let beside = self.coop.map(|coop| {
            coop.put(command);
            &*for_loops
        });
        if inside {
            let (lock, children) = (self.lock, self.children);
            let recording = tape.map(|tape| &*tape.path);
            Under { library: &library, lock, recording, sites, children, beside }.put(command);
            if let Some(door) = tape.and_then(|tape| tape.door.as_ref()) {
                door.tell(command);
            }
        } else {
            preload::put(beside.as_slice(), command);
        }
        Ok(())
    }
}

/// Waits for CMD's end, and meanwhile serves the door.
fn wait(child: Child, tape: Option<&Tape>) -> io::Result<Ended> {
    let door = tape.and_then(|tape| tape.door.as_ref());
    let serve = || door.into_iter().for_each(Door::serve);
    let signals = door.map(|door| Signals::serving(door.as_fd(), &serve));
    // Without a free descriptor the door stays closed.
    let signals = signals.and_then(Result::ok).unwrap_or_else(Signals::alone);
    child.wait(&signals)
}

/// Starts to sample CMD's threads, if there is room for a thread of ours.
fn sample(pid: u32, recording: Option<Arc<Recording>>) -> io::Result<Sampler> {
    match room::scarce() {
        Some(limit) => Err(io::Error::other(format!("{limit} has no room for it"))),
        None => Sampler::start(pid, recording),
    }
}

/// The failure to read a recording.
fn unread(error: io::Error) -> Failure {
    Failure::wrapper(format!("reading the recording: {error}"))
}

/// The failure to create a recording.
fn no_tape(error: &io::Error) -> Failure {
    Failure::wrapper(format!("no recording: {error}; raise the limit"))
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::NotFound(why) => Failure::not_found(why),
        Refusal::CannotRun(why) => Failure::cannot_run(why),
        Refusal::NoRoom(why) => Failure::wrapper(why),
    }
}

/// The name with which a process's mappings show a recording.
pub const TAPE: &CStr = c"antiphon-recording";

/// A recording in memory without a name in any file system: nothing of it remains when this process
/// ends, however it ends.
struct Tape {
    recording: Arc<Recording>,
    /// The file of the recording, to seal it.
    file: File,
    /// The path by which CMD and its children open it, while this process lives.
    path: String,
    /// The door for programs that can't open the path; `None` if it could not be opened.
    door: Option<Door>,
}

impl Tape {
    fn new(scope: Scope, sites: Option<&Sites>) -> io::Result<Self> {
        let file = memory::file(TAPE, libc::MFD_ALLOW_SEALING).map_err(named)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let files = handed_out(&file, sites);
        let ours = file.try_clone().map_err(named)?;
        let recording = size::unlimited(|| Recording::begin(file, scope)).map_err(named)?;
        let door = files.and_then(Door::open).ok();
        Ok(Self { recording: Arc::new(recording), file: ours, path, door })
    }

    /// Returns whether a process still has the recording mapped for writing. If no process has,
    /// none will: the recording is then sealed.
    fn is_written(&self) -> bool {
        // SAFETY: takes numbers; the kernel refuses while a writable mapping exists.
        let sealed =
            unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
        sealed != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EBUSY)
    }
}

/// The files that the door hands out.
fn handed_out(recording: &File, sites: Option<&Sites>) -> io::Result<Vec<(Which, File)>> {
    let mut files = vec![(Which::Recording, recording.try_clone()?)];
    if let Some(sites) = sites {
        files.push((Which::Sites, sites.file()?));
    }
    Ok(files)
}

/// Why there is no recording, with the limit that most likely is the cause.
fn named(error: io::Error) -> io::Error {
    let limit = match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => "the limit on open files (ulimit -n)",
        Some(libc::EFBIG) => "the limit on the size of files (ulimit -f)",
        Some(libc::ENOMEM | libc::ENOSPC) => "the limit on memory",
        _ => return error,
    };
    io::Error::other(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_record::Mapping;

    #[test]
    fn a_tape_can_be_opened_by_its_path_and_read() {
        let tape = Tape::new(Scope::Full, None).expect("a memfd");
        let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
        let opened = Recording::open(Path::new(&tape.path)).and_then(|recording| recording.read());
        assert_eq!(opened.map(|snapshot| snapshot.scope).ok(), Some(Some(Scope::Full)));
        assert!(mapping.open(tape.file.as_raw_fd()).is_ok() && tape.is_written());
        let unused = Tape::new(Scope::Full, None).expect("a memfd");
        assert!(!unused.is_written());
    }
}
