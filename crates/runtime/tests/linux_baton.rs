//! Tests of the baton among threads of one process, which stand for processes: order, shares, and
//! memory with arbitrary content.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::{Linux, account, cpu_time_ns};
use antiphon_platform::{Clock, Clocks as _, Platform, ThreadId};
use antiphon_runtime::coop::{
    Accounts, Ask, Baton, Cooperate, Demotion, Doing, Group, NoSeat, Options, PLACES, Page, Seen,
    WEIGHT,
};

struct System;

impl Accounts for System {
    fn own_ns(&mut self) -> u64 {
        cpu_time_ns()
    }

    fn of(&mut self, thread: ThreadId) -> Seen {
        let told = account(thread);
        let doing = match told.runs {
            Some(true) => Doing::Runs,
            Some(false) => Doing::Sleeps,
            None => Doing::Unknown,
        };
        Seen { ran_ns: told.ran_ns, doing }
    }
}

/// Time limit of a wait for an event that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

type Member<'a> = Baton<Linux, &'a Page<Linux>, System>;

fn page() -> Box<Page<Linux>> {
    let page = Box::new(Page::NEW);
    page.header.set_options(&Options::default());
    page
}

fn join(page: &Page<Linux>) -> Member<'_> {
    Baton::join(page, System, Group::Own, WEIGHT).expect("a place")
}

fn now_ns() -> u64 {
    Linux::now(Clock::Monotonic)
}

/// Sleeps like an event loop.
fn wait(until_ns: Option<u64>) {
    if let Some(ns) = until_ns {
        thread::sleep(Duration::from_nanos(ns.saturating_sub(now_ns())));
    }
}

/// Computes for `ns` nanoseconds.
fn spin(ns: u64) {
    let end = cpu_time_ns() + ns;
    while cpu_time_ns() < end {}
}

/// A player that decodes all the time and shows `frames` frames, one every 10 ms. Returns how late
/// they were.
fn play(member: &mut Member<'_>, frames: u64) -> Vec<u64> {
    let mut release = now_ns() + 10_000_000;
    let (mut late, mut done) = (Vec::new(), 0);
    while (late.len() as u64) < frames {
        while release <= now_ns() {
            late.push(now_ns() - release);
            release += 10_000_000;
        }
        spin(200_000);
        done += 1;
        member.poll(Ask { release_ns: Some(release), importance: Some(done) }, &mut wait);
    }
    late
}

#[test]
fn a_thread_alone_goes_on() {
    let page = page();
    let mut member = join(&page);
    for i in 0..1000 {
        let answer = member.poll(Ask { release_ns: None, importance: Some(i) }, &mut |_| ());
        assert_eq!((answer.release_ns, answer.importance), (None, None));
        assert!(answer.poll_at_ns.is_some());
    }
    let place = member.place();
    drop(member);
    assert_eq!(page.thread(place), None);
    assert!(page.turns() > 0);
}

#[test]
fn players_on_one_cpu_share_it_and_are_called_in_turn() {
    let page = page();
    let running = AtomicU32::new(0);
    let cpu = antiphon_linux::allowed()[0];
    let had: Vec<u64> = thread::scope(|scope| {
        let players: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    antiphon_linux::pin(cpu).expect("it was allowed");
                    let mut member = join(&page);
                    // All are members before any begins to count.
                    running.fetch_add(1, Relaxed);
                    while running.load(Relaxed) < 4 {
                        member.poll(Ask { release_ns: None, importance: Some(0) }, &mut wait);
                    }
                    let before = cpu_time_ns();
                    let end = Instant::now() + Duration::from_millis(800);
                    while Instant::now() < end {
                        play(&mut member, 4);
                    }
                    cpu_time_ns() - before
                })
            })
            .collect();
        players.into_iter().map(|player| player.join().expect("it ends")).collect()
    });
    let (sum, squares) = had
        .iter()
        .fold((0.0, 0.0), |(sum, squares), &ns| (sum + ns as f64, squares + (ns as f64).powi(2)));
    let jain = sum * sum / (4.0 * squares);
    assert!(jain >= 0.9, "Jain {jain} of {had:?}");
}

