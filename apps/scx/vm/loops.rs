//! Event loops of `antiphon-coop` under the scheduler: they find it by themselves.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{scope, spawn};
use std::time::{Duration, Instant};

use crate::start::Failure;
use antiphon_coop::event_loop::{Context, Event, Histogram, Loop, Step};
use antiphon_coop::{Alone, Group, Scheduled, Scope, Served, Tier, available};
use antiphon_hints::now_ns;

use crate::client;
use crate::life::{forgets, wait_for};
use crate::policy::FAIR;
use crate::scheduler::{PATIENCE, Scheduler, under};
use crate::thread::{become_of, hog, jain, own_cpu_ns, stop_after, work};

/// How long they run.
pub const TIME: Duration = Duration::from_secs(3);

/// How late the timers of all loops were, and how evenly the CPU was shared.
struct Seen {
    timers: u64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    jain: f64,
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { timers, p50_us, p99_us, max_us, jain } = self;
        write!(
            f,
            "{timers} timers: p50 {p50_us} p99 {p99_us} max {max_us} us late, Jain's {jain:.4}"
        )
    }
}

/// Four loops with a frame each 17 ms and more work than there is time for, and two threads that
/// always want the CPU: the same program with and without the scheduler.
pub fn loops() -> Result<String, Failure> {
    let alone = beside_hogs(false)?;
    println!("figure loops without a scheduler: {alone}");
    let (ours, demoted) = under(&["full"], |scheduler| {
        let seen = beside_hogs(true)?;
        let count = |why| scheduler.count(why);
        let (overrun, slept) = (count("demoted_overrun")?, count("demoted_slept")?);
        Ok((seen, format!("{overrun} overrun, {slept} slept, {} share", count("demoted_share")?)))
    })?;
    println!("figure loops under antiphon: {ours}; demoted: {demoted}");
    let told =
        format!("p99 {} us of {} us, Jain's index {:.4}", ours.p99_us, alone.p99_us, ours.jain);
    let is_timely = ours.p99_us * 10 <= alone.p99_us * 3;
    if is_timely && ours.jain >= 0.98 { Ok(told) } else { Err(told.into()) }
}

fn beside_hogs(is_served: bool) -> Result<Seen, Failure> {
    const PERIODS: [u64; 4] = [16_600_000, 16_730_000, 16_860_000, 16_990_000];
    let stop = &AtomicBool::new(false);
    scope(|threads| {
        let loops = PERIODS.map(|period_ns| {
            threads.spawn(move || {
                play(period_ns, None, is_served, |context| {
                    while !context.is_over() {
                        work(20_000);
                    }
                    1
                })
            })
        });
        let hogs: [_; 2] =
            std::array::from_fn(|_| threads.spawn(|| become_of(FAIR).map(|()| hog(stop))));
        stop_after(TIME, stop);
        let panicked = "a thread panicked";
        let (mut late, mut ran) = (Histogram::default(), Vec::new());
        for one in loops {
            let (of_one, cpu_ns) = one.join().map_err(|_| panicked)??;
            late.merge(&of_one);
            ran.push(cpu_ns);
        }
        for one in hogs {
            ran.push(one.join().map_err(|_| panicked)??);
        }
        let us = |of| late.percentile_ns(of) / 1_000;
        let (p50_us, p99_us) = (us(50_000), us(99_000));
        Ok(Seen {
            timers: late.count(),
            p50_us,
            p99_us,
            max_us: late.max_ns() / 1_000,
            jain: jain(&ran),
        })
    })
}

