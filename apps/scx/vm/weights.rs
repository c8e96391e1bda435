//! Weights of control groups.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use antiphon_scx::loader::Failure;

use crate::life::wait_for;
use crate::policy::EXT;
use crate::scheduler::under;
use crate::start::mount;
use crate::thread::{become_of, hog_and_tell, stay_on};

/// Where the control groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// How long each part of the case is measured.
const TIME: Duration = Duration::from_secs(3);
/// The control groups of the threads: one in the root, two in a child of a child, one beside them,
/// and one in the last of a chain that is longer than the scheduler follows.
const THREADS: [&str; 5] = ["", "a/x", "a/x", "a/y", CHAIN];
const CHAIN: &str = "b/1/2/3/4/5/6/7/8/9";
/// More than there is room for.
const CROWD: usize = 1_100;
/// The part that is due to each by the weights: a 100, in it x 100 and y 300, and b 300.
const DUE: [f64; 5] = [0.2, 0.025, 0.025, 0.15, 0.6];
/// And when b's is 100, and the first thread of x is in b.
const DUE_THEN: [f64; 5] = [1.0 / 3.0, 1.0 / 6.0, 1.0 / 12.0, 0.25, 1.0 / 6.0];

/// Threads that always want the CPU have it by the weights of their control groups, which are
/// nested; also when a weight changes, and a thread moves.
pub fn control_groups() -> Result<String, Failure> {
    mount("cgroup2", ROOT)?;
    let told = in_groups();
    remove(&["a/x", "a/y", "a"])?;
    let mut chain = Path::new(CHAIN);
    while let (Some(group), Some(above)) =
        (chain.to_str().filter(|it| !it.is_empty()), chain.parent())
    {
        remove(&[group])?;
        chain = above;
    }
    told
}

/// A control group for which there is no room counts as the one above, whatever its weight.
pub fn crowd() -> Result<String, Failure> {
    mount("cgroup2", ROOT)?;
    make("many")?;
    write("cgroup.subtree_control", "+cpu")?;
    write("many/cgroup.subtree_control", "+cpu")?;
    let told = under(&[], |_| {
        let names: Vec<_> = (0..CROWD).map(|one| format!("many/{one}")).collect();
        names.iter().try_for_each(|name| make(name))?;
        let last = names.last().ok_or("no control group")?;
        write(&format!("{last}/cpu.weight"), "300")?;
        let stop = AtomicBool::new(false);
        let ran: [AtomicU64; 2] = Default::default();
        let had = scope(|all| {
            let places = ["many", last.as_str()].into_iter().zip(&ran);
            let stop = &stop;
            let started: Vec<_> = places
                .map(|(place, ran)| {
                    all.spawn(move || {
                        stay_on(1)?;
                        wants(place, ran, &AtomicU64::new(0), stop)
                    })
                })
                .collect();
            sleep(TIME);
            // Relaxed: the flag says nothing about other memory.
            stop.store(true, Ordering::Relaxed);
            for one in started {
                one.join().map_err(|_| "a thread panicked")??;
            }
            Ok::<_, Failure>(ran.each_ref().map(|one| one.load(Ordering::Relaxed) as f64))
        })?;
        names.iter().rev().try_for_each(|name| remove(&[name.as_str()]))?;
        Ok(had[1] / (had[0] + had[1]))
    });
    remove(&["many"])?;
    let share = told?;
    let told = format!("{CROWD} made; a thread in the last has {share:.3} beside one above it");
    if (0.4..0.6).contains(&share) { Ok(told) } else { Err(told.into()) }
}

/// Removes control groups. A thread that has been waited for may still be in one for a moment.
fn remove(groups: &[&str]) -> Result<(), Failure> {
    groups.iter().try_for_each(|group| {
        let path = Path::new(ROOT).join(group);
        wait_for(|| fs::remove_dir(&path).is_ok(), &format!("{group} is still in use"))
    })
}

