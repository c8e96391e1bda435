//! Players and hogs on one CPU, by tier: how late timers are, and the share of the CPU that each
//! process gets.
//!
//! Each player shows 60 frames a second, which takes 50 µs, and decodes in pieces of 250 µs as fast
//! as it can; a hog does nothing but run. `cargo run --release --example tiers -- [SECONDS [CPU
//! [PLAYERS [HOGS]]]]`
//!
//! | row | a frame is shown by |
//! |---|---|
//! | `none` | the player's one thread, between pieces: timerfd and epoll |
//! | `T1` | the same, and a booster |
//! | `T2` | a thread with a slice of 100 µs beside one with 20 ms |
//! | `T1b` | a SCHED_FIFO thread beside one with a slice of 20 ms |

use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use std::{env, hint, io, mem, thread};

use antiphon_coop::{
    Alone, Ask, BoostOptions, Booster, Cooperate, Split, SplitOptions, Tier, available,
};
use antiphon_linux::{pin, schedule};

const FRAME_NS: u64 = 1_000_000_000 / 60;
const PIECE_NS: u64 = 250_000;
const SHOW_NS: u64 = 50_000;
const WARM_NS: u64 = 1_000_000_000;

/// The work of a thread while it was measured.
#[derive(Default)]
struct Done {
    late_ns: Vec<u64>,
    cpu_ns: u64,
    pieces: u64,
}

#[derive(Clone, Copy)]
struct Case {
    seconds: u64,
    players: usize,
    hogs: usize,
    /// Turns of a busy loop in a microsecond.
    speed: u64,
}

