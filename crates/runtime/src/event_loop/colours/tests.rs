//! Colours under random events, on threads, with loops that leave, and (`busy`) with loops that
//! have other work.

mod busy;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Condvar, Mutex};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};

use super::super::{End, Event, EventLoop, Options, Ring, Step, Wait};
use super::{Call, Colours, Next, Palette, Taken};

/// A generator of random numbers from a seed.
fn lots(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

/// Random behaviour of loops, step by step.
struct Loops {
    palette: Palette<Linux, u64, usize>,
    /// The event that each loop has taken.
    taken: Vec<Option<Taken<u64>>>,
    awake: Vec<bool>,
    /// The waiting events of each colour, by importance and turn.
    waits: BTreeMap<u64, BTreeMap<(u64, u64), u64>>,
    runs: Vec<u64>,
    turn: u64,
}

impl Loops {
    fn new(count: usize) -> Self {
        let palette = Palette::new(count);
        (0..count).for_each(|number| assert_eq!(palette.join(number, number), None));
        let taken = (0..count).map(|_| None).collect();
        let (waits, runs) = (BTreeMap::new(), Vec::new());
        Self { palette, taken, awake: alloc::vec![true; count], waits, runs, turn: 0 }
    }

    fn wake(&mut self, call: Option<Call<usize>>) {
        if let Some(Call { bell: number, was_idle, .. }) = call {
            assert_eq!(self.awake[number], !was_idle);
            self.awake[number] = true;
        }
    }

    fn wait(&mut self, colour: u64, importance: u64, event: u64) {
        self.turn += 1;
        self.waits.entry(colour).or_default().insert((importance, self.turn), event);
    }

    fn put(&mut self, colour: u64, importance: u64) {
        self.wait(colour, importance, self.turn + 1);
        let call = self.palette.put(colour, importance, self.turn);
        self.wake(call);
    }

    /// A loop that is awake takes an event, or completes the one that it has.
    fn step(&mut self, number: usize, again: Option<u64>) {
        if let Some(Taken { colour, event, .. }) = self.taken[number].take() {
            self.runs.retain(|&runs| runs != colour);
            let again = again.map(|importance| (importance, event));
            if let Some((importance, event)) = again {
                self.wait(colour, importance, event);
            }
            let Next { wake, importance } = self.palette.done(number, colour, again);
            self.awake[number] = importance.is_some();
            return self.wake(wake);
        }
        let Some(taken) = self.palette.take(number) else {
            self.awake[number] = false;
            return;
        };
        assert!(!self.runs.contains(&taken.colour), "COLOUR-1: {taken:?}");
        self.runs.push(taken.colour);
        let first = self.waits.get_mut(&taken.colour).and_then(BTreeMap::pop_first);
        let ((importance, _), event) = first.expect("it was put");
        assert_eq!((taken.importance, taken.event), (importance, event), "COLOUR-2");
        self.taken[number] = Some(taken);
    }

    /// COLOUR-3: no event is stranded.
    fn check(&self) {
        let waits =
            |(colour, of): (&u64, &BTreeMap<_, _>)| !of.is_empty() && !self.runs.contains(colour);
        if self.waits.iter().any(waits) {
            assert!(self.awake.contains(&true), "{:?} {:?}", self.waits, self.runs);
        }
    }
}

#[test]
fn whatever_happens_each_event_is_taken_once_and_in_order() {
    for seed in 0..200 {
        let mut lot = lots(seed);
        let count = 1 + lot(4) as usize;
        let mut loops = Loops::new(count);
        for _ in 0..400 {
            match lot(3) {
                0 => loops.put(lot(6), lot(4)),
                _ => {
                    let number = lot(count as u64) as usize;
                    let again = (lot(4) == 0).then(|| lot(4));
                    if loops.awake[number] {
                        loops.step(number, again);
                    }
                }
            }
            loops.check();
        }
        // No event waits when no loop has anything left to do.
        while let Some(number) = loops.awake.iter().position(|awake| *awake) {
            loops.step(number, None);
        }
        assert!(loops.waits.values().all(BTreeMap::is_empty), "{:?}", loops.waits);
    }
}

fn call(bell: u32, importance: u64, was_idle: bool) -> Option<Call<u32>> {
    Some(Call { bell, importance, was_idle })
}

#[test]
fn what_a_loop_leaves_is_for_another() {
    let palette: Palette<Linux, &str, u32> = Palette::new(2);
    assert_eq!((palette.join(0, 10), palette.join(1, 11)), (None, None));
    assert!(palette.take(1).is_none());
    // Its loop is awake, so the other one is woken, too.
    assert_eq!(palette.put(0, 5, "one"), call(11, 5, true));
    assert_eq!(palette.put(2, 5, "two"), None);
    assert!(palette.take(1).is_some_and(|taken| taken.event == "one"));
    let Next { wake, importance } = palette.done(1, 0, None);
    assert_eq!((wake, importance), (None, Some(5)));
    assert!(palette.take(1).is_some_and(|taken| taken.event == "two"));
    assert_eq!(palette.put(0, 1, "three"), None);
    assert_eq!(palette.done(1, 2, None).importance, Some(1));
    assert!(palette.take(1).is_some_and(|taken| taken.event == "three"));
    assert_eq!(palette.put(4, 0, "four"), None);
    assert_eq!(palette.done(1, 0, None).importance, Some(0));
    // The loop leaves although it must take that event.
    assert!(palette.take(0).is_some_and(|taken| taken.event == "four"));
    let _ = palette.done(0, 4, None);
    // The loop was notified, and leaves before it looks; the other one is idle.
    assert!(palette.take(1).is_none());
    assert_eq!(palette.put(1, 0, "five"), call(11, 0, true));
    assert_eq!(palette.leave(1), (Some(11), call(10, 0, true)));
    assert!(palette.take(0).is_some_and(|taken| taken.event == "five"));
}

#[test]
fn a_loop_is_told_of_what_comes_before_that_for_which_it_stands() {
    let palette: Palette<Linux, &str, u32> = Palette::new(3);
    (0..3).for_each(|number| assert_eq!(palette.join(number, 10 + number as u32), None));
    assert_eq!(palette.put(0, 5, "one"), None, "it looks by itself");
    assert!(palette.take(0).is_some());
    assert_eq!(palette.put(0, 1, "two"), None, "it is told when it is done");
    assert_eq!(palette.done(0, 0, Some((5, "one"))).importance, Some(1));
    assert_eq!(palette.put(3, 1, "three"), None, "it stands for one as important");
    assert_eq!(palette.put(3, 0, "four"), call(10, 0, false));
    assert_eq!(palette.put(3, 0, "five"), None, "it was told");
    // The loop whose entry is the least important is notified of events that another loop has left.
    for (number, importance) in [(1, 7), (2, 3)] {
        assert_eq!(palette.put(number, importance, "six"), None);
        assert!(palette.take(number as usize).is_some_and(|taken| taken.event == "six"));
        let next = palette.done(number as usize, number, Some((importance, "six")));
        assert_eq!(next.importance, Some(importance));
    }
    assert_eq!(palette.leave(0), (Some(10), call(11, 0, false)));
    assert!(palette.take(1).is_some_and(|taken| taken.event == "four"));
}

#[test]
fn colours_that_always_have_events_are_spread_evenly() {
    let mut loops = Loops::new(3);
    // All colours begin on the first loop.
    (0..9).for_each(|number| loops.put(number * 3, 1));
    let mut counts = BTreeMap::<u64, u64>::new();
    for turn in 0..600 {
        let number = turn / 2 % 3;
        loops.step(number, Some(1));
        if let Some(taken) = &loops.taken[number] {
            *counts.entry(taken.colour).or_default() += 1;
        }
    }
    let (least, most) = (counts.values().min(), counts.values().max());
    assert_eq!(counts.len(), 9);
    // A hundred rounds of each loop.
    assert!(
        least.zip(most).is_some_and(|(least, most)| most - least <= 15),
        "COLOUR-4: {counts:?}"
    );
}

/// A thread's sleep.
#[derive(Default)]
struct Bed(Arc<(Mutex<bool>, Condvar)>);

impl Wait for Bed {
    type Platform = Linux;
    type Source = ();
    type Ready = u8;
    type Error = ();

    fn now_ns() -> u64 {
        Linux::now(Clock::Monotonic)
    }

    fn wait(&mut self, until_ns: Option<u64>, _: &mut dyn FnMut(u64, u8)) {
        let (rung, bell) = &*self.0;
        let ns = until_ns.map_or(u64::MAX, |at| at.saturating_sub(Self::now_ns()));
        let guard = rung.lock().expect("no panic");
        let limit = core::time::Duration::from_nanos(ns);
        let waits = |rung: &mut bool| !*rung;
        *bell.wait_timeout_while(guard, limit, waits).expect("no panic").0 = false;
    }

    fn ring(&self) -> Ring {
        let bed = self.0.clone();
        Arc::new(move || {
            *bed.0.lock().expect("no panic") = true;
            bed.1.notify_one();
        })
    }

    fn add(&mut self, (): (), _: u64) -> Result<(), ()> {
        Err(())
    }

    fn remove(&mut self, _: u64) {}
}

/// The calls of a colour: whether one is in progress, and their order.
#[derive(Default)]
struct Ledger {
    inside: AtomicU64,
    order: Mutex<Vec<u64>>,
}

#[test]
fn threads_call_each_event_once_and_one_of_a_colour_at_a_time() {
    const LOOPS: usize = 4;
    const COLOURS: u64 = 7;
    const EACH: u64 = 300;
    let colours = Colours::<Bed>::new(LOOPS);
    let ledgers: Arc<[Ledger]> = (0..COLOURS).map(|_| Ledger::default()).collect();
    let left = Arc::new(AtomicU64::new(COLOURS * EACH));
    std::thread::scope(|scope| {
        for number in 0..LOOPS {
            let colours = colours.clone();
            scope.spawn(move || {
                let mut events = EventLoop::new(Bed::default(), Options::default());
                colours.join(number, &mut events);
                // Timers are called in addition.
                let mut beats = 0;
                let beat = move |_: &mut super::Context<'_, Bed>| {
                    beats += 1;
                    if beats < 20 { Step::At(Bed::now_ns() + 100_000) } else { Step::Done }
                };
                events.submit(Event::timer_in_steps(Bed::now_ns(), beat).named("beat"));
                let _ = events.run();
            });
        }
        for colour in 0..COLOURS {
            let (colours, ledgers, left) = (colours.clone(), ledgers.clone(), left.clone());
            scope.spawn(move || {
                for number in 0..EACH {
                    let (ledgers, left) = (ledgers.clone(), left.clone());
                    let all = colours.clone();
                    let mut steps = 0;
                    colours.submit_in_steps(colour, 3, move |_| {
                        let ledger = &ledgers[colour as usize];
                        assert_eq!(ledger.inside.swap(1, AcqRel), 0, "COLOUR-1");
                        steps += 1;
                        if number % 16 == 0 && steps == 1 {
                            // The event is called before those that come later, because it is more
                            // important.
                            ledger.inside.store(0, Release);
                            return Some(2);
                        }
                        ledger.order.lock().expect("no panic").push(number);
                        ledger.inside.store(0, Release);
                        if left.fetch_sub(1, AcqRel) == 1 {
                            all.stop();
                        }
                        None
                    });
                }
            });
        }
    });
    assert_eq!(left.load(Acquire), 0);
    for ledger in ledgers.iter() {
        let order = ledger.order.lock().expect("no panic");
        assert!(order.iter().copied().eq(0..EACH), "COLOUR-2: {order:?}");
    }
}

