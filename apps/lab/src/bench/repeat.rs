//! Runs one repetition in a process of its own, with a time limit.

use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::Order;
use super::rounds::Outcome;

/// Additional time that a repetition may take: threads have to start, and waiters get their turn
/// one by one on a crowded machine.
const GRACE: Duration = Duration::from_secs(30);

/// Carries out `order`, which should take `seconds`, in a new process.
///
/// # Errors
///
/// One line, if the process can't be started, dies or does not end; in the last case it is killed.
pub fn repeat<F: DeserializeOwned>(order: &Order, seconds: f64) -> Result<Outcome<F>, String> {
    let json = serde_json::to_string(order).map_err(|error| error.to_string())?;
    let mut child = Command::new("/proc/self/exe")
        .args([super::REPETITION, &json])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("can't start a repetition: {error}"))?;
    let within = Duration::from_secs_f64(seconds * 2.0) + GRACE;
    let answer = read_within(&mut child, within);
    if answer.is_err() {
        // Fails only if it has just ended.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let answer = answer?;
    if !status.success() {
        return Err(format!("the repetition ended with {status}"));
    }
    serde_json::from_str(&answer).map_err(|error| error.to_string())
}

fn read_within(child: &mut Child, within: Duration) -> Result<String, String> {
    let Some(mut pipe) = child.stdout.take() else { return Err("no pipe".to_owned()) };
    let end = Instant::now() + within;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: `poll` is one entry, a local variable, and its descriptor is open.
        let ready = unsafe { libc::poll(&raw mut poll, 1, ms) };
        if ready == 0 {
            return Err(format!("no end within {} s; does it hang?", within.as_secs()));
        }
        match pipe.read(&mut chunk) {
            Ok(0) => return String::from_utf8(answer).map_err(|error| error.to_string()),
            Ok(read) => answer.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}
