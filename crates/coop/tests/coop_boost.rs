//! Tests of the booster on this system: when a thread is raised and lowered, and the time that it
//! gives back. If real-time priorities are refused, each test prints that and is skipped.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use antiphon_coop::event_loop::{Event, Loop, Step};
use antiphon_coop::{
    Alone, Ask, BoostOptions, Booster, Clock, Cooperate, Demotion, Options, Switched,
};
use antiphon_linux::schedule::{self, Policy};
use antiphon_linux::{Linux, allowed, pin};
use antiphon_platform::{Clocks as _, Platform, ThreadId};

const MS: u64 = 1_000_000;
const ME: ThreadId = ThreadId(0);

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}

fn booster(options: BoostOptions) -> Option<Booster> {
    Booster::start(options).inspect_err(|refused| eprintln!("skipped: {refused}")).ok()
}

fn policy(thread: ThreadId) -> Option<Policy> {
    schedule::class(thread).ok().map(|class| class.policy)
}

/// Runs until that time, whatever other work there is.
fn run_until(at_ns: u64) {
    while now() < at_ns {
        std::hint::spin_loop();
    }
}

/// Runs while the condition holds, for at most 20 s.
fn run_while(mut holds: impl FnMut() -> bool) {
    let until = now() + 20_000 * MS;
    while holds() {
        assert!(now() < until, "nothing happens");
        std::hint::spin_loop();
    }
}

/// Runs until the caller has a real-time priority; returns it.
fn raised_to() -> i32 {
    let mut param = libc::sched_param { sched_priority: 0 };
    run_while(|| {
        // SAFETY: it writes only to that parameter.
        assert_eq!(unsafe { libc::sched_getparam(0, &raw mut param) }, 0);
        param.sched_priority == 0
    });
    param.sched_priority
}

fn poll(tier: &mut impl Cooperate, release_ns: Option<u64>) {
    let ask = Ask { release_ns, importance: Some(0) };
    tier.poll(ask, &mut |until| {
        if let Some(left) = until.and_then(|at| at.checked_sub(now())) {
            thread::sleep(Duration::from_nanos(left));
        }
    });
}

#[test]
fn a_loop_is_raised_while_its_timer_is_overdue_and_only_then() {
    // A slack that does not run out in this test.
    let options = Options { slack_ns: 10_000 * MS, ..Options::default() };
    let Some(booster) = booster(BoostOptions { options, ..BoostOptions::default() }) else {
        return;
    };
    let seen = thread::spawn(move || {
        let mut tier = booster.boost(Alone);
        let cpus = allowed();
        for round in 0..50 {
            // The thread also migrates.
            pin(cpus[round % cpus.len()]).expect("it may run there");
            let release = now() + MS;
            poll(&mut tier, Some(release));
            run_while(|| policy(ME) == Some(Policy::Other));
            assert_eq!(policy(ME), Some(Policy::Fifo));
            assert!(now() >= release, "its timer is not due yet");
            // The loop has dispatched its timer.
            poll(&mut tier, None);
            run_while(|| policy(ME) == Some(Policy::Fifo));
        }
        let counts = tier.counts();
        drop(tier);
        (counts, policy(ME))
    });
    let (counts, after) = seen.join().expect("the loop has failed");
    assert_eq!((counts.raises, counts.demotions, counts.refusals), (50, [0; 3], 0));
    assert_eq!(after, Some(Policy::Other));
}

#[test]
fn loops_for_which_there_is_no_seat_are_counted() {
    let options = BoostOptions { loops: 1, ..BoostOptions::default() };
    let Some(booster) = booster(options) else { return };
    let mut tiers = [(); 2].map(|()| booster.boost(Alone));
    for tier in &mut tiers {
        poll(tier, Some(now()));
    }
    assert_eq!(booster.stats().unseated, 1);
    drop(tiers);
    poll(&mut booster.boost(Alone), Some(now()));
    assert_eq!(booster.stats().unseated, 1);
}

