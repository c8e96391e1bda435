//! The two lanes: one program at a time, or tests in the time that it leaves.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::built::Program;
use super::libtest;
use super::summary::Summary;
use crate::Failure;

/// Tests of the background that take longer than the others. They begin first: a long test that
/// begins last would keep one CPU busy while the others are idle. A name without a test has no
/// effect.
const LONGEST: [&str; 6] = [
    "promela::barrier",
    "models::model_rw::a_crowd_is_counted_by_socket",
    "promela::handover",
    "models::model_mutex::the_most_urgent_goes_first",
    "models::model_mutex::excludes",
    "models::model_events::a_try_is_honest",
];

/// Number of CPUs for tests.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs a program to its end, then prints its output and adds it to the summary.
///
/// # Errors
///
/// If the program can't be started. A program that fails is not an error.
pub fn run(title: &str, mut command: Command, summary: &Mutex<Summary>) -> Result<(), Failure> {
    println!("running: {title}");
    let begun = Instant::now();
    let (reader, child) = start(&mut command).map_err(|error| format!("{title}: {error}"))?;
    let (mut output, mut ended) = (String::new(), Vec::new());
    let mut lines = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let line = String::from_utf8_lossy(&line);
        if let Some((test, libtest::Verdict::Passed | libtest::Verdict::Failed)) =
            libtest::verdict(line.trim_end())
        {
            ended.push((test.to_owned(), begun.elapsed()));
        }
        output.push_str(&line);
    }
    let (status, cpu) = wait(libc::pid_t::try_from(child.id())?)?;
    let mut summary = locked(summary);
    summary.add_output(title, &output, status.success());
    summary.add_program(title, begun.elapsed(), cpu);
    for (test, took) in libtest::times(&ended, cpus()) {
        summary.add_time(title, &test, took);
    }
    print!("{output}");
    println!("took: {title}: {:.1?}, {cpu:.1?} of CPU time", begun.elapsed());
    if !status.success() {
        println!("failed: {title}: {status}");
    }
    Ok(())
}

/// Starts a command; its stdout and stderr can be read in the order in which they are written.
fn start(command: &mut Command) -> io::Result<(io::PipeReader, Child)> {
    let (reader, writer) = io::pipe()?;
    let child = command.stdout(writer.try_clone()?).stderr(writer).spawn();
    // The command would keep the pipe open for its next child.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((reader, child?))
}

/// Tests that run in the time that the foreground leaves, each in its own process, and programs
/// that run as a whole.
pub struct Background<'a> {
    left: Mutex<VecDeque<Case<'a>>>,
    /// The processes that are running.
    running: Mutex<BTreeSet<libc::pid_t>>,
    /// Whether the foreground has ended.
    hurries: AtomicBool,
}

/// One test of one program, or all of them.
struct Case<'a> {
    program: &'a Program,
    test: Option<String>,
}

impl Case<'_> {
    fn name(&self) -> String {
        format!("{}::{}", self.program.name, self.test.as_deref().unwrap_or_default())
    }

    /// The place of the case in the order: whole programs, then those in [`LONGEST`], then all
    /// others.
    fn rank(&self) -> usize {
        if self.test.is_none() {
            return 0;
        }
        let name = self.name();
        1 + LONGEST.iter().position(|long| *long == name).unwrap_or(LONGEST.len())
    }
}

impl<'a> Background<'a> {
    /// The tests of the `timeless` programs, the longest first, after the `builders` as a
    /// whole.
    ///
    /// # Errors
    ///
    /// If a program does not list its tests.
    pub fn of(timeless: &[&'a Program], builders: &[&'a Program]) -> Result<Self, Failure> {
        let mut cases = Vec::new();
        for &program in timeless {
            let output = program.command().args(["--list", "--format=terse"]).output()?;
            if !output.status.success() {
                return Err(format!("{} does not list its tests", program.title()).into());
            }
            let listed = String::from_utf8_lossy(&output.stdout);
            cases.extend(
                libtest::listed(&listed).map(|test| Case { program, test: Some(test.to_owned()) }),
            );
        }
        cases.extend(builders.iter().map(|&program| Case { program, test: None }));
        cases.sort_by_key(Case::rank);
        Ok(Self {
            left: Mutex::new(cases.into()),
            running: Mutex::default(),
            hurries: AtomicBool::new(false),
        })
    }

