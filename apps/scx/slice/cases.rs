//! The cases.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};

use crate::part::VERB;
use crate::start::{Case, Failure};

/// Where the kernel counts what it grants, and what switches its checks of sequences on.
const STATS: &str = "/sys/kernel/debug/rseq/stats";
const DEBUG: &str = "/sys/kernel/debug/rseq/debug";

pub const WITH: &[Case] = &[
    ("is found", is_found),
    ("preempted spinlock", preempted_spinlock),
    ("preempted mutex", preempted_mutex),
    ("cost", cost),
    ("light unlock", light),
    ("checked sequences", checked),
    ("fork", fork),
    ("older glibc", older),
    ("another's rseq", another),
];

pub const MANY: &[Case] =
    &[("light unlock", light), ("checked sequences", checked), ("older glibc", older)];

pub const WITHOUT: &[Case] =
    &[("is refused", is_refused), ("light unlock", light), ("older glibc", older)];

/// The C library that a part runs with: Debian's newest, or that of the host that built this.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Libc {
    Newest,
    Host,
}

/// Runs a part, to its end.
fn output(libc: Libc, name: &str, variables: &[(&str, &str)]) -> Result<Output, Failure> {
    let mut command = match libc {
        Libc::Newest => Command::new("/init"),
        Libc::Host => {
            let mut loader = Command::new("/host/ld.so");
            loader.args(["--library-path", "/host", "/init"]);
            loader
        }
    };
    Ok(command.args([VERB, name]).envs(variables.iter().copied()).output()?)
}

/// Runs a part that must succeed. Returns what it says.
fn told(libc: Libc, name: &str, variables: &[(&str, &str)]) -> Result<String, Failure> {
    let output = output(libc, name, variables)?;
    let told = String::from_utf8(output.stdout)?.trim_end().to_owned();
    if output.status.success() {
        return Ok(told);
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}; {told} {}", output.status, error.trim()).into())
}

fn is_found() -> Result<String, Failure> {
    told(Libc::Newest, "found", &[])
}

fn is_refused() -> Result<String, Failure> {
    told(Libc::Newest, "refused", &[])
}

/// A number that a part says behind a word.
fn number(told: &str, word: &str) -> Result<u64, Failure> {
    let after = told.split_whitespace().skip_while(|one| *one != word).nth(1);
    Ok(after.ok_or_else(|| format!("no {word:?} in {told:?}"))?.parse()?)
}

fn preempted_spinlock() -> Result<String, Failure> {
    preempted("spinlock")
}

fn preempted_mutex() -> Result<String, Failure> {
    preempted("mutex")
}

/// Holders are preempted within sections of 2 us at most a tenth as often as without the extension.
fn preempted(lock: &str) -> Result<String, Failure> {
    let without = told(Libc::Newest, &format!("{lock} off"), &[])?;
    let before = stats()?;
    let with = told(Libc::Newest, &format!("{lock} on"), &[])?;
    let after = stats()?;
    println!("figure {lock} without: {without}");
    println!("figure {lock} with: {with}");
    let grown = |name: &str| after.get(name).copied().unwrap_or(0) - before[name];
    let granted = grown("sgrant");
    let stats = format!(
        "granted {granted}, yielded {}, expired {}, revoked {}, ended by another call {}",
        grown("syield"),
        grown("sexpir"),
        grown("srevok"),
        grown("sabort")
    );
    let (few, many) = (number(&with, "inside")?, number(&without, "inside")?);
    let told = format!(
        "preempted within sections {many} of {} times without, {few} of {} with; {stats}",
        number(&without, "of")?,
        number(&with, "of")?
    );
    if many > 20 && few * 10 <= many && granted > 20 { Ok(told) } else { Err(told.into()) }
}

/// The kernel's counts.
fn stats() -> Result<BTreeMap<String, u64>, Failure> {
    let text = fs::read_to_string(STATS)?;
    let pair = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    Ok(text.lines().filter_map(pair).collect())
}

/// What a free lock costs, by instructions.
fn cost() -> Result<String, Failure> {
    let without = told(Libc::Newest, "cost off", &[])?;
    let with = told(Libc::Newest, "cost on", &[])?;
    Ok(format!("instructions of lock and unlock: {without} without, {with} told"))
}

fn light() -> Result<String, Failure> {
    told(Libc::Newest, "light", &[])
}

/// Keeps glibc from registering an area.
const NO_AREA: &[(&str, &str)] = &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")];

/// While the kernel checks each sequence: the light unlock and sections do what they do otherwise,
/// and a thread is killed that makes a system call in a sequence. It has an area of 32 bytes: what
/// becomes of one with a longer area is only told.
fn checked() -> Result<String, Failure> {
    let before = told(Libc::Newest, "offender", NO_AREA)?;
    fs::write(DEBUG, "1")?;
    let done = || -> Result<String, Failure> {
        let light = told(Libc::Newest, "light", &[])?;
        let sections = told(Libc::Newest, "told", &[])?;
        let status = output(Libc::Newest, "offender", NO_AREA)?.status;
        if status.signal() != Some(libc::SIGSEGV) {
            return Err(format!("a system call in a sequence goes unpunished: {status}").into());
        }
        let longer = output(Libc::Newest, "offender", &[])?.status;
        Ok(format!(
            "{light}; {sections}; a sequence with a system call: {before} without checks, {status} \
             with them, in a longer area {longer}"
        ))
    };
    let told = done();
    fs::write(DEBUG, "0")?;
    told
}

fn fork() -> Result<String, Failure> {
    told(Libc::Newest, "fork", &[])
}

/// Under the host's glibc the light unlock works, too. If that one is older than 2.41 there is no
/// extension, whatever the kernel.
fn older() -> Result<String, Failure> {
    let light = told(Libc::Host, "light", &[])?;
    Ok(format!("{light}; {}", told(Libc::Host, "whichever", &[])?))
}

/// A program with an allocator that registers an area of its own, and without glibc's: neither the
/// light unlock nor the extension is used, and the allocator's area is left alone.
fn another() -> Result<String, Failure> {
    told(Libc::Newest, "another", NO_AREA)
}