#[test]
fn a_hog_is_lowered_after_the_slack_and_helped_less_and_less_until_it_polls() {
    let Some(booster) = booster(BoostOptions::default()) else { return };
    thread::spawn(move || {
        let mut tier = booster.boost(Alone);
        for _ in 0..3 {
            let (before, began) = (tier.counts(), now());
            poll(&mut tier, Some(began + MS));
            let overrun = Demotion::Overrun as usize;
            run_while(|| tier.counts().demotions[overrun] == before.demotions[overrun]);
            run_while(|| policy(ME) == Some(Policy::Fifo));
            run_until(now() + 50 * MS);
            let counts = tier.counts();
            // BOOST-6: the periods without a boost in between.
            let pauses = (1_u64 << (counts.raises - before.raises - 1)) - 1;
            assert!(pauses * MS / 4 <= now() - began, "{before:?} {counts:?}");
        }
        // A thread that had not been lowered would have borrowed the whole time.
        assert!(tier.counts().borrowed_ns < 75 * MS, "{:?}", tier.counts());
    })
    .join()
    .expect("the loop has failed");
}

/// BOOST-6; there is no priority below the lowest.
#[test]
fn who_is_raised_again_is_behind_others_until_it_polls() {
    for (priority, behind) in [(1, 1), (2, 1), (4, 3)] {
        let options = BoostOptions { priority, ..BoostOptions::default() };
        let Some(booster) = booster(options) else { return };
        thread::spawn(move || {
            let mut tier = booster.boost(Alone);
            poll(&mut tier, Some(now()));
            assert_eq!(raised_to(), i32::from(priority));
            let overrun = Demotion::Overrun as usize;
            run_while(|| tier.counts().demotions[overrun] == 0);
            assert_eq!(raised_to(), behind);
            poll(&mut tier, Some(now()));
            run_while(|| raised_to() != i32::from(priority));
            assert_eq!(tier.counts().refusals, 0);
        })
        .join()
        .expect("the loop has failed");
    }
}

#[test]
fn who_sleeps_beyond_its_release_is_lowered_for_a_while() {
    let Some(booster) = booster(BoostOptions::default()) else { return };
    let (tell, told) = mpsc::channel();
    let wakes = booster.clone();
    let sleeper = thread::spawn(move || {
        let mut tier = wakes.boost(Alone);
        poll(&mut tier, Some(now()));
        tell.send(Linux::thread()).expect("somebody waits for it");
        thread::park();
        tier.counts()
    });
    let thread = told.recv().expect("it says so");
    let slept = || booster.stats().counts.demotions[Demotion::Slept as usize];
    run_while(|| slept() == 0);
    run_while(|| policy(thread) == Some(Policy::Fifo));
    // After a pause the thread is raised again (BOOST-6).
    run_while(|| booster.stats().counts.raises < 2);
    sleeper.thread().unpark();
    let counts = sleeper.join().expect("the loop has failed");
    assert!(counts.demotions[Demotion::Slept as usize] >= 1, "{counts:?}");
    assert!(counts.borrowed_ns < 10 * MS, "{counts:?}");
}

#[test]
fn threads_that_leave_or_end_while_they_are_raised_leave_nothing_behind() {
    let Some(booster) = booster(BoostOptions::default()) else { return };
    for round in 0..200 {
        let booster = booster.clone();
        thread::spawn(move || {
            let mut tier = booster.boost(Alone);
            poll(&mut tier, Some(now() + 200_000));
            run_until(now() + 150_000 + 1000 * round);
            if round % 4 == 0 {
                // The thread ends without leaving its place.
                std::mem::forget(tier);
                return;
            }
            drop(tier);
            for _ in 0..10 {
                assert_eq!(policy(ME), Some(Policy::Other));
            }
        })
        .join()
        .expect("the loop has failed");
    }
}