#[test]
fn who_waits_in_its_own_way_is_back_when_it_is_due() {
    let (page, stop) = (page(), AtomicBool::new(false));
    thread::scope(|scope| {
        let (page, stop) = (&page, &stop);
        scope.spawn(move || {
            let mut hog = join(page);
            while !stop.load(Relaxed) {
                spin(200_000);
                hog.poll(Ask { release_ns: None, importance: Some(0) }, &mut wait);
            }
        });
        scope.spawn(move || {
            let mut member = join(page);
            for _ in 0..50 {
                let release = now_ns() + 2_000_000;
                member.poll(Ask { release_ns: Some(release), importance: None }, &mut wait);
                assert!(now_ns() >= release);
            }
            stop.store(true, Relaxed);
        });
    });
}

#[test]
fn who_keeps_the_baton_loses_it() {
    loses_it(Demotion::Slept, || thread::sleep(Duration::from_millis(20)));
    loses_it(Demotion::Overrun, || spin(20_000_000));
}

/// A member that does `how` with the baton is demoted for the reason `why`, and continues; another
/// that is due runs meanwhile.
fn loses_it(why: Demotion, how: fn()) {
    let page = page();
    let cpu = antiphon_linux::allowed()[0];
    let there = AtomicBool::new(false);
    thread::scope(|scope| {
        let (page, there) = (&page, &there);
        let holder = scope.spawn(move || {
            antiphon_linux::pin(cpu).expect("it was allowed");
            let mut member = join(page);
            let ask = Ask { release_ns: None, importance: Some(0) };
            let end = Instant::now() + PATIENCE;
            while page.demotions(member.place(), why) == 0 {
                assert!(Instant::now() < end, "it is never demoted: {why:?}");
                member.poll(ask, &mut wait);
                there.store(true, Relaxed);
                how();
            }
            (0..10).for_each(|_| _ = member.poll(ask, &mut wait));
        });
        while !there.load(Relaxed) {
            thread::yield_now();
        }
        scope.spawn(move || {
            antiphon_linux::pin(cpu).expect("it was allowed");
            let mut other = join(page);
            let mut importance = None;
            while !holder.is_finished() {
                let release_ns = importance.is_none().then(|| now_ns() + 1_000_000);
                other.poll(Ask { release_ns, importance }, &mut wait);
                importance = release_ns;
            }
            holder.join().expect("it gets on");
        });
    });
}

/// A system that reports that threads have never had CPU time.
struct Liar;

impl Accounts for Liar {
    fn own_ns(&mut self) -> u64 {
        0
    }

    fn of(&mut self, thread: ThreadId) -> Seen {
        System.of(thread)
    }
}

/// BATON-6: if the kernel keeps an account, a thread's own report is checked against it.
#[test]
fn who_lies_about_its_time_is_charged_by_the_others() {
    // The kernel has no figures yet for a thread that has just begun.
    spin(30_000_000);
    if account(Linux::thread()).ran_ns.is_none() {
        return println!("skipped: the kernel keeps no account of threads");
    }
    let page = page();
    let cpu = antiphon_linux::allowed()[0];
    let there = AtomicU32::new(0);
    fn work<A: Accounts>(
        mut member: Baton<Linux, &Page<Linux>, A>,
        there: &AtomicU32,
        until: Duration,
    ) -> u64 {
        there.fetch_add(1, Relaxed);
        let ask = Ask { release_ns: None, importance: Some(0) };
        while there.load(Relaxed) < 3 {
            member.poll(ask, &mut wait);
        }
        let (before, end) = (cpu_time_ns(), Instant::now() + until);
        while Instant::now() < end {
            spin(200_000);
            member.poll(ask, &mut wait);
        }
        cpu_time_ns() - before
    }
    let until = Duration::from_secs(2);
    let had = thread::scope(|scope| {
        let (page, there) = (&*page, &there);
        let honest = || {
            antiphon_linux::pin(cpu).expect("it was allowed");
            work(join(page), there, until)
        };
        let one = scope.spawn(honest);
        let other = scope.spawn(honest);
        let liar = scope.spawn(move || {
            antiphon_linux::pin(cpu).expect("it was allowed");
            let member = Baton::<Linux, _, _>::join(page, Liar, Group::Own, WEIGHT);
            work(member.expect("a place"), there, until)
        });
        [one, other, liar].map(|thread| thread.join().expect("it ends"))
    });
    let [one, other, liar] = had;
    println!("{liar} ns, and the others {one} and {other}");
    assert!(liar < one.min(other) * 2, "the liar had {liar} ns, the others {one} and {other}");
}