fn main() -> ExitCode {
    let words: Vec<_> = env::args().skip(1).collect();
    let (cpu, case) = match asked(&words) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("tiers: {why}; tiers [SECONDS [CPU [PLAYERS [HOGS]]]]");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = all(cpu, case) {
        eprintln!("tiers: {why}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The CPU and the case that the words ask for. Pins the calling thread to the CPU.
fn asked(words: &[String]) -> Result<(u32, Case), String> {
    let number = |at: usize, what: &str, or: u32, least: u32, most: u32| {
        let number = words.get(at).map_or(Ok(or), |word| word.parse());
        number
            .ok()
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("{what}: a number from {least} to {most}, not `{}`", words[at]))
    };
    let (seconds, cpu) = (number(0, "SECONDS", 5, 1, 3600)?, number(1, "CPU", 1, 0, 8191)?);
    let (players, hogs) = (number(2, "PLAYERS", 8, 1, 1000)?, number(3, "HOGS", 4, 0, 1000)?);
    if let Some(word) = words.get(4) {
        return Err(format!("what is `{word}` for?"));
    }
    pin(cpu).map_err(|_| format!("this program may not run on CPU {cpu}"))?;
    let (players, hogs) = (players as usize, hogs as usize);
    Ok((cpu, Case { seconds: seconds.into(), players, hogs, speed: measure_speed() }))
}

fn all(cpu: u32, case: Case) -> Result<(), schedule::Refused> {
    let here = available();
    print!("{here}");
    let Case { seconds, players, hogs, .. } = case;
    println!("{players} players, {hogs} hogs, CPU {cpu}, {seconds} s each; lateness in ms");
    println!(
        "tier   frames     p50     p99   p99.9     max  ≤1ms   Jain  players     cpu  pieces/s  \
         helper"
    );
    for tier in [Tier::None, Tier::Boost, Tier::Split, Tier::RealTimeSplit] {
        match here.tier(tier) {
            Ok(()) => run(tier, case)?,
            Err(why) => println!("{tier:<5} {why}"),
        }
    }
    Ok(())
}

fn run(tier: Tier, case: Case) -> Result<(), schedule::Refused> {
    let booster = match tier {
        Tier::Boost => Some(Booster::start(BoostOptions::default())?),
        _ => None,
    };
    let (stop, start) = (AtomicBool::new(false), Barrier::new(case.players + case.hogs));
    let done = thread::scope(|scope| {
        let players = (0..case.players).map(|at| {
            let (booster, stop, start) = (booster.clone(), &stop, &start);
            scope.spawn(move || {
                start.wait();
                let first_ns = Split::now_ns() + FRAME_NS * at as u64 / case.players as u64;
                match (tier, booster) {
                    (Tier::Split | Tier::RealTimeSplit, _) => split(tier, case, stop, first_ns),
                    (_, Some(booster)) => play(booster.boost(Alone), case, stop, first_ns),
                    _ => play(Alone, case, stop, first_ns),
                }
            })
        });
        let players: Vec<_> = players.collect();
        let hogs: Vec<_> =
            (0..case.hogs).map(|_| scope.spawn(|| hog(case, &stop, &start))).collect();
        let of = |threads: Vec<thread::ScopedJoinHandle<'_, Done>>| -> Vec<_> {
            threads.into_iter().map(|thread| thread.join().expect("a thread has failed")).collect()
        };
        thread::sleep(Duration::from_nanos(WARM_NS) + Duration::from_secs(case.seconds));
        stop.store(true, Relaxed);
        (of(players), of(hogs))
    });
    let helper_ns = booster.as_ref().map_or(0, |booster| booster.stats().helper_ns);
    report(tier, case, &done, helper_ns);
    if let Some(booster) = booster {
        let counts = booster.stats().counts;
        let ms = counts.borrowed_ns / 1_000_000;
        println!(
            "      {} raises, {ms} ms borrowed, demoted {:?}",
            counts.raises, counts.demotions
        );
    }
    Ok(())
}

/// A loop of one thread: timers first, then a piece of work.
fn play(mut tier: impl Cooperate, case: Case, stop: &AtomicBool, first_ns: u64) -> Done {
    let files = Files::new().expect("no epoll here");
    let (mut release_ns, mut done, mut from) = (first_ns, Done::default(), None);
    while !stop.load(Relaxed) {
        let mut now_ns = Split::now_ns();
        if from.is_none() && now_ns > first_ns + WARM_NS {
            from = Some(schedule::own_cpu_ns());
            done = Done::default();
        }
        while release_ns <= now_ns {
            done.late_ns.push(now_ns - release_ns);
            spin(case, SHOW_NS);
            release_ns += FRAME_NS;
            now_ns = Split::now_ns();
        }
        let ask = Ask { release_ns: Some(release_ns), importance: Some(done.pieces) };
        tier.poll(ask, &mut |until| files.wait(until));
        if Split::now_ns() < release_ns {
            spin(case, PIECE_NS);
            done.pieces += 1;
        }
    }
    done.cpu_ns = schedule::own_cpu_ns() - from.unwrap_or(0);
    done
}

/// Frames are shown in a thread of their own.
fn split(tier: Tier, case: Case, stop: &AtomicBool, first_ns: u64) -> Done {
    let priority = (tier == Tier::RealTimeSplit).then_some(SplitOptions::PRIORITY);
    let timers = Split::start(SplitOptions { priority, ..SplitOptions::default() });
    let timers = timers.expect("it was there");
    let _slice = timers.worker();
    let most = (case.seconds + 4) * 60;
    let late: Arc<Vec<_>> = Arc::new((0..most).map(|_| AtomicU64::new(u64::MAX)).collect());
    let shown_ns = Arc::new(AtomicU64::new(0));
    let (mut release_ns, mut done, mut from, mut frame) = (first_ns, Done::default(), None, 0);
    let mut first = 0;
    while !stop.load(Relaxed) {
        let now_ns = Split::now_ns();
        if from.is_none() && now_ns > first_ns + WARM_NS {
            from = Some((schedule::own_cpu_ns(), shown_ns.load(Relaxed)));
            // The first frame that counts is due from now on: the frames before it were submitted a
            // second ago.
            first = ((now_ns - first_ns) / FRAME_NS + 1) as usize;
            done.pieces = 0;
        }
        // The player looks ahead by a second.
        while release_ns < now_ns + 60 * FRAME_NS && frame < late.len() {
            let (late, shown_ns) = (Arc::clone(&late), Arc::clone(&shown_ns));
            timers.submit(release_ns, move |late_ns| {
                late[frame].store(late_ns, Relaxed);
                spin(case, SHOW_NS);
                shown_ns.store(schedule::own_cpu_ns(), Relaxed);
            });
            (release_ns, frame) = (release_ns + FRAME_NS, frame + 1);
        }
        spin(case, PIECE_NS);
        done.pieces += 1;
    }
    let (cpu_ns, before_ns) = from.unwrap_or_default();
    done.cpu_ns = schedule::own_cpu_ns() - cpu_ns + shown_ns.load(Relaxed) - before_ns;
    let shown = late[first.min(frame)..frame].iter().map(|late| late.load(Relaxed));
    done.late_ns = shown.filter(|&late| late != u64::MAX).collect();
    done
}

fn hog(case: Case, stop: &AtomicBool, start: &Barrier) -> Done {
    start.wait();
    let until_ns = Split::now_ns() + WARM_NS;
    while Split::now_ns() < until_ns {
        spin(case, SHOW_NS);
    }
    let from = schedule::own_cpu_ns();
    while !stop.load(Relaxed) {
        spin(case, SHOW_NS);
    }
    Done { cpu_ns: schedule::own_cpu_ns() - from, ..Done::default() }
}

fn report(tier: Tier, case: Case, (players, hogs): &(Vec<Done>, Vec<Done>), helper_ns: u64) {
    let mut late: Vec<u64> = players.iter().flat_map(|player| player.late_ns.clone()).collect();
    late.sort_unstable();
    let part = |part: f64| match late.len() {
        0 => 0.0,
        count => late[((count as f64 * part) as usize).min(count - 1)] as f64 / 1e6,
    };
    let on_time = late.partition_point(|&late| late <= 1_000_000) as f64 / late.len().max(1) as f64;
    let cpu = |threads: &[Done]| threads.iter().map(|done| done.cpu_ns as f64).collect::<Vec<_>>();
    let (of_players, of_hogs) = (cpu(players), cpu(hogs));
    let all: Vec<f64> = of_players.iter().chain(&of_hogs).copied().collect();
    let sum: f64 = all.iter().sum();
    let jain = sum * sum / (all.len() as f64 * all.iter().map(|one| one * one).sum::<f64>());
    println!(
        "{tier:<5} {:7} {:7.3} {:7.3} {:7.3} {:7.3} {:4.0} %  {jain:.3}   {:4.1} %  {:4.0} %  \
         {:8.0}  {:4.1} %",
        late.len(),
        part(0.5),
        part(0.99),
        part(0.999),
        part(1.0),
        on_time * 100.0,
        of_players.iter().sum::<f64>() / sum * 100.0,
        sum / 1e7 / case.seconds as f64,
        players.iter().map(|player| player.pieces).sum::<u64>() as f64 / case.seconds as f64,
        helper_ns as f64 / 1e7 / (case.seconds + 1) as f64,
    );
}

fn spin(case: Case, ns: u64) {
    turn(case.speed * ns / 1000);
}

fn turn(turns: u64) {
    for at in 0..turns {
        hint::black_box(at);
    }
}

/// The most of a few tries: others run here too.
fn measure_speed() -> u64 {
    const TURNS: u64 = 1_000_000;
    let tries = (0..20).map(|_| {
        let from = schedule::own_cpu_ns();
        turn(TURNS);
        TURNS * 1000 / (schedule::own_cpu_ns() - from).max(1)
    });
    tries.max().unwrap_or(1).max(1)
}

/// A timerfd in an epoll: what a loop sleeps in.
struct Files {
    epoll: i32,
    timer: i32,
}

impl Files {
    fn new() -> io::Result<Self> {
        // SAFETY: takes numbers.
        let (epoll, timer) = unsafe {
            (
                libc::epoll_create1(0),
                libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK),
            )
        };
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: the structure is ours; files that are none are refused.
        if unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, timer, &raw mut event) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { epoll, timer })
    }

    fn wait(&self, until: Option<u64>) {
        let until_ns = until.unwrap_or(u64::MAX >> 1);
        let sleeps = until_ns > Split::now_ns();
        // SAFETY: numbers all of it, of which 0 is one.
        let mut spec: libc::itimerspec = unsafe { mem::zeroed() };
        spec.it_value.tv_sec = (until_ns / 1_000_000_000) as i64;
        spec.it_value.tv_nsec = (until_ns % 1_000_000_000) as i64;
        let (absolute, none) = (libc::TFD_TIMER_ABSTIME, std::ptr::null_mut());
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the structures are ours, and the files.
        unsafe {
            if sleeps {
                libc::timerfd_settime(self.timer, absolute, &raw const spec, none);
            }
            libc::epoll_wait(self.epoll, &raw mut event, 1, if sleeps { -1 } else { 0 });
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: ours, and no thread uses them any more.
        unsafe {
            libc::close(self.timer);
            libc::close(self.epoll);
        }
    }
}
