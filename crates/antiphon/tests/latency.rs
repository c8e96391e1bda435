//! The parts of the time of fibers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::fiber::{STACK_BYTES, sleep, yield_now};
use antiphon::pool::recording::{Part, Span, Timed};
use antiphon::pool::{Builder, JoinHandle, Pool};
use antiphon::stage::Stage;
use antiphon::{Event, Latch, channel};

const LONG: Duration = Duration::from_millis(20);
const HOG: Duration = Duration::from_millis(100);

fn fibers(threads: usize) -> Builder {
    // SAFETY: no fiber waits while it makes a thread-local.
    unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) }
}

/// The first task that a thread makes is timed.
fn timed<T: Send + 'static>(
    pool: &Pool,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::scope(|scope| scope.spawn(|| pool.spawn(work)).join().expect("it spawns"))
}

fn spin(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn tasks(pool: &Pool) -> Vec<Timed> {
    pool.recording().tasks
}

/// Returns the times once `count` tasks are over: a waiter for a task is notified before the task's
/// account is closed.
fn tasks_over(pool: &Pool, count: usize) -> Vec<Timed> {
    loop {
        let tasks = tasks(pool);
        if tasks.iter().filter(|task| task.is_over).count() >= count {
            return tasks;
        }
        thread::yield_now();
    }
}

fn ns(time: Duration) -> u64 {
    time.as_nanos() as u64
}

#[test]
fn a_fiber_that_sleeps_waits_and_one_that_spins_runs() {
    let pool = fibers(2).build().expect("fibers");
    timed(&pool, || sleep(LONG)).join().expect("no panic");
    timed(&pool, || spin(LONG)).join().expect("no panic");
    let tasks = tasks_over(&pool, 2);
    let [sleeps, spins] = &tasks[..] else { panic!("two were timed: {tasks:?}") };
    assert!(sleeps.is_over && sleeps.is_fiber, "{sleeps:?}");
    assert!(sleeps.waiting_ns > ns(LONG) / 2, "{sleeps:?}");
    assert!(sleeps.waiting_ns > sleeps.running_ns, "{sleeps:?}");
    assert!(sleeps.spans.iter().any(|span| span.part == Part::Waiting), "{sleeps:?}");
    assert!(spins.running_ns >= ns(LONG) && spins.waiting_ns == 0, "{spins:?}");
    for task in &tasks {
        parts_are_all(task);
    }
    let recording = pool.recording();
    let worst = |part| recording.worst(part, 1)[0].number;
    assert_eq!((worst(Part::Waiting), worst(Part::Running)), (sleeps.number, spins.number));
    let latency = recording.latency(Duration::from_millis(1));
    assert_eq!(latency.waiting.max_ns, sleeps.waiting_ns);
    assert!(latency.to_string().contains("waiting"), "{latency}");
}

/// Tasks are spawned with each method.
#[test]
fn fibers_know_the_line_that_has_spawned_them() {
    type Spawns = fn(&Arc<Pool>) -> u32;
    let pool = Arc::new(fibers(1).build().expect("fibers"));
    #[rustfmt::skip]
    let ways: [Spawns; 7] = [
        |pool| { pool.spawn(|| ()).join().expect("no panic"); line!() },
        |pool| { pool.spawn_ranked(1, || ()).join().expect("no panic"); line!() },
        |pool| { pool.try_spawn(|| ()).expect("room").join().expect("no panic"); line!() },
        |pool| { pool.spawn_many([|| ()]).remove(0).join().expect("no panic"); line!() },
        |pool| { pool.spawn_future(async {}).join().expect("no panic"); line!() },
        |pool| { pool.scope(|scope| scope.spawn(|| ())); line!() },
        |pool| { pool.run(|| ()); line!() },
    ];
    for (number, spawns) in (1..).zip(ways) {
        // The first task that a thread makes is timed.
        let line = thread::scope(|scope| scope.spawn(|| spawns(&pool)).join()).expect("no panic");
        let task = tasks_over(&pool, number).remove(number - 1);
        let at = task.spawned_at.expect("it is a fiber");
        assert_eq!((at.file(), at.line()), (file!(), line), "{task:?}");
        assert_eq!(task.delayed_ns(), task.queued_ns() + task.runnable_ns);
    }
    let spawns = || {
        let (stage, line) = (Stage::builder("stage").on(&pool, |_: u32| ()), line!());
        stage.0.send(1);
        drop(stage.0);
        stage.1.join().expect("no panic");
        line
    };
    let line = thread::scope(|scope| scope.spawn(spawns).join()).expect("no panic");
    let tasks = tasks_over(&pool, 8);
    assert_eq!(tasks[7].spawned_at.map(|at| at.line()), Some(line), "{tasks:?}");
    let places = pool.recording().by_place(3);
    assert_eq!(places.iter().map(|place| place.places).collect::<Vec<_>>(), [1, 1, 1, 5]);
}

/// The fiber may continue, because its deadline has passed or it was notified, while another task
/// occupies the thread.
#[test]
fn a_fiber_beside_a_hog_is_hogged() {
    // If the thread had no CPU for long, the sleeping fiber was awake before the hog began.
    let tasks = (0..50).find_map(|_| beside_a_hog()).expect("a hog comes while the other sleeps");
    let [waits, sleeps, hogs] = &tasks[..] else { panic!("three were timed: {tasks:?}") };
    for beside in [waits, sleeps] {
        assert!(beside.hogged_ns >= ns(HOG) / 2, "{tasks:?}");
        assert!(beside.runnable_ns >= beside.hogged_ns - beside.queued_ns(), "{tasks:?}");
        assert!(beside.running_ns < beside.hogged_ns, "{tasks:?}");
        assert!(beside.spans.iter().any(|span| span.part == Part::Hogged), "{tasks:?}");
    }
    assert!(hogs.running_ns >= ns(LONG + HOG), "{tasks:?}");
}

/// Returns the times of a fiber that waits, one that sleeps, and the hog, if the hog began in time.
fn beside_a_hog() -> Option<Vec<Timed>> {
    let pool = fibers(1).patience(LONG / 4).spares(0).build().expect("fibers");
    let (event, asleep) = (Arc::new(Event::new()), Arc::new(AtomicBool::new(false)));
    let awake = Arc::new(AtomicBool::new(false));
    let waits = timed(&pool, {
        let event = event.clone();
        move || event.wait()
    });
    let sleeps = timed(&pool, {
        let (asleep, awake) = (asleep.clone(), awake.clone());
        move || {
            asleep.store(true, Relaxed);
            sleep(LONG);
            awake.store(true, Relaxed);
        }
    });
    let hogs = timed(&pool, move || {
        while !asleep.load(Relaxed) {
            yield_now();
        }
        let in_time = !awake.load(Relaxed);
        spin(LONG);
        event.set();
        spin(HOG);
        in_time
    });
    let in_time = hogs.join().expect("no panic");
    [waits, sleeps].into_iter().for_each(|handle| handle.join().expect("no panic"));
    in_time.then(|| tasks_over(&pool, 3))
}

/// This also holds if all fibers yield, when few yields are timed.
#[test]
fn who_yields_beside_a_hog_is_hogged_and_the_hog_runs() {
    let pool = fibers(1).patience(HOG / 40).spares(0).build().expect("fibers");
    let over = Arc::new(AtomicBool::new(false));
    let yields = {
        let over = over.clone();
        timed(&pool, move || {
            while !over.load(Acquire) {
                yield_now();
            }
        })
    };
    let hogs = timed(&pool, || {
        for _ in 0..10 {
            spin(HOG / 10);
            yield_now();
        }
    });
    hogs.join().expect("no panic");
    over.store(true, Release);
    yields.join().expect("no panic");
    let tasks = tasks_over(&pool, 2);
    let [yields, hogs] = &tasks[..] else { panic!("two were timed: {tasks:?}") };
    assert!(yields.hogged_ns > ns(HOG) / 2, "{tasks:?}");
    assert!(yields.runnable_ns >= yields.hogged_ns, "{tasks:?}");
    assert!(hogs.running_ns >= ns(HOG) && hogs.running_ns > 2 * hogs.runnable_ns, "{tasks:?}");
}

/// This holds after many short turns, too.
#[test]
fn who_is_long_itself_among_many_that_yield_runs() {
    let pool = fibers(1).patience(HOG / 40).spares(0).build().expect("fibers");
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..10)
        .map(|_| {
            let over = over.clone();
            pool.spawn(move || {
                while !over.load(Relaxed) {
                    yield_now();
                }
            })
        })
        .collect();
    let hog = timed(&pool, || {
        for _ in 0..10 {
            (0..300).for_each(|_| yield_now());
            spin(HOG / 10);
        }
    });
    hog.join().expect("no panic");
    over.store(true, Relaxed);
    others.into_iter().for_each(|fiber| fiber.join().expect("no panic"));
    let tasks = tasks(&pool);
    let hog = tasks.iter().max_by_key(|task| task.running_ns).expect("it is timed");
    assert!(hog.running_ns >= ns(HOG) / 2, "{tasks:?}");
    let others = tasks.iter().filter(|task| task.number != hog.number);
    assert!(others.clone().all(|task| task.running_ns < task.runnable_ns), "{tasks:?}");
    assert!(others.map(|task| task.hogged_ns).max() > Some(ns(HOG) / 2), "{tasks:?}");
}