#[test]
fn a_switch_is_thrown_while_the_loop_runs() {
    if booster(BoostOptions::default()).is_none() {
        return;
    }
    let (mut tier, switch) = Switched::new(Alone);
    let (polls, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let looper = scope.spawn(|| {
            let mut boosted = [0_u32; 2];
            while !stop.load(Acquire) {
                poll(&mut tier, Some(now() + MS / 4));
                boosted[usize::from(tier.boosted())] += 1;
                assert!(tier.boosted() || policy(ME) == Some(Policy::Other));
                polls.fetch_add(1, Release);
                run_until(now() + MS / 2);
            }
            (boosted, tier.counts())
        });
        let go_on = || {
            let seen = polls.load(Acquire);
            run_while(|| {
                thread::yield_now();
                polls.load(Acquire) < seen + 5
            });
        };
        for _ in 0..20 {
            switch.boost(BoostOptions::default()).expect("it was possible before");
            go_on();
            switch.plain();
            go_on();
        }
        stop.store(true, Release);
        let (boosted, counts) = looper.join().expect("the loop has failed");
        assert!(boosted[0] >= 40 && boosted[1] >= 40, "{boosted:?}");
        assert_eq!(counts.raises, 0, "it is plain");
    });
}

/// An event loop that always has work, beside hogs of its CPU: it tells its booster whenever its
/// next timer changes, and is raised only for late timers.
#[test]
fn a_busy_event_loop_is_raised_for_its_timers() {
    let Some(booster) = booster(BoostOptions::default()) else { return };
    let Some(&cpu) = allowed().last() else { return };
    let stop = AtomicBool::new(false);
    let (timers, counts) = thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                pin(cpu).expect("it may run there");
                while !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let looper = scope.spawn(|| {
            pin(cpu).expect("as above");
            let mut events = Loop::new().expect("files");
            events.cooperate_by(Box::new(booster.boost(Alone)));
            events.submit(Event::best_effort_in_steps(0, |context| {
                while !context.is_over() {
                    std::hint::spin_loop();
                }
                Step::More(0)
            }));
            let mut timers = 0;
            let (tell, told) = mpsc::channel();
            events.submit(Event::timer_in_steps(now() + 20 * MS, move |context| {
                timers += 1;
                if timers == 50 {
                    tell.send(timers).expect("somebody waits for it");
                    context.stop();
                    return Step::Done;
                }
                Step::At(context.release_ns().expect("it is a timer") + 20 * MS)
            }));
            let _ = events.run();
            stop.store(true, Relaxed);
            told.recv().expect("the timer was called")
        });
        let timers = looper.join().expect("the loop has failed");
        (timers, booster.stats().counts)
    });
    assert_eq!(timers, 50);
    // Under the kernel's scheduler alone, the loop is late by some turns of the hogs nearly every
    // time. If it was lowered because it was kept waiting, it is raised again.
    let dispatched = counts.raises - counts.demotions.iter().sum::<u64>();
    assert!((25..=75).contains(&dispatched), "{counts:?}");
}

/// The part of the next test that is stopped: while it is late, it prints that.
#[test]
fn is_stopped_in_a_process_of_its_own() {
    if std::env::var_os("STOPPED_BY_A_TEST").is_none() {
        return;
    }
    let Some(booster) = booster(BoostOptions::default()) else {
        println!("refused");
        return;
    };
    thread::spawn(move || {
        let mut tier = booster.boost(Alone);
        for round in 0.. {
            poll(&mut tier, Some(now() + MS / 4));
            if round == 100 {
                println!("runs");
            }
            let began = now();
            run_until(began + MS / 2);
            // The program was stopped: the helper runs first.
            if now() > began + 100 * MS {
                run_while(|| policy(ME) == Some(Policy::Fifo));
                poll(&mut tier, None);
                run_while(|| policy(ME) == Some(Policy::Fifo));
                drop(tier);
                println!("went on");
                return;
            }
        }
    })
    .join()
    .expect("the loop has failed");
}

