//! Starts a machine, and reads what it says on its serial line.
//!
//! No KVM: the cases are the same on each host, and one of the machines has a clock that counts
//! instructions. `no_timer_check`: on a host under load the kernel takes a late timer for a broken
//! one. `cryptomgr.notests`: the kernel tests its ciphers for a second, beside the cases.
//!
//! `thread=single` for two CPUs, too: with a thread of the host for each, QEMU 7.2 now and then
//! runs an instruction (`int3`) that the kernel has put into its code and taken out again, as it
//! does whenever a scheduler is loaded; the kernel then stops.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Failure;

const LINE: &str = "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable random.trust_cpu=on \
                    cryptomgr.notests";

/// A machine.
pub struct Machine {
    /// The suite that it runs.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    arguments: &'static [&'static str],
}

/// What a machine has said.
#[derive(Debug, Default)]
pub struct Report {
    /// Its cases.
    pub cases: Vec<Case>,
    /// Figures for the docs.
    pub figures: Vec<String>,
    /// Whether it came to its end by itself.
    pub complete: bool,
    /// All that it said.
    pub log: String,
}

/// A case.
#[derive(Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// What it saw, or why it failed.
    pub seen: String,
}

/// One CPU, whose clock counts instructions of 8 ns.
const EIGHT_NS: &[&str] =
    &["-smp", "1", "-accel", "tcg,thread=single", "-icount", "shift=3,sleep=off"];
/// One CPU, whose clock counts instructions of 1 ns.
const ONE_NS: &[&str] =
    &["-smp", "1", "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"];
/// Two CPUs, which one thread of the host emulates in turn.
const TWO_CPUS: &[&str] = &["-smp", "2", "-accel", "tcg,thread=single"];
/// Four CPUs, of which two share a cache each.
const TWO_CACHES: &[&str] = &["-smp", "4,sockets=2", "-accel", "tcg,thread=single"];

impl Machine {
    /// All machines.
    pub const ALL: [Self; 4] = [
        Self {
            name: "one",
            what: "one CPU, its time by instructions (8 ns each): simulated",
            arguments: EIGHT_NS,
        },
        Self {
            name: "fast",
            what: "one CPU, its time by instructions (1 ns each): simulated",
            arguments: ONE_NS,
        },
        Self {
            name: "many",
            what: "two CPUs, emulated in turn at the host's speed",
            arguments: TWO_CPUS,
        },
        Self {
            name: "caches",
            what: "four CPUs of two last-level caches, emulated in turn at the host's speed",
            arguments: TWO_CACHES,
        },
    ];

    /// Those of `--kernel slice`, and whether their kernel is the one with the extension.
    pub const OF_SLICES: [(Self, bool); 3] = [
        (
            Self {
                name: "slice",
                what: "the extension, one CPU, its time by instructions (1 ns each): simulated",
                arguments: ONE_NS,
            },
            true,
        ),
        (
            Self {
                name: "slice-many",
                what: "the extension, two CPUs, emulated in turn at the host's speed",
                arguments: TWO_CPUS,
            },
            true,
        ),
        (
            Self {
                name: "without",
                what: "Debian's kernel, without the extension, two CPUs",
                arguments: TWO_CPUS,
            },
            false,
        ),
    ];

    /// Starts the machine, and waits until it ends, or the time is over.
    ///
    /// # Errors
    ///
    /// If QEMU can't be started.
    pub fn boot(
        &self,
        kernel: &Path,
        initramfs: &Path,
        limit: Duration,
        case: Option<&str>,
    ) -> Result<Report, Failure> {
        // A space would end the word.
        let case = case.map(|name| format!(" antiphon.case={}", name.replace(' ', "_")));
        let path = initramfs.with_file_name(format!("{}.log", self.name));
        let mut machine = Command::new("qemu-system-x86_64")
            .args(["-M", "q35", "-cpu", "max", "-m", "512", "-nographic", "-nodefaults"])
            .args(["-no-reboot", "-serial", "stdio"])
            .args(self.arguments)
            .arg("-kernel")
            .arg(kernel)
            .arg("-initrd")
            .arg(initramfs)
            .args([
                "-append",
                &format!("{LINE} antiphon={}{}", self.name, case.unwrap_or_default()),
            ])
            .stdin(Stdio::null())
            .stdout(File::create(&path)?)
            .spawn()?;
        let begin = Instant::now();
        while machine.try_wait()?.is_none() {
            if begin.elapsed() > limit {
                machine.kill()?;
                machine.wait()?;
                break;
            }
            sleep(Duration::from_millis(50));
        }
        let mut bytes = Vec::new();
        File::open(&path)?.read_to_end(&mut bytes)?;
        Ok(Report::read(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

impl Report {
    fn read(log: String) -> Self {
        let mut report = Self::default();
        for line in log.lines().map(str::trim_end) {
            if let Some(figure) = after(line, "figure ") {
                report.figures.push(figure.to_owned());
            } else if let Some(case) = after(line, "case ").and_then(read_case) {
                report.cases.push(case);
            } else if let Some(result) = after(line, "result ") {
                report.complete = true;
                let failed = report.cases.iter().any(|case| !case.passed);
                // The machine counts its cases too: a line may be lost on the way.
                report.complete &= (result == "fail") == failed && !report.cases.is_empty();
            }
        }
        Self { log, ..report }
    }
}

/// What follows a word. The firmware may have written something before it on the first line.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let at = line.find(word)?;
    let is_begin = at == 0 || line.as_bytes()[at - 1] == b'J';
    is_begin.then(|| &line[at + word.len()..])
}

fn read_case(text: &str) -> Option<Case> {
    let (head, seen) = text.split_once(": ")?;
    let (name, passed) = match head.rsplit_once(' ')? {
        (name, "pass") => (name, true),
        (name, "fail") => (name, false),
        _ => return None,
    };
    Some(Case { name: name.to_owned(), passed, seen: seen.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_its_cases_and_figures() {
        let log = "Booting\u{1b}[2Jfigure kernel 7\ncase order pass: as expected\n\
                   case wake-up fail: p50: 3 us\n  case x pass: indented\nresult fail\n";
        let report = Report::read(log.to_owned());
        assert_eq!(report.figures, ["kernel 7"]);
        let case = |name: &str, passed, seen: &str| Case {
            name: name.to_owned(),
            passed,
            seen: seen.to_owned(),
        };
        let expected = [case("order", true, "as expected"), case("wake-up", false, "p50: 3 us")];
        assert_eq!(report.cases, expected);
        assert!(report.complete);
    }

    #[test]
    fn a_machine_that_stops_or_loses_a_line_is_not_complete() {
        for log in ["case a pass: x\n", "case a pass: x\nresult fail\n", "result pass\n", ""] {
            assert!(!Report::read(log.to_owned()).complete, "{log}");
        }
        assert!(Report::read("case a pass: x\nresult pass\n".to_owned()).complete);
    }
}