/// Runs two fibers: one sends messages to the other, with room for one message; before each it
/// does something else.
fn messages(
    pool: &Pool,
    count: usize,
    before: impl Fn(usize) -> bool + Send + 'static,
) -> [JoinHandle<()>; 2] {
    let (sender, receiver) = channel::bounded(1);
    let sends = timed(pool, move || {
        let _ = (0..count).take_while(|&number| before(number)).try_for_each(|it| sender.send(it));
    });
    let receives = timed(pool, move || while receiver.recv().is_ok() {});
    [sends, receives]
}

/// Checks that no time is counted twice or lost.
fn parts_are_all(task: &Timed) {
    let parts = task.running_ns + task.waiting_ns + task.runnable_ns;
    assert_eq!(parts, task.until_ns - task.began_ns, "{task:?}");
}

/// Few quick waits are timed; the time of the others is accounted for, too.
#[test]
fn quick_waits_and_runs_are_all_of_a_fibers_time() {
    for (threads, count) in [(1, 1), (1, 2), (1, 30), (2, 1000), (1, 100_000)] {
        let pool = fibers(threads).build().expect("fibers");
        for handle in messages(&pool, count, |_| true) {
            handle.join().expect("no panic");
        }
        let tasks = tasks_over(&pool, 2);
        assert_eq!(tasks.len(), 2);
        tasks.iter().for_each(parts_are_all);
        let many = || tasks.iter().filter(|_| threads == 1 && count > 1000);
        assert!(many().all(|task| task.running_ns > 0 && task.waiting_ns > 0), "{tasks:?}");
        assert!(many().all(|task| task.runnable_ns > 0), "{tasks:?}");
    }
}