#[test]
fn a_process_that_is_stopped_and_goes_on_has_nobody_raised_for_long() {
    let this = std::env::current_exe().expect("it is known");
    let mut child = Command::new(this)
        .args(["--exact", "is_stopped_in_a_process_of_its_own", "--nocapture"])
        .env("STOPPED_BY_A_TEST", "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let number = child.id() as i32;
    let mut said = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || said.by_ref().map_while(Result::ok).find(|line| !line.is_empty());
    while let Some(line) = next() {
        if line.contains("refused") {
            assert!(child.wait().expect("it ends").success());
            return;
        }
        if line.contains("runs") {
            break;
        }
    }
    let send = |signal| {
        // SAFETY: sent to a child that was not waited for yet.
        assert_eq!(unsafe { libc::kill(number, signal) }, 0);
    };
    // More than once, because it may be stopped while it polls.
    while child.try_wait().expect("it is ours").is_none() {
        send(libc::SIGSTOP);
        thread::sleep(Duration::from_millis(200));
        send(libc::SIGCONT);
        thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().expect("it ends").success());
    let mut went_on = false;
    while let Some(line) = next() {
        went_on |= line.contains("went on");
    }
    assert!(went_on);
}

#[test]
fn the_child_of_a_fork_shares_time_and_is_not_helped() {
    let options = Options { slack_ns: 10_000 * MS, ..Options::default() };
    let Some(booster) = booster(BoostOptions { options, ..BoostOptions::default() }) else {
        return;
    };
    thread::spawn(move || {
        let mut tier = booster.boost(Alone);
        poll(&mut tier, Some(now()));
        run_while(|| policy(ME) == Some(Policy::Other));
        // SAFETY: the child only makes system calls, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let ordinary = policy(ME) == Some(Policy::Other);
            poll(&mut tier, Some(now()));
            run_until(now() + 2 * MS);
            let after = policy(ME) == Some(Policy::Other);
            drop(tier);
            drop(booster);
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(ordinary && after)) };
        }
        let mut status = 0;
        // SAFETY: the word is ours.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 1, "the child is in SCHED_FIFO");
    })
    .join()
    .expect("the loop has failed");
}

/// A loop and three hogs on one CPU: the loop is late at each of its timers, but gets no more than
/// a fourth of the CPU. Without giving time back it would get far more, because nothing polices it.
#[test]
fn what_was_borrowed_is_given_back() {
    let options = Options { threshold_ns: u64::MAX, ..Options::default() };
    let Some(booster) = booster(BoostOptions { options, ..BoostOptions::default() }) else {
        return;
    };
    let Some(&cpu) = allowed().last() else { return };
    let stop = AtomicBool::new(false);
    let (counts, own, hogs) = thread::scope(|scope| {
        let hogs: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    pin(cpu).expect("it may run there");
                    while !stop.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                    schedule::own_cpu_ns()
                })
            })
            .collect();
        let looper = scope.spawn(|| {
            pin(cpu).expect("as above");
            let mut tier = booster.boost(Alone);
            let (began, before) = (now(), schedule::own_cpu_ns());
            let mut release = began + 2 * MS;
            while now() < began + 4000 * MS {
                while release <= now() {
                    release += 2 * MS;
                }
                poll(&mut tier, Some(release));
                // The pieces of work are long: each timer is late, and much is borrowed.
                if now() < release {
                    let until = schedule::own_cpu_ns() + MS / 2;
                    while schedule::own_cpu_ns() < until {}
                }
            }
            stop.store(true, Relaxed);
            (tier.counts(), schedule::own_cpu_ns() - before)
        });
        let (counts, own) = looper.join().expect("the loop has failed");
        let hogs = hogs.into_iter().map(|hog| hog.join().expect("a hog has failed")).sum::<u64>();
        (counts, own, hogs)
    });
    if schedule::times().is_none() {
        eprintln!("skipped: the kernel does not say how long threads wait");
        return;
    }
    let share = own as f64 / (own + hogs) as f64;
    eprintln!("a share of {share:.3}; {counts:?}");
    assert!(counts.borrowed_ns > own / 10, "{counts:?}");
    assert!((0.15..0.36).contains(&share), "{share}: {counts:?}");
}
