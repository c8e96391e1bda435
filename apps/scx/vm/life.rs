//! Cases of several CPUs: order and fairness, the scheduler's death, and other users' processes.
//!
//! The machine's speed is the host's, so no case depends on a time: limits are generous, and the
//! times are only told.

use std::io::{BufRead as _, BufReader};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use antiphon_hints::{Hints, now_ns};
use antiphon_scx::loader::{Failure, is_enabled};

use crate::client;
use crate::policy::{EXT, FAIR, hogs, order_on};
use crate::scheduler::{PATIENCE, Scheduler, await_state, under};
use crate::start::Case;
use crate::thread::{become_of, hog, jain, stay_on, stop_after};

pub const CASES: &[Case] = &[
    ("order on one of two CPUs", order),
    ("fairness", fairness),
    ("unprivileged", unprivileged),
    ("thief", thief),
    ("group", group),
    ("privilege", privilege),
    ("too many threads", threads),
    ("too many processes", processes),
    ("forged page", forger),
    ("kicks", kicks),
    ("changes of groups", crate::groups::changes),
    ("many control groups", crate::weights::crowd),
    ("killed", killed),
    ("loop", crate::loops::life),
    ("locks that tell", crate::locks::life),
    ("affinity", crate::cpus::affinity),
    ("beside real time", crate::cpus::beside_real_time),
    ("a light thread elsewhere", crate::cpus::light_elsewhere),
    ("pinned holder", crate::cpus::pinned_holder),
    ("far ahead", crate::cpus::far_ahead),
    ("hotplug", crate::cpus::hotplug),
    ("hotplug of all threads", crate::cpus::hotplug_of_all),
    ("stalled", stalled),
    ("whole machine", whole_machine),
];

fn order() -> Result<String, Failure> {
    order_on(Some(1))
}

/// Four threads that always want a CPU have half of one each.
fn fairness() -> Result<String, Failure> {
    let ran = under(&[], |_| hogs(&[EXT; 4], Duration::from_secs(2)))?;
    even(&ran)
}

fn even(ran: &[u64]) -> Result<String, Failure> {
    let index = jain(ran);
    let told = format!("Jain's index of {} threads: {index:.4}", ran.len());
    if index >= 0.95 { Ok(told) } else { Err(told.into()) }
}

/// A process without privilege has all of it: a page, a registration, turns when it is due.
fn unprivileged() -> Result<String, Failure> {
    part("polite").map(|()| "served by its releases".to_owned())
}

fn thief() -> Result<String, Failure> {
    part("thief").map(|()| "neither maps nor the socket's place".to_owned())
}

/// Only users of a group are served.
fn group() -> Result<String, Failure> {
    under(&["group"], |scheduler| {
        for (part, user) in [("polite", client::USER), ("stranger", client::USER + 1)] {
            let status = client::start_of(part, user)?.wait()?;
            if !status.success() {
                return Err(format!("the client {part} failed: {status}").into());
            }
        }
        forgets(scheduler)
    })?;
    Ok("a user of it is served, and another one may not connect".to_owned())
}

/// The least privilege that loads the scheduler.
fn privilege() -> Result<String, Failure> {
    /// `CAP_SYS_ADMIN`, `CAP_PERFMON`, `CAP_BPF`.
    const ALL: [u32; 3] = [21, 38, 39];
    let mut told = Vec::new();
    for (kept, name, is_enough) in [
        (&ALL[1..], "CAP_BPF and CAP_PERFMON", true),
        (&ALL[2..], "CAP_BPF alone", false),
        (&ALL[1..2], "CAP_PERFMON alone", false),
    ] {
        let scheduler = Scheduler::start_with(&["full"], Some(kept));
        if scheduler.is_ok() != is_enough {
            let why = scheduler.err().map(|why| why.to_string());
            return Err(format!("{name}: {}", why.unwrap_or("it loads".to_owned())).into());
        }
        if let Ok(scheduler) = scheduler {
            part_under("polite", &scheduler)?;
            scheduler.stop()?;
        }
        told.push(format!("{name}: {}", if is_enough { "loads" } else { "refused" }));
    }
    Ok(told.join("; "))
}

