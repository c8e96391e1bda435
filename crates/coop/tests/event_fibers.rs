//! Tests of events that are fibers: they are suspended, and their loop goes on.

use std::cell::{Cell, RefCell};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use antiphon::fiber::{self, STACK_BYTES};
use antiphon::{Latch, Mutex, ReentrantMutex, channel};
use antiphon_coop::event_loop::{End, Event, Fiber, Fibers, Loop, Source, Step, now_ns};

const MS: u64 = 1_000_000;

fn fibers() -> Fibers {
    // SAFETY: no fiber waits while it initialises a thread-local.
    unsafe { Fibers::new(STACK_BYTES) }.expect("stacks")
}

/// A log that events write to.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    fn add(&self, word: &'static str) {
        self.0.borrow_mut().push(word);
    }

    fn said(&self) -> Vec<&'static str> {
        self.0.borrow().clone()
    }
}

#[test]
fn what_computes_is_suspended_where_timers_are_due() {
    let mut events = Loop::new().expect("files");
    let (ticks, turns) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0_u64)));
    let (ticked, turned, mut seen) = (ticks.clone(), turns.clone(), 0);
    events.submit(
        Event::timer_in_steps(now_ns() + MS, move |context| {
            // Counts a tick if the fiber has gone on meanwhile.
            ticked.set(ticked.get() + u32::from(turned.get() > seen));
            seen = turned.get();
            let next_ns = context.release_ns().expect("a timer") + MS;
            if ticked.get() < 10 { Step::At(next_ns) } else { Step::Done }
        })
        .named("tick"),
    );
    let computes = move |fiber: &Fiber| {
        // Only the timer ends this loop.
        while ticks.get() < 10 {
            turns.set(turns.get() + 1);
            fiber.checkpoint();
        }
    };
    events.submit(fibers().event(0, computes).named("computes"));
    assert_eq!(events.run(), End::Done);
    let steps = events.stats().iter().find(|stats| stats.name.to_string() == "computes");
    assert!(steps.expect("it was called").run.count() >= 10);
}

#[test]
fn the_most_important_goes_on() {
    let (mut events, fibers, log) = (Loop::new().expect("files"), fibers(), Log::default());
    let says = |words: [&'static str; 3]| {
        let log = log.clone();
        move |fiber: &Fiber| {
            log.add(words[0]);
            fiber.more(if words[0] == "a" { 10 } else { 5 });
            log.add(words[1]);
            fiber.more(7);
            log.add(words[2]);
        }
    };
    events.submit(fibers.event(0, says(["a", "b", "c"])));
    events.submit(fibers.event(1, says(["x", "y", "z"])));
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.said(), ["a", "x", "y", "z", "b", "c"]);
}

#[test]
fn after_a_sleep_it_is_a_timer() {
    let mut events = Loop::new().expect("files");
    let sleeps = |fiber: &Fiber| {
        let at_ns = now_ns() + 3 * MS;
        fiber.sleep_until(at_ns);
        assert!(now_ns() >= at_ns);
        assert_eq!(fiber.with(|context| context.release_ns()), Some(at_ns));
        fiber::sleep(Duration::from_millis(1));
        assert!(now_ns() >= at_ns + MS);
    };
    events.submit(fibers().event(0, sleeps).named("sleeps"));
    // The wait does not prevent this event from being called.
    let other = Rc::new(Cell::new(false));
    let called = other.clone();
    events.submit(Event::best_effort(9, move |_| called.set(true)));
    assert_eq!(events.run(), End::Done);
    assert!(other.get());
    assert!(events.stats()[0].tardiness.count() >= 1);
}

#[test]
fn locks_suspend_one_and_its_loop_goes_on() {
    let (mut events, fibers, log) = (Loop::new().expect("files"), fibers(), Log::default());
    let lock = Arc::new(Mutex::new(()));
    let (holds, said) = (lock.clone(), log.clone());
    events.submit(fibers.event(0, move |fiber| {
        let _guard = holds.lock();
        said.add("locked");
        fiber.sleep_until(now_ns() + 3 * MS);
        said.add("unlocks");
    }));
    let said = log.clone();
    events.submit(fibers.event(1, move |_| {
        said.add("waits");
        let _guard = lock.lock();
        said.add("has it");
    }));
    let said = log.clone();
    events.submit(Event::best_effort(2, move |_| said.add("goes on")));
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.said(), ["locked", "waits", "goes on", "unlocks", "has it"]);
}

#[test]
fn waits_end_by_their_deadline_or_by_another_thread() {
    let (mut events, fibers) = (Loop::new().expect("files"), fibers());
    let (ask, answer) = (Arc::new(antiphon::Event::new()), Arc::new(antiphon::Event::new()));
    let (asks, answers) = (ask.clone(), answer.clone());
    let done = Rc::new(Cell::new(0));
    let told = done.clone();
    events.submit(fibers.event(0, move |_| {
        assert!(!answers.wait_for(Duration::from_millis(2)), "nobody has answered");
        asks.set();
        answers.wait();
        told.set(told.get() + 1);
    }));
    let (sender, receiver) = channel::bounded(1);
    let told = done.clone();
    events.submit(fibers.event(1, move |_| {
        // The fiber also waits for futures.
        let first = fiber::block_on(receiver.recv_async());
        assert_eq!(first, Ok(1));
        assert_eq!(receiver.recv(), Ok(2));
        told.set(told.get() + 1);
    }));
    let other = thread::spawn(move || {
        ask.wait();
        answer.set();
        [1, 2].into_iter().for_each(|number| sender.send(number).expect("a receiver"));
    });
    assert_eq!(events.run(), End::Done);
    other.join().expect("no panic");
    assert_eq!(done.get(), 2);
}