#[test]
fn a_panic_leaves_the_rest_to_the_other_loop() {
    let colours = Colours::<Bed>::new(2);
    let called = Arc::new(AtomicU64::new(0));
    colours.submit(0, 1, |_| std::panic::resume_unwind(std::boxed::Box::new("of a test")));
    let (counts, all) = (called.clone(), colours.clone());
    colours.submit(0, 2, move |_| {
        counts.fetch_add(1, Relaxed);
        all.stop();
    });
    let run = |number| {
        let mut events = EventLoop::new(Bed::default(), Options::default());
        colours.join(number, &mut events);
        let run = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| events.run()));
        run.is_err()
    };
    assert!(run(0), "the panic comes out of the loop");
    assert_eq!(called.load(Relaxed), 0);
    assert!(!run(1));
    assert_eq!(called.load(Relaxed), 1);
}

/// Two loops; the first has other work from the beginning or from later on, which is more important
/// and never ends.
fn what_comes_to_a_busy_loop_is_called(from_the_beginning: bool) {
    let colours = Colours::<Bed>::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let hears = |what| {
        let got = told.recv_timeout(core::time::Duration::from_secs(20));
        if got != Ok(what) {
            colours.stop();
            panic!("{what} has not come: {got:?}");
        }
    };
    let busy = |tell: std::sync::mpsc::Sender<_>| {
        let mut steps = 0;
        Event::best_effort_in_steps(0, move |_| {
            steps += 1;
            if steps == 100 {
                tell.send("busy").expect("it waits");
            }
            Step::More(0)
        })
    };
    let (give, given) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (all, tell, give) = (colours.clone(), tell.clone(), give.clone());
            scope.spawn(move || {
                let mut events = EventLoop::new(Bed::default(), Options::default());
                all.join(number, &mut events);
                give.send((number, events.handle())).expect("it waits");
                if number == 0 && from_the_beginning {
                    events.submit(busy(tell));
                }
                let _ = events.run();
            });
        }
        let handles: Vec<_> = (0..2).map(|_| given.recv().expect("they are there")).collect();
        let first = handles.iter().find(|(number, _)| *number == 0).expect("both");
        if from_the_beginning {
            hears("busy");
        }
        // Long enough that both loops have looked and are idle; if it is not, the test sees less.
        std::thread::sleep(core::time::Duration::from_millis(20));
        let (all, next) = (colours.clone(), tell.clone());
        // The home is the first loop, which must then call an event of importance 9.
        colours.submit(0, 9, move |_| {
            all.submit(0, 9, move |_| next.send("second").expect("it waits"));
        });
        hears("second");
        if !from_the_beginning {
            first.1.submit(busy(tell.clone())).expect("it is there");
            hears("busy");
        }
        let last = tell.clone();
        colours.submit(0, 9, move |_| last.send("third").expect("it waits"));
        hears("third");
        colours.stop();
    });
}