    /// Runs tests until none is left.
    ///
    /// # Errors
    ///
    /// If a test can't be started. A test that fails is not an error.
    pub fn work(&self, summary: &Mutex<Summary>) -> Result<(), Failure> {
        loop {
            let Some(case) = locked(&self.left).pop_front() else { return Ok(()) };
            let (output, status, took) = self.run(&case)?;
            let (title, mut summary) = (case.program.title(), locked(summary));
            summary.add_output(&title, &output, status.success());
            let shown = case.test.as_deref().unwrap_or("all tests");
            summary.add_time(&title, shown, took);
            if let Some(test) = case.test.as_ref().filter(|_| status.success()) {
                summary.add_model(test, took);
            }
            for line in output.lines().filter(|line| line.starts_with("skipped: ")) {
                println!("{line}");
            }
            let verdict = if status.success() { "ok" } else { "FAILED" };
            println!("background: {title}: {shown} ... {verdict} ({took:.1?})");
            if !status.success() {
                println!("{output}\nfailed: {title}: {shown}: {status}");
            }
        }
    }

    /// Tells that the foreground has ended: the remaining tests get the CPUs, or are dropped if
    /// `abandon`.
    pub fn hurry(&self, abandon: bool) {
        if abandon {
            locked(&self.left).clear();
        }
        // A worker that starts a test reads the flag under the same lock.
        let running = locked(&self.running);
        self.hurries.store(true, Relaxed);
        for &process in &*running {
            // Without the privilege to leave `SCHED_IDLE`, a test stays in it, and ends later.
            let _ = schedule(process, libc::SCHED_OTHER);
        }
    }

    /// Runs a case; returns its output, its status, and the CPU time that it took.
    fn run(&self, case: &Case<'_>) -> Result<(String, ExitStatus, Duration), Failure> {
        let mut command = case.program.command();
        command.stdin(Stdio::null());
        if let Some(test) = &case.test {
            command.arg(test).arg("--exact");
        }
        // SAFETY: the closure makes two system calls, and touches only its own memory.
        unsafe {
            command.pre_exec(|| {
                // The child ends with its worker, which alone reads its output.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // Where a sandbox forbids this, the test competes with the foreground.
                let _ = schedule(0, libc::SCHED_IDLE);
                Ok(())
            });
        }
        let (mut reader, process) = {
            let mut running = locked(&self.running);
            let (reader, child) = start(&mut command)?;
            let process = libc::pid_t::try_from(child.id())?;
            running.insert(process);
            if self.hurries.load(Relaxed) {
                let _ = schedule(process, libc::SCHED_OTHER);
            }
            (reader, process)
        };
        let mut output = Vec::new();
        reader.read_to_end(&mut output)?;
        // The process keeps its id until it is waited for.
        locked(&self.running).remove(&process);
        let (status, took) = wait(process)?;
        Ok((String::from_utf8_lossy(&output).into_owned(), status, took))
    }
}

/// Puts a process into a scheduling class without priorities.
fn schedule(process: libc::pid_t, class: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid for the call, and are not kept.
    match unsafe { libc::sched_setscheduler(process, class, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits for a child; returns its status, and the CPU time of it and of its own children.
fn wait(process: libc::pid_t) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: zero is valid for all fields, which are numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are valid for the call, and are not kept.
        if unsafe { libc::wait4(process, &raw mut status, 0, &raw mut usage) } == process {
            let took = duration(usage.ru_utime) + duration(usage.ru_stime);
            return Ok((ExitStatus::from_raw(status), took));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let micros = |part: i64| u64::try_from(part).unwrap_or(0);
    Duration::from_secs(micros(time.tv_sec)) + Duration::from_micros(micros(time.tv_usec))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_is_read_to_its_end_and_counted() {
        let summary = Mutex::new(Summary::default());
        let script = "echo 'test a ... ok'; echo 'skipped: b' >&2; \
                      echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
        run("s: p", shell(script), &summary).unwrap();
        run("s: q", shell("exit 3"), &summary).unwrap();
        let summary = summary.into_inner().unwrap();
        let shown = summary.to_string();
        assert!(shown.contains("s: p: a\n"), "{shown}");
        assert!(shown.contains("failed: s: q\n"), "{shown}");
        assert!(shown.ends_with("1 passed, 0 failed, 1 skipped\n"), "{shown}");
    }

    #[test]
    fn a_child_tells_its_end_and_its_cpu_time() {
        let mut command = shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5");
        let (_, child) = start(&mut command).unwrap();
        let (status, took) = wait(child.id().try_into().unwrap()).unwrap();
        assert_eq!(status.code(), Some(5));
        assert!(took > Duration::from_millis(1), "{took:?}");
    }

    #[test]
    fn a_process_can_be_put_behind_all_others() {
        let mut command = shell("sleep 60");
        let (_, mut child) = start(&mut command).unwrap();
        let process = child.id().try_into().unwrap();
        schedule(process, libc::SCHED_IDLE).unwrap();
        // SAFETY: takes a number only.
        assert_eq!(unsafe { libc::sched_getscheduler(process) }, libc::SCHED_IDLE);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