#[test]
fn many_wait_and_each_goes_on_once() {
    const MANY: usize = 5000;
    let (mut events, fibers) = (Loop::new().expect("files"), fibers());
    let (open, count) = (Arc::new(Latch::new(1)), Rc::new(Cell::new(0)));
    for number in 0..MANY {
        let (open, count) = (open.clone(), count.clone());
        events.submit(fibers.event(number as u64, move |fiber| {
            open.wait();
            fiber.more(0);
            count.set(count.get() + 1);
        }));
    }
    let opens = open.clone();
    events.submit(Event::best_effort(MANY as u64, move |_| opens.count_down(1)));
    assert_eq!(events.run(), End::Done);
    assert_eq!(count.get(), MANY);
}

#[test]
fn the_stack_is_as_deep_as_was_asked_for() {
    fn deep(fiber: &Fiber, levels: usize) -> usize {
        let bytes = std::hint::black_box([levels as u8; 1024]);
        let below = if levels == 0 {
            fiber.more(1);
            0
        } else {
            deep(fiber, levels - 1)
        };
        assert!(bytes.iter().all(|&byte| byte == levels as u8));
        below + 1
    }
    // SAFETY: no fiber waits while it initialises a thread-local.
    let fibers = unsafe { Fibers::new(4 << 20) }.expect("stacks");
    let mut events = Loop::new().expect("files");
    let depth = Rc::new(Cell::new(0));
    for _ in 0..2 {
        let depth = depth.clone();
        events.submit(fibers.event(0, move |fiber| {
            let levels = deep(fiber, 1000);
            depth.set(depth.get() + levels);
        }));
    }
    assert_eq!(events.run(), End::Done);
    assert_eq!(depth.get(), 2 * 1001);
}

#[test]
fn what_a_source_says_ends_a_wait() {
    let mut events = Loop::new().expect("files");
    let (mut one, other) = UnixStream::pair().expect("a pair");
    other.set_nonblocking(true).expect("a socket");
    let other = Rc::new(other);
    let (log, reads) = (Log::default(), other.clone());
    let said = log.clone();
    let echo = fibers().event(0, move |fiber| {
        for _ in 0..2 {
            let mut byte = [0];
            while (&*reads).read(&mut byte).is_err() {
                let _ = fiber.wait();
            }
            said.add(if byte == *b"x" { "x" } else { "?" });
        }
    });
    events.watch(Source::readable(other), echo).expect("a socket");
    let writer = thread::spawn(move || {
        one.write_all(b"x").expect("room");
        thread::sleep(Duration::from_millis(2));
        one.write_all(b"x").expect("room");
        one
    });
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.said(), ["x", "x"]);
    drop(writer.join().expect("no panic"));
}

#[test]
fn a_fiber_has_its_loop() {
    let (mut events, log) = (Loop::new().expect("files"), Log::default());
    let said = log.clone();
    events.submit(fibers().event(3, move |fiber| {
        let submitted = said.clone();
        fiber.with(|context| context.submit(Event::best_effort(1, move |_| submitted.add("sub"))));
        // More important than the fiber.
        assert!(fiber.is_over());
        fiber.checkpoint();
        said.add("fiber");
        let inside = catch_unwind(AssertUnwindSafe(|| fiber.with(|_| fiber.more(1))));
        assert!(inside.is_err(), "the loop is lent");
        fiber.with(|context| context.stop());
        fiber.checkpoint();
        said.add("after");
    }));
    assert_eq!(events.run(), End::Stopped);
    assert_eq!(log.said(), ["sub", "fiber"]);
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.said(), ["sub", "fiber", "after"]);
}

#[test]
fn another_thread_may_submit_one() {
    let mut events = Loop::new().expect("files");
    let (handle, fibers) = (events.handle(), fibers());
    let (tell, told) = mpsc::channel();
    let other = thread::spawn(move || {
        let event = fibers.event(0, move |fiber| {
            fiber.more(1);
            tell.send(thread::current().id()).expect("a receiver");
        });
        handle.submit(event).expect("a loop");
    });
    assert_eq!(events.run(), End::Done);
    assert_eq!(told.recv(), Ok(thread::current().id()));
    other.join().expect("no panic");
}

#[test]
fn fibers_of_a_loop_are_owners_of_their_own() {
    let (mut events, fibers, log) = (Loop::new().expect("files"), fibers(), Log::default());
    let lock = Arc::new(ReentrantMutex::new(()));
    for words in [["1 in", "1 out"], ["2 in", "2 out"]] {
        let (lock, log) = (lock.clone(), log.clone());
        events.submit(fibers.event(0, move |fiber| {
            let (_outer, _inner) = (lock.lock(), lock.lock());
            log.add(words[0]);
            fiber.more(0);
            log.add(words[1]);
        }));
    }
    assert_eq!(events.run(), End::Done);
    assert_eq!(log.said(), ["1 in", "1 out", "2 in", "2 out"]);
}
