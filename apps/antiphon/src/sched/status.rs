//! What a running scheduler tells of itself.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;

use antiphon_hints::STATUS;
use antiphon_report::failure::Failure;
use antiphon_report::table::{colour_stdout, count};
use serde_json::{Value, json};

use super::about;
use super::kernel::Facts;
use super::threads::{Before, Threads};

/// Asks the scheduler.
///
/// # Errors
///
/// None runs (exit code 69), or its answer can't be read.
pub fn ask() -> Result<Value, Failure> {
    let mut stream = UnixStream::connect(STATUS).map_err(|_| {
        let ops = fs::read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default();
        let other = match ops.trim() {
            "" => "the kernel's own scheduler runs".to_owned(),
            ops => format!("the kernel has another one, {ops}"),
        };
        Failure::missing(format!("antiphon's scheduler does not run ({other}): antiphon sched"))
    })?;
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    read.map_err(|error| Failure::measured(format!("{STATUS}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Failure::measured(format!("{STATUS}: {error}")))
}

/// Ends the scheduler.
///
/// # Errors
///
/// It is another user's.
pub fn stop(status: &Value) -> Result<(), Failure> {
    let pid = status["pid"].as_i64().and_then(|pid| libc::pid_t::try_from(pid).ok());
    let pid = pid.filter(|pid| *pid > 1);
    let pid = pid.ok_or_else(|| Failure::measured("the scheduler does not tell its number"))?;
    // SAFETY: sends a signal; no memory is involved.
    if unsafe { libc::kill(pid, libc::SIGTERM) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    Err(Failure::missing(format!("the scheduler, process {pid}, can't be ended: {error}")))
}

/// The status for scripts.
pub fn object(status: &Value, facts: &Facts) -> Value {
    json!({
        "enabled": true,
        "ops": "antiphon",
        "kernel": about(facts),
        "scope": status["scope"],
        "processes": status["processes"],
        "decisions": status["decisions"],
        "tasks": Threads::of(status, &mut Before::default()).json(),
    })
}

/// The status for people.
pub fn text(status: &Value, facts: &Facts) -> String {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let decided = |what: &str| count(number(&status["decisions"][what]));
    let whom = match status["scope"].as_str() {
        Some("full") => "all threads",
        _ => "threads that ask for it",
    };
    let mut text = format!(
        "Linux {}: antiphon schedules {whom}.\n{} turns by release, {} by virtual time; {} kicks, \
         {} graces; demoted: {} overrun, {} slept, {} share.\n",
        facts.release,
        decided("timely_turns"),
        decided("fair_turns"),
        decided("kicks"),
        decided("graces"),
        decided("demoted_overrun"),
        decided("demoted_slept"),
        decided("demoted_share"),
    );
    let threads = Threads::of(status, &mut Before::default());
    if !threads.is_empty() {
        text += &threads.table(usize::MAX).render(colour_stdout());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_each_thread_and_its_standing() {
        let status = json!({
            "pid": 7, "scope": "partial", "processes": 1,
            "decisions": { "timely_turns": 12, "demoted_share": 3 },
            "threads": [{
                "thread": 41, "process": 40, "standing": "share", "cpu_ns": 2_000_000,
                "timely_turns": 12, "tardiness_ns": { "mean": 90_000, "max": 110_000 },
                "demoted_share": 3,
            }],
        });
        let told = text(&status, &Facts::default());
        assert!(told.contains("12 turns by release") && told.contains("3 share"), "{told}");
        assert!(told.lines().any(|line| line.contains("41") && line.contains("share")), "{told}");
        let object = object(&status, &Facts::default());
        assert_eq!(object["tasks"][0]["standing"], "share");
        assert_eq!(object["kernel"]["btf_ok"], false);
    }
}