/// The long wait is among quick waits, which are not timed.
#[test]
fn a_long_wait_among_quick_ones_waits() {
    let pool = fibers(1).build().expect("fibers");
    let before = |number| {
        if number == 5_000 {
            sleep(LONG);
        }
        true
    };
    for handle in messages(&pool, 10_000, before) {
        handle.join().expect("no panic");
    }
    let tasks = tasks_over(&pool, 2);
    for task in &tasks {
        parts_are_all(task);
        // The task that sleeps, and the task that waits for its message.
        let is_long = |it: &Span| it.part == Part::Waiting && it.to_ns - it.from_ns > ns(LONG) / 2;
        assert!(task.spans.iter().any(is_long), "{tasks:?}");
        assert!(task.waiting_ns > ns(LONG) / 2, "{tasks:?}");
    }
}

/// One of the two fibers is in the run queue during the hog, after many short turns.
#[test]
fn who_waits_quickly_beside_a_hog_is_hogged() {
    let pool = fibers(1).patience(HOG / 40).spares(0).build().expect("fibers");
    let over = Arc::new(AtomicBool::new(false));
    let handles = messages(&pool, usize::MAX, {
        let over = over.clone();
        // Relaxed: the loop only has to end eventually.
        move |_| !over.load(Relaxed)
    });
    let hogs = timed(&pool, move || {
        for _ in 0..10 {
            (0..300).for_each(|_| yield_now());
            spin(HOG / 10);
        }
        over.store(true, Relaxed);
    });
    handles.into_iter().chain([hogs]).for_each(|handle| handle.join().expect("no panic"));
    let tasks = tasks_over(&pool, 3);
    let [sends, receives, hogs] = &tasks[..] else { panic!("three were timed: {tasks:?}") };
    tasks.iter().for_each(parts_are_all);
    assert!(sends.hogged_ns + receives.hogged_ns > ns(HOG) / 4 * 3, "{tasks:?}");
    assert!(sends.runnable_ns >= sends.hogged_ns, "{tasks:?}");
    assert!(hogs.running_ns >= ns(HOG), "{tasks:?}");
}