/// A loop that knows nothing of schedulers: its timer has a frame each period, and it has other
/// work without an end, which `goes_on` does for a turn; that returns the importance of what is
/// left. In `group` it shares that group's part of the CPU. Returns how late its frames were, and
/// its CPU time.
pub fn play(
    period_ns: u64,
    group: Option<u32>,
    is_served: bool,
    mut goes_on: impl FnMut(&mut Context<'_>) -> u64 + 'static,
) -> std::io::Result<(Histogram, u64)> {
    become_of(FAIR)?;
    let mut events = Loop::new()?;
    if let Some(number) = group {
        events.cooperate_by(Box::new(Scheduled::over(Alone).sharing(Group::Number(number))));
    }
    let served = events.waits().served();
    let begun_ns = now_ns();
    let (under, mut counts) = (served.clone(), false);
    events.submit(
        Event::timer_in_steps(begun_ns + period_ns, move |context| {
            work(100_000);
            if !counts && under.is_served() == is_served {
                // It takes two polls and the scheduler's program to be served.
                counts = true;
                context.reset_stats();
            }
            let at = context.release_ns().unwrap_or(begun_ns) + period_ns;
            if at < begun_ns + TIME.as_nanos() as u64 {
                return Step::At(at);
            }
            context.stop();
            Step::Done
        })
        .named("frame"),
    );
    events.submit(Event::best_effort_in_steps(1, move |context| Step::More(goes_on(context))));
    let before = own_cpu_ns();
    let _ = events.run();
    let ran_ns = own_cpu_ns() - before;
    let is = served.is_served();
    let frame = events.stats().iter().find(|one| one.name.to_string() == "frame");
    match frame {
        Some(frame) if is == is_served => Ok((frame.tardiness.clone(), ran_ns)),
        _ => Err(std::io::Error::other(format!("a loop is under the scheduler: {is}"))),
    }
}

/// Two loops that share a group's part of the CPU, and a thread that always wants it: the part goes
/// to the loop whose work is more important.
pub fn group() -> Result<String, Failure> {
    const IMPORTANCE: [u64; 2] = [1, 1_000_000];
    let ran = under(&["full"], |_| {
        let stop = Arc::<AtomicBool>::default();
        scope(|threads| {
            let loops = IMPORTANCE.map(|importance| {
                let stop = stop.clone();
                threads.spawn(move || member(importance, stop))
            });
            let hog = threads.spawn(|| become_of(FAIR).map(|()| hog(&stop)));
            stop_after(TIME, &stop);
            let all = loops.into_iter().chain([hog]);
            all.map(|one| Ok(one.join().map_err(|_| "a thread panicked")??)).collect()
        })
    });
    let ran: Vec<u64> = ran?;
    let all: u64 = ran.iter().sum();
    let [first, second, other] = [0, 1, 2].map(|one| ran[one] as f64 / all as f64);
    let told = format!("loops {first:.3} and {second:.3}, the other thread {other:.3}");
    if first > 0.6 && other > 0.3 { Ok(told) } else { Err(told.into()) }
}

/// A loop of a group, with work of this importance and without an end. Returns its CPU time.
fn member(importance: u64, stop: Arc<AtomicBool>) -> std::io::Result<u64> {
    become_of(FAIR)?;
    let mut events = Loop::new()?;
    events.cooperate_by(Box::new(Scheduled::over(Alone).sharing(Group::Number(7))));
    events.submit(Event::best_effort_in_steps(importance, move |_| {
        work(300_000);
        // Relaxed: the flag says nothing about other memory.
        if stop.load(Ordering::Relaxed) { Step::Done } else { Step::More(importance) }
    }));
    let before = own_cpu_ns();
    let _ = events.run();
    Ok(own_cpu_ns() - before)
}

/// A process of a user: what there is, and a loop that is under the scheduler at once.
pub fn client() -> Result<(), Failure> {
    let here = available();
    if (here.scope(), here.best(false)) != (Ok(Scope::All), Tier::Kernel) {
        return Err(format!("T0 is not the best tier here:\n{here}").into());
    }
    let mut events = Loop::new()?;
    let (served, begin) = (events.waits().served(), Instant::now());
    events.submit(Event::timer_in_steps(now_ns(), move |context| {
        if served.is_served() || begin.elapsed() > PATIENCE {
            context.stop();
        }
        Step::At(now_ns() + 2_000_000)
    }));
    let _ = events.run();
    if events.waits().served().is_served() { Ok(()) } else { Err("a loop is not served".into()) }
}

/// A user's loop is served, and so is one whose scheduler is killed, and comes back.
pub fn life() -> Result<String, Failure> {
    under(&["full"], |scheduler| {
        let status = client::start("loop")?.wait()?;
        if status.success() { forgets(scheduler) } else { Err(format!("{status}").into()) }
    })?;
    let (stop, steps) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let (send, receive) = mpsc::channel();
    let mut scheduler = Some(Scheduler::start(&["full"])?);
    let thread = spawn({
        let (stop, steps) = (stop.clone(), steps.clone());
        move || busy(&stop, &steps, &send)
    });
    let served = receive.recv().map_err(|_| "the loop has not begun")?;
    let mut done = || -> Result<String, Failure> {
        let (mut fell_ms, mut back_ms) = (Vec::new(), Vec::new());
        wait_for(|| served.is_served(), "the loop is not served")?;
        while let Some(former) = scheduler.take() {
            let killed_ns = now_ns();
            former.kill()?;
            wait_for(|| !served.is_served(), "the loop did not notice")?;
            fell_ms.push(now_ns().saturating_sub(killed_ns) / 1_000_000);
            let before = steps.load(Ordering::Relaxed);
            wait_for(|| steps.load(Ordering::Relaxed) > before + 10, "the loop stopped")?;
            let next = Scheduler::start(&["full"])?;
            let started_ns = now_ns();
            wait_for(|| served.is_served(), "the loop has not come back")?;
            back_ms.push(now_ns().saturating_sub(started_ns) / 1_000_000);
            if back_ms.len() < 3 {
                scheduler = Some(next);
            } else {
                next.stop()?;
            }
        }
        Ok(format!("falls back after {fell_ms:?} ms, is back after {back_ms:?} ms"))
    };
    let told = done();
    // Relaxed: the flag says nothing about other memory.
    stop.store(true, Ordering::Relaxed);
    thread.join().map_err(|_| "a thread panicked")??;
    told
}

/// A loop with work and without an end, until the flag is set.
fn busy(
    stop: &Arc<AtomicBool>,
    steps: &Arc<AtomicU64>,
    tell: &mpsc::Sender<Served>,
) -> std::io::Result<()> {
    become_of(FAIR)?;
    let mut events = Loop::new()?;
    // The receiver waits for it.
    let _ = tell.send(events.waits().served());
    let (stop, steps) = (stop.clone(), steps.clone());
    events.submit(Event::best_effort_in_steps(1, move |context| {
        while !context.is_over() {
            work(20_000);
        }
        // Relaxed, both: numbers that say nothing about other memory.
        steps.fetch_add(1, Ordering::Relaxed);
        if stop.load(Ordering::Relaxed) { Step::Done } else { Step::More(1) }
    }));
    let _ = events.run();
    Ok(())
}
