//! CPUs that come and go, threads that may not run on all of them, and weights that change.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::scope;
use std::time::Duration;

use antiphon_hints::now_ns;
use antiphon_scx::loader::Failure;

use crate::life::{part_under, wait_for};
use crate::policy::EXT;
use crate::scheduler::under;
use crate::thread::{
    Policy, become_of, hog, hog_and_tell, own_cpu_ns, sleep_until, stay_on, stop_after, work,
};

const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";

/// How often a scheduler was loaded.
pub const LOADED: &str = "/sys/kernel/sched_ext/enable_seq";

/// The second CPU goes, and comes back: the scheduler stays, and all threads go on, also one that
/// was kept on that CPU.
pub fn hotplug() -> Result<String, Failure> {
    hotplug_under(&[])
}

/// The same where the kernel's own threads are scheduled, too.
pub fn hotplug_of_all() -> Result<String, Failure> {
    hotplug_under(&["full"])
}

fn hotplug_under(options: &[&str]) -> Result<String, Failure> {
    under(options, |scheduler| {
        let loaded = fs::read_to_string(LOADED)?;
        let stop = AtomicBool::new(false);
        let counts: [AtomicU64; 4] = Default::default();
        scope(|threads| {
            let all: Vec<_> = (counts.iter().enumerate())
                .map(|(id, count)| {
                    let stop = &stop;
                    threads.spawn(move || -> std::io::Result<()> {
                        if id == 0 {
                            stay_on(1)?;
                        }
                        become_of(EXT)?;
                        // Relaxed, both: numbers that say nothing about other memory.
                        while !stop.load(Ordering::Relaxed) {
                            count.store(own_cpu_ns(), Ordering::Relaxed);
                        }
                        Ok(())
                    })
                })
                .collect();
            let done = (|| -> Result<(), Failure> {
                let run = || counts.iter().all(|one| one.load(Ordering::Relaxed) != 0);
                wait_for(run, "a thread has not begun")?;
                for round in 0..3 {
                    for state in ["0", "1"] {
                        fs::write(SWITCH, state)?;
                        let before = counts.each_ref().map(|one| one.load(Ordering::Relaxed));
                        let goes_on = || {
                            let now = counts.each_ref().map(|one| one.load(Ordering::Relaxed));
                            before.iter().zip(now).all(|(before, now)| *before != now)
                        };
                        let what = format!("a thread stopped in round {round}, CPU 1 is {state}");
                        wait_for(goes_on, &what)?;
                    }
                }
                Ok(())
            })();
            stop.store(true, Ordering::Relaxed);
            for one in all {
                one.join().map_err(|_| "a thread panicked")??;
            }
            // Other cases want it.
            fs::write(SWITCH, "1")?;
            done
        })?;
        part_under("polite", scheduler)?;
        if fs::read_to_string(LOADED)? != loaded {
            return Err("the scheduler was loaded again".into());
        }
        Ok("3 times off and on: it stays, and 4 threads go on".to_owned())
    })
}

/// A thread that is preempted in a section, and may run on one CPU only; and one of the other CPU
/// that yields, but can't give its own.
pub fn pinned_holder() -> Result<String, Failure> {
    under(&["no-grace"], |scheduler| {
        let (hints, stop) = (&scheduler.connect()?, &AtomicBool::new(false));
        let stalled = scope(|threads| {
            let holder = threads.spawn(move || -> std::io::Result<u64> {
                stay_on(0)?;
                let thread = hints.register()?;
                thread.enter();
                Ok(hog(stop))
            });
            let rival =
                threads.spawn(move || stay_on(0).and_then(|()| become_of(EXT)).map(|()| hog(stop)));
            let yields = threads.spawn(move || -> std::io::Result<u64> {
                stay_on(1)?;
                let _thread = hints.register()?;
                let mut stalled = 0;
                // Relaxed, both: numbers that say nothing about other memory.
                while !stop.load(Ordering::Relaxed) {
                    stalled += u64::from(hints.page().header.stalled.load(Ordering::Relaxed));
                    std::thread::yield_now();
                }
                Ok(stalled)
            });
            stop_after(Duration::from_secs(1), stop);
            for one in [holder, rival] {
                one.join().map_err(|_| "a thread panicked")??;
            }
            Ok::<_, Failure>(yields.join().map_err(|_| "a thread panicked")??)
        })?;
        let told = format!("the one that yields saw a stalled one {stalled} times");
        if stalled > 0 { Ok(told) } else { Err(told.into()) }
    })
}