#[test]
fn many_that_yield_are_nobodys_hogs() {
    let pool = fibers(1).build().expect("fibers");
    pool.scope(|scope| {
        (0..20).for_each(|_| scope.spawn(|| (0..20_000).for_each(|_| yield_now())));
    });
    let tasks = tasks(&pool);
    let share = |of: fn(&Timed) -> u64| tasks.iter().map(of).sum::<u64>();
    assert!(!tasks.is_empty());
    // Each fiber has the thread for about a twentieth of the time.
    let (runs, others) = (share(|task| task.running_ns), share(|task| task.runnable_ns));
    assert!(others > 2 * runs, "{runs} {others} {tasks:?}");
}

/// A task that has not ended is reported: a fiber that waits.
#[test]
fn a_fiber_that_has_not_ended_is_told() {
    let pool = fibers(1).build().expect("fibers");
    let gate = Arc::new(Latch::new(1));
    let waits = {
        let gate = gate.clone();
        timed(&pool, move || gate.wait())
    };
    let waiting =
        |pool: &Pool| pool.recording().worst(Part::Waiting, 1).first().map(|it| it.waiting_ns);
    while waiting(&pool).is_none_or(|ns| ns == 0) {
        thread::yield_now();
    }
    let (first, then) = (waiting(&pool), waiting(&pool));
    assert!(then > first, "{first:?} {then:?}");
    assert!(!tasks(&pool)[0].is_over);
    assert_eq!(pool.recording().latency(LONG).waiting.tasks, 0);
    gate.count_down(1);
    waits.join().expect("no panic");
    while !tasks(&pool)[0].is_over {
        thread::yield_now();
    }
}

#[test]
fn a_trace_has_fibers_with_their_waits() {
    let pool = fibers(1).name("of \"one\"").build().expect("fibers");
    timed(&pool, || sleep(LONG)).join().expect("no panic");
    let mut trace = Vec::new();
    pool.recording().write_trace(&mut trace).expect("memory");
    let trace = String::from_utf8(trace).expect("text");
    for what in [r#""name":"fiber","cat":"fiber","id":0"#, r#""name":"waiting""#, r#"of \"one\"-0"#]
    {
        assert!(trace.contains(what), "no {what} in {trace}");
    }
    let count = |what: &str| trace.matches(what).count();
    assert_eq!(count(r#""ph":"b""#), count(r#""ph":"e""#));
}

#[test]
fn without_a_recorder_nothing_is_timed() {
    let pool = fibers(1).recorder(0).build().expect("fibers");
    timed(&pool, || sleep(Duration::from_millis(1))).join().expect("no panic");
    assert!(tasks(&pool).is_empty());
}

/// The latest tasks are kept, and a panic ends the account of its task.
#[test]
fn as_many_stay_as_there_is_room_for() {
    let pool = fibers(1).recorder(4).build().expect("fibers");
    for number in 0..6 {
        let panics = timed(&pool, move || assert!(number != 5, "as it is meant to"));
        assert_eq!(panics.join().is_err(), number == 5);
    }
    let last = || tasks(&pool).last().is_some_and(|task| task.number == 5 && task.is_over);
    while !last() {
        thread::yield_now();
    }
    assert_eq!(tasks(&pool).iter().map(|task| task.number).collect::<Vec<_>>(), [2, 3, 4, 5]);
}
