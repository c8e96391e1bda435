//! Xvfb on one CPU, with or without `antiphon run --coop`, and hogs beside it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use antiphon_linux::die_with_parent;

use crate::{Result, Scheme};

/// A running server, which is ended when this is dropped.
pub struct Server {
    child: Child,
    /// The name of the display, as clients use it.
    pub display: String,
}

impl Server {
    /// Starts one on that CPU, and returns when clients can connect.
    pub fn start(cpu: u32, tier: Option<&str>, domain: &str) -> Result<Self> {
        let mut command = match tier {
            None => on(cpu, "Xvfb"),
            Some(tier) => {
                let mut command = Command::new(antiphon()?);
                let cpu = cpu.to_string();
                command.args(["run", "--coop", "--tier", tier, "--domain", domain, "--cpu", &cpu]);
                command.args(["--", "Xvfb"]);
                command
            }
        };
        command.args(["-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "1280x720x24"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let started = die_with_parent(&mut command).spawn();
        let mut child = started
            .map_err(|why| format!("Xvfb can't be started ({why}): apt-get install xvfb"))?;
        let mut number = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut number)?;
        let number = number.trim().to_owned();
        if number.is_empty() {
            let _ = child.wait()?;
            return Err(
                "Xvfb has no display to offer: is it installed? (apt-get install xvfb)".into()
            );
        }
        Ok(Self { child, display: format!(":{number}") })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `antiphon run` passes the signal on, and ends when Xvfb has ended.
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.is_ok_and(|status| status.success()), "the server is gone");
        self.child.wait().expect("a child");
    }
}

/// Checks that the programs that these schemes need are installed; the error names, in one line,
/// what is missing.
pub fn check(schemes: &[&Scheme]) -> Result<()> {
    for (program, package) in [("taskset", "util-linux"), ("Xvfb", "xvfb")] {
        let mut asked = Command::new(program);
        asked.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if asked.status().is_err() {
            return Err(format!("{program} is not there: apt-get install {package}").into());
        }
    }
    if schemes.iter().any(|scheme| scheme.server.is_some()) {
        antiphon()?;
    }
    Ok(())
}

/// The path of the command, built beside this program.
fn antiphon() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let beside = here.parent().and_then(|examples| examples.parent()).ok_or("no directory")?;
    let path = beside.join("antiphon");
    if path.exists() {
        return Ok(path);
    }
    Err(format!("{} is not there: cargo build -p antiphon-cli", path.display()).into())
}

/// A command that runs on that CPU.
fn on(cpu: u32, program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string(), program]);
    command
}

/// Programs that use the CPU without cooperating; ended when this is dropped.
pub struct Hogs(Vec<Child>);

const HOG: &str = "hog";

impl Hogs {
    pub fn start(count: usize, cpu: u32) -> Result<Self> {
        let here = std::env::current_exe()?.display().to_string();
        let start = |_| die_with_parent(on(cpu, &here).arg(HOG)).spawn();
        Ok(Self((0..count).map(start).collect::<std::io::Result<_>>()?))
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            hog.kill().expect("it never ends by itself");
            hog.wait().expect("a child");
        }
    }
}

/// Returns whether this process is a hog.
pub fn is_hog() -> bool {
    std::env::args().nth(1).is_some_and(|word| word == HOG)
}

/// Spins forever.
pub fn hog() -> ! {
    loop {
        std::hint::spin_loop();
    }
}