fn threads() -> Result<String, Failure> {
    part("threads").map(|()| "31 of 40 registered, and none is left behind".to_owned())
}

/// Runs a client under a scheduler, which must forget all of it when it has ended.
fn part(name: &str) -> Result<(), Failure> {
    under(&[], |scheduler| part_under(name, scheduler))
}

pub fn part_under(name: &str, scheduler: &Scheduler) -> Result<(), Failure> {
    let status = client::start(name)?.wait()?;
    if !status.success() {
        return Err(format!("the client failed: {status}").into());
    }
    forgets(scheduler)
}

pub fn forgets(scheduler: &Scheduler) -> Result<(), Failure> {
    let begin = Instant::now();
    loop {
        let status = scheduler.status()?;
        if status["processes"] == 0 && status["decisions"]["registered"] == 0 {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("it remembers processes that have ended: {status}").into());
        }
        sleep(Duration::from_millis(10));
    }
}

/// A user has at most 64 processes with pages.
fn processes() -> Result<String, Failure> {
    under(&[], |scheduler| {
        let start = |_| client::start(client::HOLDER);
        let mut all: Vec<_> = (0..70).map(start).collect::<Result<_, _>>()?;
        let mut served = 0;
        for one in &mut all {
            let mut line = String::new();
            let output = one.stdout.as_mut().ok_or("a client without output")?;
            // A client that is refused ends, and with it its output.
            BufReader::new(output).read_line(&mut line)?;
            served += usize::from(line.trim_end() == client::HELD);
        }
        for mut one in all {
            one.wait()?;
        }
        forgets(scheduler)?;
        let told = format!("{served} of 70 served at a time");
        if served == 64 { Ok(told) } else { Err(told.into()) }
    })
}

/// A page full of chance takes no more than its thread's share from another.
fn forger() -> Result<String, Failure> {
    beside(&[], "forger").map(|(share, _)| format!("the other thread's share: {share:.3}"))
}

/// A thread that is always due and wakes up as often as it can is not served at each wake-up.
fn kicks() -> Result<String, Failure> {
    let (share, refused) = beside(&["few-kicks"], "sleeper")?;
    let told = format!("the other thread's share: {share:.3}; {refused} kicks refused");
    if refused > 0 { Ok(told) } else { Err(told.into()) }
}

/// Runs a client beside a thread that always wants the CPU, on that thread's. Returns the share of
/// the latter, and how many kicks were refused.
fn beside(options: &[&str], name: &str) -> Result<(f64, u64), Failure> {
    under(options, |scheduler| {
        let stop = AtomicBool::new(false);
        let (share, status) = scope(|threads| -> Result<_, Failure> {
            let other = threads.spawn(|| -> std::io::Result<f64> {
                become_of(EXT)?;
                stay_on(1)?;
                let begin = Instant::now();
                Ok(hog(&stop) as f64 / begin.elapsed().as_nanos() as f64)
            });
            let status = client::start(name).and_then(|mut client| client.wait());
            // Relaxed: the flag says nothing about other memory.
            stop.store(true, Ordering::Relaxed);
            Ok((other.join().map_err(|_| "a thread panicked")??, status?))
        })?;
        let refused = scheduler.count("kicks_refused")?;
        forgets(scheduler)?;
        if status.success() && share > 0.4 {
            return Ok((share, refused));
        }
        Err(format!("the other thread's share: {share:.3}; the client: {status}").into())
    })
}