/// A thread of small weight that had a CPU for itself, and must share it then, is far ahead: it
/// waits for no more than some seconds.
pub fn far_ahead() -> Result<String, Failure> {
    under(&[], |_| {
        let (stop, ran) = (&AtomicBool::new(false), &AtomicU64::new(0));
        scope(|threads| {
            let start = |cpu: usize, nice: i32| {
                threads.spawn(move || -> std::io::Result<()> {
                    stay_on(cpu)?;
                    become_of(Policy::Ext { nice })?;
                    if nice == 0 {
                        hog(stop);
                    } else {
                        hog_and_tell(ran, stop);
                    }
                    Ok(())
                })
            };
            let mut all = vec![start(0, 0), start(1, 19)];
            std::thread::sleep(Duration::from_secs(1));
            all.push(start(1, 0));
            std::thread::sleep(Duration::from_secs(1));
            // Relaxed: a number that says nothing about other memory.
            let before = ran.load(Ordering::Relaxed);
            stop_after(Duration::from_secs(4), stop);
            let more_ms = (ran.load(Ordering::Relaxed) - before) / 1_000_000;
            for one in all {
                one.join().map_err(|_| "a thread panicked")??;
            }
            let told = format!("ran for {more_ms} ms in 4 s");
            if more_ms > 0 { Ok(told) } else { Err(told.into()) }
        })
    })
}

/// Two threads that must share a CPU, and one that has the other for itself.
pub fn affinity() -> Result<String, Failure> {
    const TIME: Duration = Duration::from_secs(2);
    let ran = under(&[], |_| {
        let stop = AtomicBool::new(false);
        scope(|threads| {
            let all = [0, 0, 1].map(|cpu| {
                let stop = &stop;
                threads
                    .spawn(move || stay_on(cpu).and_then(|()| become_of(EXT)).map(|()| hog(stop)))
            });
            stop_after(TIME, &stop);
            let ran = all.map(|one| one.join().map_err(|_| "a thread panicked"));
            ran.into_iter().map(|one| Ok(one??)).collect::<Result<Vec<_>, Failure>>()
        })
    })?;
    let share = |one: u64| one as f64 / TIME.as_nanos() as f64;
    let [first, second, alone] = [share(ran[0]), share(ran[1]), share(ran[2])];
    let told = format!("{first:.3} and {second:.3} of one CPU, {alone:.3} of the other");
    // The machine is emulated, and its host may take time away.
    let is_even = (first - second).abs() < 0.1 && alone > 1.4 * first.max(second);
    if is_even { Ok(told) } else { Err(told.into()) }
}

