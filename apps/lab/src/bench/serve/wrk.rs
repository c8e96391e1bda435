//! Requests by `wrk`, a well-known load generator, to check the figures of our own.

use std::net::SocketAddr;
use std::process::Command;

use antiphon_report::failure::Failure;

/// The program to run.
pub const PROGRAM: &str = "wrk";

/// The report of `wrk`.
#[derive(Debug, PartialEq)]
pub struct Said {
    /// Number of answers in the whole time that it ran.
    pub answers: f64,
    /// Answers per second.
    pub ops_per_s: f64,
    /// Quantiles of latencies, in nanoseconds.
    pub p50_ns: f64,
    pub p99_ns: f64,
}

/// Checks that `wrk` is installed.
///
/// # Errors
///
/// A message that it is missing, and how to get it.
pub fn is_there() -> Result<(), Failure> {
    // `wrk --version` exits with 1, after printing its usage.
    let run = Command::new(PROGRAM).arg("--version").output();
    run.map(drop).map_err(|error| {
        Failure::missing(format!("{PROGRAM} can't be run: {error}; install it (apt install wrk)"))
    })
}

/// Runs `wrk`: `threads` threads request a page over `connections` connections for `seconds`
/// seconds.
///
/// # Errors
///
/// One line, if it can't be run or some requests failed.
pub fn ask(
    address: SocketAddr,
    threads: usize,
    connections: usize,
    seconds: u64,
) -> Result<Said, String> {
    let mut command = Command::new(PROGRAM);
    command.args(["--latency", "--threads", &threads.to_string()]);
    command.args(["--connections", &connections.to_string()]);
    command.args(["--duration", &format!("{seconds}s"), &format!("http://{address}/hello")]);
    let output = command.output().map_err(|error| format!("{PROGRAM}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    said(&text).ok_or_else(|| {
        let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        format!("the output of {PROGRAM} is not a result: {}", all.trim().replace('\n', "; "))
    })
}

/// Parses a report of `wrk`. Returns `None` if it is not a report, or has errors.
fn said(text: &str) -> Option<Said> {
    if text.contains("Socket errors") || text.contains("Non-2xx or 3xx") {
        return None;
    }
    let behind = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.split_whitespace().next()
    };
    let of_line =
        |line: &str| line.trim().split_once(" requests in ").map(|(count, _)| count.parse());
    Some(Said {
        answers: text.lines().find_map(of_line)?.ok()?,
        ops_per_s: behind("Requests/sec:")?.parse().ok()?,
        p50_ns: nanoseconds(behind("50%")?)?,
        p99_ns: nanoseconds(behind("99%")?)?,
    })
}

/// Parses a time in the format of `wrk`: `83.00us`, `1.20ms`, `2.5s`, `1.10m`.
fn nanoseconds(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Running 2s test @ http://127.0.0.1:9/hello
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   101.31us   60.00us   1.20ms   90.00%
    Req/Sec    75.22k     4.10k   81.31k    85.00%
  Latency Distribution
     50%   88.00us
     75%  110.00us
     90%  150.00us
     99%    1.25ms
  150001 requests in 2.00s, 10.11MB read
Requests/sec:  74910.51
Transfer/sec:      5.05MB
";

    #[test]
    fn a_report_is_read() {
        let said_of = |text: &str| said(text);
        let all = Said { answers: 150_001.0, ops_per_s: 74_910.51, p50_ns: 88e3, p99_ns: 1.25e6 };
        assert_eq!(said_of(REPORT), Some(all));
        let errors = "  Socket errors: connect 0, read 3, write 0, timeout 0\n";
        assert_eq!(said_of(&format!("{REPORT}{errors}")), None);
        assert_eq!(said_of("unable to connect"), None);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(nanoseconds("2.50s"), Some(2.5e9));
        assert_eq!(nanoseconds("1.50m"), Some(90e9));
        assert_eq!((nanoseconds("12"), nanoseconds("1h")), (None, None));
    }
}
