//! One run of a case.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use super::case::Case;
use super::mode::Mode;
use super::process;
use super::seen::{Seen, without_report};
use crate::Failure;

/// How long a program may run, and how long a server may take to answer and to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long processes that a program left behind may still run.
const LEAVING: Duration = Duration::from_secs(5);

/// The exit code of a shell when a program is not found.
const NOT_FOUND: i32 = 127;

/// The folder in which runs take place, removed when this is dropped.
pub struct Place {
    root: PathBuf,
    /// The command, where other users can also execute it.
    antiphon: PathBuf,
    sources: PathBuf,
}

/// The variables and files of one run.
struct Run<'a> {
    place: &'a Place,
    case: &'a Case,
    mode: Option<&'a Mode>,
    port: u16,
}

/// The result of a case's script.
struct Scripted {
    /// `None` if it had to be killed.
    ended: Option<ExitStatus>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Scripted {
    fn succeeded(&self) -> bool {
        self.ended.is_some_and(|ended| ended.success())
    }
}

impl Place {
    /// Creates a place for runs of that command.
    pub fn new(antiphon: &Path, sources: &Path) -> Result<Self, Failure> {
        let root = std::env::temp_dir().join(format!("antiphon-battery-{}", std::process::id()));
        fs::create_dir_all(root.join("out"))?;
        let place = Self { antiphon: root.join("antiphon"), root, sources: sources.to_path_buf() };
        if fs::hard_link(antiphon, &place.antiphon).is_err() {
            fs::copy(antiphon, &place.antiphon)?;
        }
        fs::write(place.input(), input())?;
        Ok(place)
    }

    fn input(&self) -> PathBuf {
        self.root.join("input")
    }

    fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The folder made by a case's preparation, if that is valid for all runs.
    fn prepared(&self) -> PathBuf {
        self.root.join("prepared")
    }

    /// The command, where other users can also execute it.
    pub fn antiphon(&self) -> &Path {
        &self.antiphon
    }

    /// The path of one of our own files.
    fn out(&self, name: &str) -> PathBuf {
        self.root.join("out").join(name)
    }

    /// Prepares all runs of a case, as far as that can be done once. Returns the reason if it
    /// failed.
    pub fn prepare(&self, case: &Case) -> Result<Option<String>, Failure> {
        empty(&self.prepared())?;
        if !case.is_prepared_once() {
            return Ok(None);
        }
        for folder in [self.work(), self.out("")] {
            empty(&folder)?;
        }
        let run = Run { place: self, case, mode: None, port: 0 };
        let trouble = run.prepare()?;
        if trouble.is_none() {
            // Its files contain paths of the place where runs happen.
            fs::remove_dir(self.prepared())?;
            fs::rename(self.work(), self.prepared())?;
        }
        Ok(trouble)
    }

