//! The frame of every JSON report.

use serde_json::{Map, Value, json};

use super::{say, shell};
use crate::failure::Failure;

/// Must be incremented when a key is renamed or changes its meaning; not when one is added.
pub const SCHEMA: u32 = 1;

/// A report: `schema`, `antiphon`, `machine` and `command`, and the keys of `body`.
#[must_use]
pub fn framed(body: Value) -> Value {
    let mut report = Map::new();
    report.insert("schema".to_owned(), json!(SCHEMA));
    report.insert("antiphon".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    report.insert("machine".to_owned(), machine());
    report.insert("command".to_owned(), json!(command()));
    match body {
        Value::Object(body) => report.extend(body),
        other => _ = report.insert("rows".to_owned(), other),
    }
    Value::Object(report)
}

/// Prints the report of `body` to stdout, as one object.
///
/// # Errors
///
/// If stdout can't be written.
pub fn print(body: Value) -> Result<(), Failure> {
    say(&format!("{:#}\n", framed(body)))
}

/// Prints `body` as a report for scripts, or else `text` for people.
///
/// # Errors
///
/// If stdout can't be written.
pub fn print_or_say(
    as_json: bool,
    body: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if as_json { print(body()) } else { say(&text()) }
}

/// The arguments of this process, as a line for a shell.
#[must_use]
pub fn command() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into());
    shell::line(std::iter::once("antiphon".to_owned()).chain(arguments))
}

/// A description of this machine, for the readers of figures.
#[must_use]
pub fn machine() -> Value {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| {
        line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim())
    });
    let nodes = std::fs::read_dir("/sys/devices/system/node").map_or(1, |entries| {
        entries
            .flatten()
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.strip_prefix("node").is_some_and(|id| id.parse::<u32>().is_ok())
            })
            .count()
            .max(1)
    });
    json!({
        "cpu": model,
        "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        "numa_nodes": nodes,
        "kernel": text("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned()),
        "hypervisor": cpuinfo.contains(" hypervisor"),
        "date": date(),
    })
}

/// The present day in UTC, as `2026-11-20`.
pub fn date() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let (year, month, day) = civil(since.map_or(0, |since| since.as_secs() / 86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

/// The Gregorian date of a day counted from 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    // Years that begin in March, in cycles of 400: leap days then come last.
    let day = days + 719_468;
    let (cycle, of_cycle) = (day / 146_097, day % 146_097);
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + cycle * 400 + carry, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }

    #[test]
    fn a_report_has_its_frame() {
        let report = framed(json!({ "rows": [] }));
        for key in ["schema", "antiphon", "machine", "command", "rows"] {
            assert!(report.get(key).is_some(), "{key}");
        }
    }
}