fn in_groups() -> Result<String, Failure> {
    // Some are there before the scheduler, and some are made under it.
    make("a")?;
    write("cgroup.subtree_control", "+cpu")?;
    write("a/cgroup.subtree_control", "+cpu")?;
    make("a/x")?;
    under(&[], |_| {
        make("a/y")?;
        make("b")?;
        for (end, _) in CHAIN.match_indices('/') {
            write(&format!("{}/cgroup.subtree_control", &CHAIN[..end]), "+cpu")?;
            let next = CHAIN[end + 1..].find('/').map_or(CHAIN.len(), |len| end + 1 + len);
            make(&CHAIN[..next])?;
        }
        write("a/y/cpu.weight", "300")?;
        write("b/cpu.weight", "300")?;
        let stop = AtomicBool::new(false);
        let (ran, threads): ([_; 5], [_; 5]) = Default::default();
        scope(|all| {
            let started: Vec<_> = (0..THREADS.len())
                .map(|one| {
                    let (ran, thread, stop) = (&ran[one], &threads[one], &stop);
                    all.spawn(move || wants(THREADS[one], ran, thread, stop))
                })
                .collect();
            let told = watch(&ran, &threads);
            // Relaxed: the flag says nothing about other memory.
            stop.store(true, Ordering::Relaxed);
            for one in started {
                one.join().map_err(|_| "a thread panicked")??;
            }
            told
        })
    })
}

fn watch(ran: &[AtomicU64; 5], threads: &[AtomicU64; 5]) -> Result<String, Failure> {
    // Until all have their places.
    sleep(Duration::from_millis(500));
    let before = measured(ran, DUE)?;
    write("b/cpu.weight", "100")?;
    // Relaxed: written before the thread has begun to tell its time.
    write("b/cgroup.threads", &threads[1].load(Ordering::Relaxed).to_string())?;
    let then = measured(ran, DUE_THEN)?;
    Ok(format!("{before}; after a change and a move {then}"))
}

/// Watches for a while, and compares each thread's part with what is due.
fn measured(ran: &[AtomicU64; 5], due: [f64; 5]) -> Result<String, Failure> {
    // Relaxed: numbers that say nothing about other memory.
    let now = || -> Vec<_> { ran.iter().map(|one| one.load(Ordering::Relaxed)).collect() };
    let before = now();
    sleep(TIME);
    let had: Vec<_> = now().iter().zip(&before).map(|(now, before)| now - before).collect();
    let all: u64 = had.iter().sum();
    let is: Vec<_> = had.iter().map(|one| *one as f64 / all as f64).collect();
    let worst = is.iter().zip(due).map(|(is, due)| (is - due).abs()).fold(0.0, f64::max);
    let told = format!("{is:.3?} of {due:.3?}");
    if worst < 0.02 { Ok(told) } else { Err(told.into()) }
}

/// Always wants the CPU, in a control group.
fn wants(
    group: &str,
    ran: &AtomicU64,
    thread: &AtomicU64,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    // SAFETY: returns a number.
    thread.store(unsafe { libc::gettid() } as u64, Ordering::Relaxed);
    enter(group)?;
    become_of(EXT)?;
    hog_and_tell(ran, stop);
    Ok(())
}

/// Puts the calling thread into a control group; none is the root.
pub fn enter(group: &str) -> std::io::Result<()> {
    if group.is_empty() {
        return Ok(());
    }
    fs::write(Path::new(ROOT).join(group).join("cgroup.threads"), "0")
}

/// Runs a case with a chain of control groups, from the first one down.
pub fn within<R>(groups: &[&str], case: impl FnOnce() -> Result<R, Failure>) -> Result<R, Failure> {
    mount("cgroup2", ROOT)?;
    let mut above = String::new();
    for group in groups {
        make(group)?;
        write(&format!("{above}cgroup.subtree_control"), "+cpu")?;
        above = format!("{group}/");
    }
    let done = case();
    groups.iter().rev().try_for_each(|group| remove(&[group]))?;
    done
}

/// Makes a control group for threads of this process.
fn make(group: &str) -> std::io::Result<()> {
    let folder = Path::new(ROOT).join(group);
    fs::create_dir(&folder)?;
    fs::write(folder.join("cgroup.type"), "threaded")
}

fn write(file: &str, text: &str) -> Result<(), Failure> {
    let path = Path::new(ROOT).join(file);
    fs::write(path, text).map_err(|error| format!("{file}: {error}").into())
}