/// The scheduler is killed: its clients notice, and go on; another one serves them again.
fn killed() -> Result<String, Failure> {
    let scheduler = Scheduler::start(&[])?;
    let hints = scheduler.connect()?;
    let (stop, noticed) = (AtomicBool::new(false), AtomicU64::new(0));
    let count = AtomicU64::new(0);
    let told = scope(|threads| -> Result<String, Failure> {
        let client = threads.spawn(|| work_while_served(&hints, &stop, &noticed, &count));
        let done = || -> Result<String, Failure> {
            wait_for(|| count.load(Ordering::Relaxed) > 100, "the client is not served")?;
            let killed_ns = now_ns();
            scheduler.kill()?;
            await_state(false)?;
            let disabled_ns = now_ns();
            wait_for(|| noticed.load(Ordering::Relaxed) != 0, "the client did not notice")?;
            let before = count.load(Ordering::Relaxed);
            wait_for(|| count.load(Ordering::Relaxed) > before + 10, "the client stopped")?;
            let after = |ns: u64| ns.saturating_sub(killed_ns) / 1_000_000;
            let noticed_ns = noticed.load(Ordering::Relaxed);
            Ok(format!(
                "noticed after {} ms, the kernel's default scheduler after {} ms",
                after(noticed_ns),
                after(disabled_ns)
            ))
        };
        let told = done();
        stop.store(true, Ordering::Relaxed);
        client.join().map_err(|_| "a thread panicked")??;
        told
    })?;
    part("polite")?;
    Ok(format!("{told}; served again by another one"))
}

/// Polls and works, and notes when it is no longer served.
fn work_while_served(
    hints: &Hints,
    stop: &AtomicBool,
    noticed: &AtomicU64,
    count: &AtomicU64,
) -> std::io::Result<()> {
    become_of(FAIR)?;
    let thread = hints.register()?;
    // Relaxed everywhere: numbers that say nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        let now = now_ns();
        thread.poll(Some(now + 1_000_000), None);
        if thread.is_served(now) {
            count.fetch_add(1, Ordering::Relaxed);
            // A thread that the host had stopped may have looked too early.
            noticed.store(0, Ordering::Relaxed);
        } else if noticed.load(Ordering::Relaxed) == 0 {
            noticed.store(now, Ordering::Relaxed);
        } else {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

pub fn wait_for(done: impl Fn() -> bool, otherwise: &str) -> Result<(), Failure> {
    let begin = Instant::now();
    while !done() {
        if begin.elapsed() > PATIENCE {
            return Err(otherwise.into());
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A scheduler that runs no thread is unloaded by the kernel, and the threads go on.
fn stalled() -> Result<String, Failure> {
    let scheduler = Scheduler::start(&["stall"])?;
    let begin = Instant::now();
    let ran = hogs(&[EXT; 3], Duration::from_secs(5))?;
    if is_enabled()? || ran.contains(&0) {
        return Err(format!("not unloaded, or a thread was left behind: {ran:?}").into());
    }
    let waited = begin.elapsed().as_secs();
    if scheduler.ends()? {
        return Err("the scheduler's program has not noticed".into());
    }
    part("polite")?;
    Ok(format!("unloaded within {waited} s, its program has ended, and another one serves again"))
}

/// All threads of the machine are scheduled, and those of the init program among them.
fn whole_machine() -> Result<String, Failure> {
    let told = under(&["full"], |_| {
        let ran = hogs(&[FAIR; 4], Duration::from_secs(2))?;
        let status = client::start("polite")?.wait()?;
        let told = even(&ran)?;
        if status.success() { Ok(told) } else { Err(format!("the client: {status}").into()) }
    })?;
    let scheduler = Scheduler::start(&["full"])?;
    let stop = AtomicBool::new(false);
    scope(|threads| -> Result<(), Failure> {
        let one = threads.spawn(|| become_of(FAIR).map(|()| hog(&stop)));
        let killed = scheduler.kill();
        stop_after(Duration::from_millis(200), &stop);
        one.join().map_err(|_| "a thread panicked")??;
        Ok(killed?)
    })?;
    await_state(false)?;
    Ok(format!("{told}; survives the scheduler's death"))
}
