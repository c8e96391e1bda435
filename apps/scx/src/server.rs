//! The program: loads the scheduler, serves processes, and ends with the kernel's part.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use antiphon_hints::{SOCKET, STATUS, Standing};
use serde_json::{Value, json};

use crate::intake;
use crate::loader::{Failure, Loaded, Scope, Setup};
use crate::service::Service;
use crate::shared::{Counters, Event, Record};

/// How often the program looks whether the kernel's part is still there.
const LOOK_MS: i32 = 100;

/// Set by a signal.
static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    // Relaxed: the flag says nothing about other memory.
    STOP.store(true, Ordering::Relaxed);
}

/// Runs the scheduler until a signal ends it, or the kernel unloads it. With a group, only its
/// users are served. When a CPU has come whose last-level cache was not known, the scheduler is
/// loaded again.
///
/// # Errors
///
/// If it can't be loaded, or the kernel has unloaded it.
pub fn run(setup: &Setup, group: Option<u32>) -> Result<(), Failure> {
    make_room()?;
    let mut loaded = Loaded::load(setup)?;
    let mut service = Service::new(listen(SOCKET, group)?, &loaded, setup.scope)?;
    let status = listen(STATUS, group)?;
    status.set_nonblocking(true)?;
    for signal in [libc::SIGTERM, libc::SIGINT] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    let mut online = online_cpus()?;
    // Relaxed: as above.
    while !STOP.load(Ordering::Relaxed) {
        let descriptors = service.descriptors().chain([status.as_raw_fd()]);
        wait(descriptors.collect());
        service.turn(&loaded)?;
        let asking = intake::take(&status)?;
        if !asking.is_empty() {
            let report = format!("{}\n", report(setup, &loaded, &service)?);
            for mut stream in asking {
                // The others do not wait for one that does not read.
                if stream.set_nonblocking(true).is_ok() {
                    // A reader that goes away has what it wants.
                    let _ = stream.write_all(report.as_bytes());
                }
            }
        }
        if loaded.counters()?.ended != 0 {
            return Err(
                format!("the kernel has unloaded the scheduler: {}", loaded.ending()?).into()
            );
        }
        let now = online_cpus()?;
        if now != online && !loaded.knows_all_llcs() {
            drop(loaded);
            loaded = load_again(setup)?;
            service.renew(&loaded)?;
        }
        online = now;
    }
    for path in [SOCKET, STATUS] {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Allows as many descriptors as there may be: two for each process that is served.
fn make_room() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to `limit`, which is alive.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the call reads `limit`.
    let done = got == 0 && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the kernel's list of the CPUs that are online.
fn online_cpus() -> io::Result<String> {
    fs::read_to_string("/sys/devices/system/cpu/online")
}

/// Loads the scheduler when the kernel has done with the former one.
fn load_again(setup: &Setup) -> Result<Loaded, Failure> {
    /// For a machine under load.
    const TRIES: u32 = 500;
    for _ in 0..TRIES {
        if fs::read_to_string("/sys/kernel/sched_ext/state")?.trim() == "disabled" {
            return Loaded::load(setup);
        }
        sleep(Duration::from_millis(10));
    }
    Err("a CPU has come, and the kernel does not end the former scheduler".into())
}

/// Listens at a path that all users may connect to, or those of a group, and only root may replace.
fn listen(path: &str, group: Option<u32>) -> io::Result<UnixListener> {
    let folder = Path::new(path).parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o755))?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // One that a program has left behind.
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    if group.is_some() {
        chown(path, None, group)?;
    }
    let mode = if group.is_some() { 0o660 } else { 0o666 };
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(listener)
}

/// Waits until one of the descriptors is readable, a signal arrives, or it is time to look.
fn wait(descriptors: Vec<RawFd>) {
    let one = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut all: Vec<_> = descriptors.into_iter().map(one).collect();
    // SAFETY: as many entries as stated. Whatever it returns, the caller looks.
    unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, LOOK_MS) };
}

fn report(setup: &Setup, loaded: &Loaded, service: &Service) -> Result<Value, Failure> {
    let threads: Vec<_> = loaded.threads()?.iter().map(thread).collect();
    Ok(json!({
        "pid": std::process::id(),
        "scope": match setup.scope { Scope::Partial => "partial", Scope::Full => "full" },
        "processes": service.processes(),
        "decisions": decisions(&loaded.counters()?),
        "threads": threads,
        "events": loaded.events()?.iter().map(event).collect::<Vec<_>>(),
    }))
}

/// An event in few letters: there are thousands, when they are kept at all.
fn event(one: &Event) -> Value {
    json!([one.at_ns, one.kind, one.pid, one.value, one.importance])
}

fn decisions(counters: &Counters) -> Value {
    json!({
        "timely_turns": counters.timely,
        "fair_turns": counters.fair,
        "kicks": counters.kicks,
        "kicks_refused": counters.kicks_refused,
        "spun_for": counters.spun_for,
        "graces": counters.graces,
        "demoted_overrun": counters.overrun,
        "demoted_slept": counters.slept,
        "demoted_share": counters.share,
        "strays": counters.strays,
        "registered": counters.registered,
        "refused": counters.refused,
    })
}

fn thread(record: &Record) -> Value {
    let mean_ns = record.late_ns.checked_div(record.timely).unwrap_or(0);
    json!({
        "thread": record.pid,
        "process": record.tgid,
        "standing": Standing::of(record.standing).unwrap_or(Standing::Plain).name(),
        "cpu_ns": record.ran_ns,
        "age_ns": antiphon_hints::now_ns().saturating_sub(record.begun_ns),
        "timely_turns": record.timely,
        "tardiness_ns": { "mean": mean_ns, "max": record.latest_ns },
        "demoted_overrun": record.overrun,
        "demoted_slept": record.slept,
        "demoted_share": record.share,
    })
}