/// Two threads share a CPU evenly, though a thread of real time takes it away each millisecond: a
/// turn goes on afterwards, and does not begin anew.
pub fn beside_real_time() -> Result<String, Failure> {
    const TIME: Duration = Duration::from_secs(2);
    let ran = under(&[], |_| {
        let stop = AtomicBool::new(false);
        scope(|threads| {
            let (stop, begin_ns) = (&stop, now_ns());
            let often = threads.spawn(move || -> std::io::Result<()> {
                stay_on(1)?;
                become_of(Policy::Fifo(10))?;
                // Relaxed: the flag says nothing about other memory.
                let all = (1..).take_while(|_| !stop.load(Ordering::Relaxed));
                all.for_each(|turn| sleep_until(begin_ns + turn * 1_000_000));
                Ok(())
            });
            let all = [0, 1].map(|_| {
                threads.spawn(move || stay_on(1).and_then(|()| become_of(EXT)).map(|()| hog(stop)))
            });
            stop_after(TIME, stop);
            often.join().map_err(|_| "a thread panicked")??;
            let ran = all.map(|one| one.join().map_err(|_| "a thread panicked"));
            ran.into_iter().map(|one| Ok(one??)).collect::<Result<Vec<_>, Failure>>()
        })
    })?;
    let share = |one: u64| one as f64 / TIME.as_nanos() as f64;
    let [first, second] = [share(ran[0]), share(ran[1])];
    let told = format!("{first:.3} and {second:.3} of one CPU");
    let is_even = (first - second).abs() < 0.1 && first + second > 0.5;
    if is_even { Ok(told) } else { Err(told.into()) }
}

/// A thread that wakes beside one that always wants the CPU runs soon, though a thread of little
/// weight on another CPU has a far later virtual time.
pub fn light_elsewhere() -> Result<String, Failure> {
    const TIME: Duration = Duration::from_secs(2);
    const PERIOD: Duration = Duration::from_millis(10);
    let turns = under(&[], |_| {
        let stop = AtomicBool::new(false);
        scope(|threads| {
            let stop = &stop;
            let hogs = [(0, 19), (1, 0)].map(|(cpu, nice)| {
                threads.spawn(move || {
                    stay_on(cpu).and_then(|()| become_of(Policy::Ext { nice })).map(|()| hog(stop))
                })
            });
            let wakes = threads.spawn(move || -> std::io::Result<u32> {
                stay_on(1)?;
                become_of(EXT)?;
                let mut turns = 0;
                // Relaxed: as above.
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(PERIOD);
                    work(200_000);
                    turns += 1;
                }
                Ok(turns)
            });
            stop_after(TIME, stop);
            for one in hogs {
                one.join().map_err(|_| "a thread panicked")??;
            }
            Ok(wakes.join().map_err(|_| "a thread panicked")??)
        })
    })?;
    let told = format!("{turns} turns of a thread that wakes each {PERIOD:?}, in {TIME:?}");
    // A fifth of those without competitors.
    let most = (TIME.as_millis() / PERIOD.as_millis()) as u32;
    if turns >= most / 5 { Ok(told) } else { Err(told.into()) }
}

/// A thread that always wants the CPU changes its nice value: its share follows at once.
pub fn renice() -> Result<String, Failure> {
    const TIME: Duration = Duration::from_secs(2);
    let ran = under(&[], |_| {
        let stop = AtomicBool::new(false);
        scope(|threads| {
            let other = threads.spawn(|| become_of(EXT).map(|()| hog(&stop)));
            let changed = threads.spawn(|| -> std::io::Result<[u64; 2]> {
                let mut ran = [0; 2];
                for (nice, ran) in [0, 5].into_iter().zip(&mut ran) {
                    become_of(Policy::Ext { nice })?;
                    let half = AtomicBool::new(false);
                    *ran = scope(|threads| {
                        threads.spawn(|| {
                            crate::thread::become_conductor().map(|()| stop_after(TIME, &half))
                        });
                        hog(&half)
                    });
                }
                Ok(ran)
            });
            let ran = changed.join().map_err(|_| "a thread panicked")??;
            stop.store(true, Ordering::Relaxed);
            other.join().map_err(|_| "a thread panicked")??;
            Ok(ran)
        })
    })?;
    let share = |one: u64| one as f64 / TIME.as_nanos() as f64;
    let (before, after) = (share(ran[0]), share(ran[1]));
    // 335 beside 1024.
    let due = 335.0 / (335.0 + 1_024.0);
    let told = format!("{before:.3} at nice 0, {after:.3} at nice 5, by weight 0.500 and {due:.3}");
    if (before - 0.5).abs() < 0.02 && (after - due).abs() < 0.02 {
        Ok(told)
    } else {
        Err(told.into())
    }
}