#[test]
fn what_is_left_on_a_loop_that_becomes_busy_is_called_by_one_that_has_nothing_to_do() {
    let colours = Colours::<Bed>::new(2);
    let (tell, told) = std::sync::mpsc::channel();
    let (give, given) = std::sync::mpsc::channel();
    let me = || std::thread::current().id();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (all, give) = (colours.clone(), give.clone());
            scope.spawn(move || {
                let mut events = EventLoop::new(Bed::default(), Options::default());
                all.join(number, &mut events);
                give.send((me(), events.handle())).expect("it waits");
                let _ = events.run();
            });
        }
        let loops = [0, 1].map(|_| given.recv().expect("they are there"));
        // The event goes on and on, on one loop, while the other has looked and is idle.
        let mut last = None;
        colours.submit_in_steps(0, 9, move |_| {
            if last.replace(me()) != Some(me()) {
                let _ = tell.send(me());
            }
            Some(9)
        });
        let hears = || told.recv_timeout(core::time::Duration::from_secs(20));
        let first = hears();
        std::thread::sleep(core::time::Duration::from_millis(20));
        let busy = loops.iter().find(|(thread, _)| Ok(*thread) == first);
        if let Some((_, handle)) = busy {
            let busy = Event::best_effort_in_steps(0, |_| Step::More(0));
            handle.submit(busy).expect("it is there");
        }
        let second = hears();
        colours.stop();
        assert!(busy.is_some() && second.is_ok(), "{first:?}, {second:?}");
    });
}

#[test]
fn what_a_busy_loop_has_left_is_called_by_one_that_has_nothing_to_do() {
    what_comes_to_a_busy_loop_is_called(true);
}

#[test]
fn what_comes_to_a_loop_that_has_become_busy_is_called_by_one_that_has_nothing_to_do() {
    what_comes_to_a_busy_loop_is_called(false);
}