    /// Runs a case, under `antiphon` if there is a mode; returns the observations.
    pub fn run(&self, case: &Case, mode: Option<&Mode>) -> Result<Seen, Failure> {
        for folder in [self.work(), self.out("")] {
            empty(&folder)?;
        }
        if case.is_prepared_once() {
            self.copy_prepared()?;
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let run = Run { place: self, case, mode, port };
        let seen = run.seen();
        let left = process::end_all(Instant::now() + LEAVING);
        let mut seen = seen?;
        seen.add("what still ran", left.join(" "));
        Ok(seen)
    }

    /// Copies the prepared files, with owners, rights and times.
    fn copy_prepared(&self) -> Result<(), Failure> {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(self.prepared().join(".")).arg(self.work());
        match copy.status()?.success() {
            true => Ok(()),
            false => Err("the prepared files can't be copied".into()),
        }
    }
}

/// Makes an empty folder.
fn empty(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

impl Drop for Place {
    fn drop(&mut self) {
        // A folder that can't be removed fails nothing.
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Run<'_> {
    fn seen(&self) -> Result<Seen, Failure> {
        let mut seen = Seen::default();
        if !self.case.is_prepared_once()
            && let Some(why) = self.prepare()?
        {
            seen.add_trouble(&format!("it can't be prepared: {why}"));
            return Ok(seen);
        }
        let started = process::start(&mut self.command(), &self.stdout(), &self.stderr());
        let child = match started {
            Ok(child) => child,
            Err(why) => {
                seen.add_trouble(&format!("it can't be started: {why}"));
                return Ok(seen);
            }
        };
        if self.case.ready.is_some() {
            self.serve(child, &mut seen)?;
        } else {
            self.ends(child, "exit", &mut seen)?;
            if !self.case.files_differ {
                seen.add_files(&self.place.work())?;
            }
        }
        self.outputs(&mut seen)?;
        Ok(seen)
    }

    /// Runs the case's preparation. Returns the reason if it failed.
    fn prepare(&self) -> Result<Option<String>, Failure> {
        let Some(script) = &self.case.prepare else { return Ok(None) };
        let prepared = self.script(script, "prepare")?;
        let said = String::from_utf8_lossy(&prepared.stderr);
        let last = said.lines().last().unwrap_or_default().to_owned();
        Ok((!prepared.succeeded()).then_some(last))
    }

    /// Runs a server and its client, until the server has ended.
    fn serve(&self, mut child: Child, seen: &mut Seen) -> Result<(), Failure> {
        if self.case.daemon {
            self.ends(child, "exit", seen)?;
            if !self.answers(None)? {
                seen.add_trouble("it does not answer");
                return Ok(());
            }
            self.ask(seen)?;
            let Some(pid) = self.pid() else {
                seen.add_trouble("there is no PID file");
                return Ok(());
            };
            process::signal(pid, libc::SIGTERM);
            let ended = process::wait_adopted(pid, Instant::now() + PATIENCE)?;
            add_ending(seen, "exit after TERM", ended);
        } else {
            if !self.answers(Some(&mut child))? {
                seen.add_trouble("it does not answer");
                child.kill()?;
                child.wait()?;
                return Ok(());
            }
            self.ask(seen)?;
            process::signal(libc::pid_t::try_from(child.id())?, libc::SIGTERM);
            self.ends(child, "exit after TERM", seen)?;
        }
        let ready = self.case.ready.as_deref().unwrap_or_default();
        let again = self.script(ready, "again")?.succeeded();
        seen.add("answers after TERM", again.to_string());
        if let Some(file) = &self.case.pid_file {
            let there = self.place.work().join(file).exists();
            seen.add("PID file after TERM", there.to_string());
        }
        Ok(())
    }

    /// Asks until the server answers, its time is over, or it has ended.
    fn answers(&self, mut server: Option<&mut Child>) -> Result<bool, Failure> {
        let ready = self.case.ready.as_deref().unwrap_or_default();
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if self.script(ready, "ready")?.succeeded() {
                return Ok(true);
            }
            if let Some(server) = &mut server
                && server.try_wait()?.is_some()
            {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(false)
    }

    fn ask(&self, seen: &mut Seen) -> Result<(), Failure> {
        let client = self.script(self.case.ask.as_deref().unwrap_or_default(), "ask")?;
        add_ending(seen, "client's exit", client.ended);
        seen.add("answer", client.stdout);
        seen.add("client's stderr", client.stderr);
        Ok(())
    }

    /// The process id in the server's PID file; some servers write it late.
    fn pid(&self) -> Option<libc::pid_t> {
        let path = self.place.work().join(self.case.pid_file.as_deref()?);
        let end = Instant::now() + LEAVING;
        loop {
            // Only the first line: some servers write more.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let pid = text.lines().next().and_then(|line| line.trim().parse().ok());
            if pid.is_some() || Instant::now() >= end {
                return pid;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end of a child, whose observation is called `name`.
    fn ends(&self, mut child: Child, name: &str, seen: &mut Seen) -> Result<(), Failure> {
        let ended = process::wait(&mut child, Instant::now() + PATIENCE)?;
        if ended.is_none() {
            child.kill()?;
            child.wait()?;
        }
        add_ending(seen, name, ended);
        if self.mode.is_none() && ended.and_then(|ended| ended.code()) == Some(NOT_FOUND) {
            seen.add_trouble("one of its programs is missing");
        }
        Ok(())
    }

    /// Adds the output of CMD.
    fn outputs(&self, seen: &mut Seen) -> Result<(), Failure> {
        seen.add("stdout", fs::read(self.stdout())?);
        let stderr = fs::read(self.stderr())?;
        let own = match self.mode {
            None => Ok(stderr),
            Some(_) => {
                let report = fs::read(self.report()).unwrap_or_default();
                without_report(&stderr, &report)
            }
        };
        match own {
            Ok(own) if !self.case.stderr_differs => seen.add("stderr", own),
            Ok(_) => {}
            Err(why) => seen.add("a lost report", why),
        }
        Ok(())
    }

    /// Runs one of the case's scripts.
    fn script(&self, script: &str, name: &str) -> Result<Scripted, Failure> {
        let [stdout, stderr] = ["out", "err"].map(|end| self.place.out(&format!("{name}-{end}")));
        let mut command = Command::new("sh");
        self.surround(command.args(["-ec", script]));
        let mut child = process::start(&mut command, &stdout, &stderr)?;
        let ended = process::wait(&mut child, Instant::now() + PATIENCE)?;
        if ended.is_none() {
            child.kill()?;
            child.wait()?;
        }
        Ok(Scripted { ended, stdout: fs::read(stdout)?, stderr: fs::read(stderr)? })
    }

    /// CMD, under `antiphon` if there is a mode, within the script around it.
    fn command(&self) -> Command {
        let mut words = Vec::new();
        if let Some(mode) = self.mode {
            words.push(self.place.antiphon.display().to_string());
            words.extend(mode.arguments.iter().map(|word| (*word).to_owned()));
            words.extend(["--report".to_owned(), self.report().display().to_string()]);
            if mode.traces {
                let trace = self.place.out("trace").display().to_string();
                words.extend(["--out".to_owned(), trace]);
            }
            words.push("--".to_owned());
        }
        words.extend(self.case.command());
        let mut command = match &self.case.around {
            Some(script) => {
                let mut shell = Command::new("sh");
                shell.args(["-ec", script, "sh"]).args(words);
                shell
            }
            None => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        self.surround(&mut command);
        command
    }

    /// Sets the directory and the variables of everything that is run.
    fn surround(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(self.place.work())
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .env("PORT", self.port.to_string())
            .env("INPUT", self.place.input())
            .env("SOURCES", &self.place.sources)
            .env("HOME", self.place.work())
            .env("TMPDIR", self.place.out(""))
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC");
        if !process::is_root() {
            // The command's own files must not be counted as CMD's.
            command.env("XDG_CACHE_HOME", self.place.root.join("cache"));
        }
    }

    fn report(&self) -> PathBuf {
        self.place.out("report.txt")
    }

    fn stdout(&self) -> PathBuf {
        self.place.out("stdout")
    }

    fn stderr(&self) -> PathBuf {
        self.place.out("stderr")
    }
}

fn add_ending(seen: &mut Seen, name: &str, ended: Option<ExitStatus>) {
    match ended {
        Some(status) => seen.add(name, process::words(status)),
        None => seen.add_trouble(&format!("it still runs after {} s", PATIENCE.as_secs())),
    }
}

/// Lines of text with some repetitions, the same each time.
fn input() -> String {
    let mut state = 1_u64;
    let line = |at: u32| {
        for shift in [13_i32, -7, 17] {
            state ^= if shift > 0 { state << shift } else { state >> -shift };
        }
        format!("{at} line {} of {:x}\n", state % 1000, state >> 40)
    };
    (0..12_000).map(line).collect()
}