#[test]
fn a_page_is_full_until_somebody_leaves_or_ends() {
    let (page, stop, there) = (page(), AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let (page, stop, there) = (&page, &stop, &there);
        for i in 0..PLACES {
            scope.spawn(move || {
                let member = join(page);
                there.fetch_add(1, Relaxed);
                while !stop.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                // The first member ends without leaving.
                if i == 0 {
                    std::mem::forget(member);
                }
            });
            // One by one: if two are at the table at the same time, because the first was kept from
            // running, one may have to find another place when it polls (BATON-7).
            while there.load(Relaxed) as usize == i {
                thread::yield_now();
            }
        }
        let full = Baton::<Linux, _, _>::join(&**page, System, Group::Own, WEIGHT).err();
        stop.store(true, Relaxed);
        assert_eq!(full, Some(NoSeat::Full));
    });
    let taken = || (0..PLACES).filter(|&place| page.thread(place).is_some()).count();
    // The kernel removes a thread a moment after it was joined.
    let mut joined = 0;
    while page.died() == 0 || taken() > 0 {
        drop(join(&page));
        joined += 1;
        assert!(joined < 10_000, "{} died, {} places are taken", page.died(), taken());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the words of a page and whether they have 32 bits; all others have 64.
fn words() -> Vec<(usize, bool)> {
    let mut words = Vec::new();
    let mut at = 0;
    while at < size_of::<Page<Linux>>() {
        let in_line = (128..128 + 64 * PLACES).contains(&at);
        let short = match at {
            8 | 12 | 72 | 76 => true,
            _ if in_line => [0, 4, 56, 60].contains(&(at % 64)),
            _ if at >= 128 => at % 32 >= 8,
            _ => false,
        };
        words.push((at, short));
        at += if short { 4 } else { 8 };
    }
    words
}

fn scribble(page: &Page<Linux>, (at, short): (usize, bool), value: u64) {
    let word = std::ptr::from_ref(page).cast_mut().cast::<u8>();
    // SAFETY: within the page, at the beginning of an atomic word of that size.
    unsafe {
        let word = word.add(at);
        if short {
            AtomicU32::from_ptr(word.cast()).store(value as u32, Relaxed);
        } else {
            AtomicU64::from_ptr(word.cast()).store(value, Relaxed);
        }
    }
}

fn lots(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let low = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        // Small numbers, and those near the current values, do the most harm.
        match low % 4 {
            0 => low >> 58,
            1 => now_ns().wrapping_add(low >> 40),
            _ => low,
        }
    }
}

#[test]
fn members_get_on_whatever_stands_in_the_page() {
    let words = words();
    for seed in 1..40 {
        let mut lot = lots(seed * 7919);
        let page = page();
        words.iter().for_each(|&word| scribble(&page, word, lot()));
        let told = page.header.options();
        assert!(told.slack_ns <= 100_000_000 && told.period_ns <= 1_000_000_000, "{told}");
        page.header.set_options(&Options::default());
        thread::scope(|scope| {
            for _ in 0..2 {
                let page = &page;
                scope.spawn(move || {
                    let Ok(mut member) = Baton::join(&**page, System, Group::Number(1), 0) else {
                        return;
                    };
                    (0..20).for_each(|i| chunk(&mut member, i));
                });
            }
        });
    }
}

#[test]
fn members_get_on_while_somebody_scribbles() {
    let page = page();
    let words = words();
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        let (page, done) = (&page, &done);
        for _ in 0..3 {
            scope.spawn(move || {
                let mut member = join(page);
                (0..300).for_each(|i| chunk(&mut member, i));
                drop(member);
                done.fetch_add(1, Relaxed);
            });
        }
        let mut lot = lots(4711);
        while done.load(Relaxed) < 3 {
            let word = words[(lot() >> 3) as usize % words.len()];
            scribble(page, word, lot());
            thread::sleep(Duration::from_micros(200));
        }
    });
}

/// Does a piece of work, and a poll of one of several kinds.
fn chunk(member: &mut Member<'_>, i: u64) {
    spin(20_000);
    let soon = now_ns() + 300_000;
    let ask = match i % 3 {
        0 => Ask { release_ns: Some(soon), importance: None },
        1 => Ask { release_ns: Some(soon), importance: Some(i) },
        _ => Ask { release_ns: None, importance: Some(i) },
    };
    member.poll(ask, &mut wait);
}
