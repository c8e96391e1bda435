//! Cases of two last-level caches, with two CPUs each: threads stay where they are while both have
//! as much to do, and are taken by the other one's CPUs when theirs have more.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use antiphon_hints::{Hints, now_ns};
use antiphon_scx::llcs::Llcs;
use antiphon_scx::loader::{Failure, is_enabled};

use crate::cpus::LOADED;
use crate::life::{part_under, wait_for};
use crate::policy::{EXT, FAIR};
use crate::scheduler::under;
use crate::start::Case;
use crate::thread::{
    become_of, cpu, exact_timers, jain, own_cpu_ns, sleep_until, stay_within, stop_after, work,
};

pub const CASES: &[Case] = &[
    ("threads stay in their cache", stay),
    ("uneven caches", uneven),
    ("cooperative threads stay", cooperative),
    ("a cache comes", comes),
];

const TIME: Duration = Duration::from_secs(2);
/// The CPUs of each cache.
const CPUS: [[usize; 2]; 2] = [[0, 1], [2, 3]];

/// The cache of a CPU.
fn cache_of(cpu: usize) -> usize {
    cpu / 2
}

/// What a thread has had, and how often it was found in another cache than before.
#[derive(Clone, Copy, Debug, Default)]
struct Had {
    ran_ns: u64,
    moves: u32,
}

/// Runs threads of which as many begin in each cache as `begin` says, which may then run anywhere,
/// and always want a CPU.
fn load(begin: [usize; 2]) -> Result<Vec<Had>, Failure> {
    let stop = AtomicBool::new(false);
    scope(|threads| {
        let stop = &stop;
        let caches = (0..2).flat_map(|cache| [cache].repeat(begin[cache]));
        let all: Vec<_> = caches.map(|cache| threads.spawn(move || roam(cache, stop))).collect();
        stop_after(TIME, stop);
        let all = all.into_iter().map(|one| Ok(one.join().map_err(|_| "a thread panicked")??));
        all.collect()
    })
}

fn roam(cache: usize, stop: &AtomicBool) -> std::io::Result<Had> {
    stay_within(&CPUS[cache])?;
    become_of(EXT)?;
    stay_within(CPUS.as_flattened())?;
    let (mut was, mut moves, before) = (cache, 0, own_cpu_ns());
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        work(100_000);
        let is = cache_of(cpu());
        moves += u32::from(is != was);
        was = is;
    }
    Ok(Had { ran_ns: own_cpu_ns() - before, moves })
}

fn moves(all: &[Had]) -> u32 {
    all.iter().map(|one| one.moves).sum()
}

fn index(all: &[Had]) -> f64 {
    jain(&all.iter().map(|one| one.ran_ns).collect::<Vec<_>>())
}

/// Two loads that are equal are not mixed; in one queue they are.
fn stay() -> Result<String, Failure> {
    let llcs = Llcs::of_this_machine();
    if llcs != (Llcs { of_cpus: [0, 0, 1, 1].map(Some).to_vec(), count: 2 }) {
        return Err(format!("the machine's caches are {llcs:?}").into());
    }
    let apart = under(&[], |_| load([4, 4]))?;
    let mixed = under(&["one-queue"], |_| load([4, 4]))?;
    let told = format!(
        "8 threads: {} moves in {TIME:?}, Jain's index {:.4}; {} moves with one queue",
        moves(&apart),
        index(&apart),
        moves(&mixed)
    );
    let passes = 3 * moves(&apart) <= moves(&mixed) && index(&apart) >= 0.95;
    if passes { Ok(told) } else { Err(told.into()) }
}

/// Threads of a cache that has more than the other one: CPUs of the other one take some, so that
/// each thread has the same.
fn uneven() -> Result<String, Failure> {
    under(&[], |_| {
        let mut told = Vec::new();
        // Without help, the first have two CPUs, and the others Jain's indices of 0.75 and 0.96.
        for (begin, least) in [([4, 0], 0.95), ([6, 2], 0.95), ([3, 2], 0.98)] {
            let all = load(begin)?;
            let ran: u64 = all.iter().map(|one| one.ran_ns).sum();
            let had = ran as f64 / TIME.as_nanos() as f64;
            let [first, second] = begin;
            told.push(format!(
                "{first} and {second} threads: {had:.2} CPUs, Jain's index {:.4}, {} moves",
                index(&all),
                moves(&all)
            ));
            if had < 2.3 || index(&all) < least {
                return Err(told.join("; ").into());
            }
        }
        Ok(told.join("; "))
    })
}

/// Cooperative threads with frames stay in their cache while those of both have as much to do.
fn cooperative() -> Result<String, Failure> {
    let players = under(&["steady"], |scheduler| {
        let (hints, stop) = (scheduler.connect()?, AtomicBool::new(false));
        scope(|threads| {
            let (hints, stop) = (&hints, &stop);
            let begin = |cache| {
                let player = threads.spawn(move || play(hints, cache, stop));
                (player, threads.spawn(move || roam(cache, stop)))
            };
            let all = [0, 0, 1, 1].map(begin);
            stop_after(TIME, stop);
            let mut players = Vec::new();
            for (player, hog) in all {
                players.push(player.join().map_err(|_| "a thread panicked")??);
                hog.join().map_err(|_| "a thread panicked")??;
            }
            Ok(players)
        })
    })?;
    let frames: u32 = players.iter().map(|(_, frames)| frames).sum();
    let moves: u32 = players.iter().map(|(moves, _)| moves).sum();
    let told = format!("{} players: {moves} moves in {frames} frames", players.len());
    if frames > 0 && 10 * moves <= frames { Ok(told) } else { Err(told.into()) }
}

/// Sleeps until its next frame, works for it, and so on. Returns how often it was found in another
/// cache than before, and its frames.
fn play(hints: &Hints, cache: usize, stop: &AtomicBool) -> std::io::Result<(u32, u32)> {
    const PERIOD_NS: u64 = 17_000_000;
    stay_within(&CPUS[cache])?;
    become_of(FAIR)?;
    exact_timers();
    let thread = hints.register()?;
    become_of(EXT)?;
    stay_within(CPUS.as_flattened())?;
    let (mut was, mut moves, mut frames) = (cache, 0, 0);
    let mut at = now_ns() + PERIOD_NS;
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        thread.poll(Some(at), None);
        sleep_until(at);
        let is = cache_of(cpu());
        (moves, frames, was) = (moves + u32::from(is != was), frames + 1, is);
        work(1_000_000);
        // Those that have passed are left out.
        at = now_ns().max(at + PERIOD_NS);
    }
    Ok((moves, frames))
}

/// CPUs come whose cache the scheduler did not know: it is loaded again.
fn comes() -> Result<String, Failure> {
    let switch = |state| {
        let path = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/online");
        CPUS[1].iter().try_for_each(|cpu| fs::write(path(*cpu), state))
    };
    switch("0")?;
    let told = under(&[], |scheduler| {
        let loaded = fs::read_to_string(LOADED)?;
        switch("1")?;
        let is_settled = || {
            let before = fs::read_to_string(LOADED).unwrap_or_default();
            sleep(Duration::from_secs(1));
            let now = fs::read_to_string(LOADED).unwrap_or_default();
            now == before && now != loaded && is_enabled().unwrap_or(false)
        };
        wait_for(is_settled, "the scheduler was not loaded again")?;
        part_under("polite", scheduler)?;
        Ok("is loaded again, and serves".to_owned())
    });
    // Other cases want them.
    switch("1")?;
    told
}
