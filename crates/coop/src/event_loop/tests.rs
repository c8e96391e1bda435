//! Tests of the loop on Linux: order and liveness, but no durations.

use std::cell::{Cell, RefCell};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use antiphon_linux::files::{Way, wait};
use antiphon_platform::{Clock, Deadline};

use super::*;
use antiphon::net::{Backend, backend};
use antiphon::{Latch, channel};

const MS: u64 = 1_000_000;

fn is_readable(file: BorrowedFd<'_>, until_ns: u64) -> bool {
    let deadline = Deadline { clock: Clock::Monotonic, ns: until_ns };
    wait(file, Way::Read, Some(deadline)).expect("a wait")
}

fn timers_are_in_order(mut events: EventLoop<Files>) {
    let (begun_ns, seen) = (now_ns(), Rc::new(RefCell::new(Vec::new())));
    for after_ms in [3, 1, 2] {
        let (seen, release_ns) = (seen.clone(), begun_ns + after_ms * MS);
        events.submit(Event::timer(release_ns, move |_| {
            assert!(now_ns() >= release_ns);
            seen.borrow_mut().push(after_ms);
        }));
    }
    assert_eq!(events.run(), End::Done);
    assert_eq!(*seen.borrow(), [1, 2, 3]);
}

#[test]
fn timers_are_called_in_order_and_not_before_their_time() {
    timers_are_in_order(Loop::new().expect("files").0);
}

#[test]
fn so_they_are_where_the_kernel_knows_milliseconds_only() {
    timers_are_in_order(EventLoop::new(Files::coarse().expect("files"), Options::default()));
}

#[test]
fn timers_go_before_work_that_never_ends() {
    let mut events = Loop::new().expect("files");
    let first_ns = now_ns() + MS;
    events.submit(Event::timer_in_steps(first_ns, move |context| {
        let release_ns = context.release_ns().expect("a timer");
        if release_ns == first_ns + 20 * MS {
            context.stop();
        }
        Step::At(release_ns + MS)
    }));
    events.submit(Event::best_effort_in_steps(0, |context| {
        // Only the loop ends this step.
        while !context.is_over() {}
        Step::More(0)
    }));
    assert_eq!(events.run(), End::Stopped);
    let stats = events.stats();
    assert_eq!(stats[0].tardiness.count(), 21);
    assert!(stats[1].run.count() > 0);
}

#[test]
fn a_file_is_told_of_as_long_as_it_is_ready_or_once() {
    for (edge, times) in [(false, 3), (true, 1)] {
        let mut events = Loop::new().expect("files");
        let (mut one, other) = UnixStream::pair().expect("a pair");
        let other = Rc::new(other);
        let source = Source::readable(other.clone());
        let source = if edge { source.edge_triggered() } else { source };
        let told = Rc::new(Cell::new(0));
        let count = told.clone();
        let watched = Event::when_woken(1, move |context| {
            assert!(context.ready().read && !context.ready().write);
            count.set(count.get() + 1);
            if edge {
                // Time enough for another notification.
                let id = context.id();
                let cancels = Event::timer(now_ns() + 5 * MS, move |context| {
                    assert!(context.cancel(id));
                });
                context.submit(cancels);
            }
            if count.get() == 3 {
                let mut byte = [0];
                (&*other).read_exact(&mut byte).expect("a byte");
                assert_eq!(&byte, b"x");
                return Step::Done;
            }
            Step::Asleep
        });
        events.watch(source, watched).expect("a socket");
        one.write_all(b"x").expect("room");
        assert_eq!(events.run(), End::Done);
        assert_eq!(told.get(), times, "edge: {edge}");
    }
}

#[test]
fn files_come_and_go_by_either_backend() {
    let by_epoll = EventLoop::new(Files::by_epoll().expect("files"), Options::default());
    assert_eq!(by_epoll.waits().backend(), Backend::Epoll);
    let by_default = Loop::new().expect("files").0;
    assert_eq!(by_default.waits().backend(), backend());
    for mut events in [by_epoll, by_default] {
        let told = Rc::new(Cell::new(0));
        for round in 0..300 {
            let (mut one, other) = UnixStream::pair().expect("a pair");
            one.write_all(b"x").expect("room");
            let count = told.clone();
            let watched = Event::when_woken(0, move |_| {
                count.set(count.get() + 1);
                Step::Done
            });
            let id = events.watch(Source::readable(other), watched).expect("a socket");
            // Some events are cancelled while they are ready, before the loop has looked.
            if round % 3 == 0 {
                assert!(events.cancel(id));
            }
            // Some stay, together with later events that reuse their numbers.
            if round % 5 == 0 {
                assert_eq!(events.run(), End::Done);
            }
        }
        assert_eq!(events.run(), End::Done);
        assert_eq!(told.get(), 200);
    }
}

#[test]
fn what_can_not_be_waited_for_is_refused() {
    let mut events = Loop::new().expect("files");
    let file = std::fs::File::open("/proc/self/exe").expect("a file");
    let refused = events.watch(Source::readable(file), Event::when_woken(0, |_| Step::Done));
    assert_eq!(refused.expect_err("it is always ready").raw_os_error(), Some(1));
    assert_eq!(events.run(), End::Done);
}

#[test]
fn signals_are_events() {
    let mut events = Loop::new().expect("files");
    let signals = Rc::new(Signals::new(&[libc::SIGUSR1]).expect("a file"));
    let source = Source::readable(signals.clone());
    let said = Event::when_woken(0, move |_| match signals.next() {
        Some(signal) => {
            assert_eq!(signal.number, libc::SIGUSR1);
            Step::Done
        }
        None => Step::Asleep,
    });
    events.watch(source, said).expect("a file");
    events.submit(Event::timer(now_ns() + MS, |_| {
        // SAFETY: raised on this thread, where the signal is blocked.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    }));
    assert_eq!(events.run(), End::Done);
}

#[test]
fn other_threads_wake_a_loop_that_sleeps() {
    let mut events = Loop::new().expect("files");
    let (handle, begin) = (events.handle(), Arc::new(Latch::new(1)));
    let open = begin.clone();
    let others: Vec<_> = (0..4)
        .map(|_| {
            let (handle, begin) = (handle.clone(), begin.clone());
            thread::spawn(move || {
                begin.wait();
                for _ in 0..100 {
                    let (done, told) = mpsc::channel();
                    let event = Event::best_effort(0, move |_| done.send(()).expect("a receiver"));
                    handle.submit(event).expect("a loop");
                    told.recv().expect("that it was called");
                }
            })
        })
        .collect();
    drop(handle);
    events.submit(Event::timer(now_ns() + MS, move |_| open.count_down(1)));
    // Runs until the last of the threads has ended.
    assert_eq!(events.run(), End::Done);
    assert!(others.into_iter().all(|other| other.join().is_ok()));
    assert_eq!(events.stats().iter().map(|stats| stats.run.count()).sum::<u64>(), 401);
}

#[test]
fn futures_of_a_loop_wait_for_channels_latches_and_times() {
    let mut events = Loop::new().expect("files");
    let (sender, receiver) = channel::bounded(1);
    let (latch, sum) = (Rc::new(Latch::new(1)), Rc::new(Cell::new(0)));
    let (opens, adds) = (latch.clone(), sum.clone());
    events.submit(Event::task(0, async move |task| {
        while let Ok(number) = receiver.recv_async().await {
            adds.set(adds.get() + number);
        }
        task.sleep_until(task.now_ns() + MS).await;
        opens.count_down(1);
    }));
    let waits = Rc::new(Cell::new(false));
    let waited = waits.clone();
    events.submit(Event::task(0, async move |_| {
        latch.wait_async().await;
        waited.set(true);
    }));
    let other = thread::spawn(move || (1..=100).for_each(|n| sender.send(n).expect("a receiver")));
    assert_eq!(events.run(), End::Done);
    assert_eq!((sum.get(), waits.get()), (5050, true));
    other.join().expect("no panic");
}

#[test]
fn a_loop_is_a_file_that_is_readable_when_there_is_something_to_do() {
    let mut events = Loop::new().expect("files");
    assert_eq!(events.turn(9).end, Some(End::Done));
    let handle = events.handle();
    assert_eq!(events.turn(9), Turn { called: 0, next_ns: None, end: None });
    assert!(!is_readable(events.as_fd(), 0));
    // As if another thread submitted it.
    handle.submit(Event::best_effort(0, |_| {})).expect("a loop");
    assert!(is_readable(events.as_fd(), 0));
    assert_eq!(events.turn(9).called, 1);
    assert!(!is_readable(events.as_fd(), 0));
    // Ended by the release of an event that was submitted between turns.
    let release_ns = now_ns() + 2 * MS;
    events.submit(Event::timer(release_ns, |_| {}));
    assert!(is_readable(events.as_fd(), u64::MAX) && now_ns() >= release_ns);
    assert_eq!(events.turn(9).called, 1);
    assert!(!is_readable(events.as_fd(), 0));
    // Ended by remaining events, and by files.
    (0..3).for_each(|_| _ = events.submit(Event::best_effort(0, |_| {})));
    assert_eq!(events.turn(2).next_ns, Some(0));
    assert!(is_readable(events.as_fd(), 0));
    assert_eq!(events.turn(2).called, 1);
    let (mut one, other) = UnixStream::pair().expect("a pair");
    let source = Source::readable(other);
    events.watch(source, Event::when_woken(0, |_| Step::Done)).expect("a socket");
    assert!(!is_readable(events.as_fd(), 0));
    one.write_all(b"x").expect("room");
    assert!(is_readable(events.as_fd(), 0));
    assert_eq!(events.turn(9).called, 1);
}

#[test]
fn a_turn_that_panics_is_followed_by_another() {
    let mut events = Loop::new().expect("files");
    events.submit(Event::timer(0, |_| panic!("on purpose")));
    let called = Rc::new(Cell::new(false));
    let calls = called.clone();
    events.submit(Event::timer(0, move |_| calls.set(true)));
    let turn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| events.turn(9)));
    assert!(turn.is_err() && !called.get());
    // Otherwise code that waits for the loop would never be notified again.
    assert!(is_readable(events.as_fd(), now_ns() + 20_000 * MS));
    assert_eq!((events.turn(9).called, called.get()), (1, true));
    assert_eq!(events.turn(9).end, Some(End::Done));
}

#[test]
fn a_watchdog_names_who_still_runs() {
    let mut events = Loop::new().expect("files");
    let (found, finds) = mpsc::channel();
    let watchdog = Watchdog::new(&events, Duration::from_millis(1), move |seen| {
        found.send(seen).expect("a receiver");
    });
    let watchdog = watchdog.expect("a thread");
    let stuck = move |context: &mut Context<'_>| {
        // The callback does not end before it was found.
        let seen: Sighting = finds.recv().expect("the watchdog");
        assert_eq!(seen.name, Some(Name::Given("stuck")));
        assert!(seen.for_ns > MS);
        context.stop();
    };
    events.submit(Event::best_effort(0, stuck).named("stuck"));
    assert_eq!(events.run(), End::Stopped);
    // The watchdog does not keep a loop waiting.
    assert_eq!(events.run(), End::Done);
    drop(watchdog);
}

#[test]
fn a_watchdog_that_is_late_names_the_next_one_too() {
    let mut events = Loop::new().expect("files");
    let ((found, finds), (begins, begun)) = (mpsc::channel(), mpsc::channel());
    let watchdog = Watchdog::new(&events, Duration::from_millis(1), move |seen| {
        found.send(seen).expect("a receiver");
        if seen.name == Some(Name::Given("first")) {
            // The watchdog is kept from running until the next callback has run for longer than the
            // first.
            begun.recv().expect("the next begins");
            thread::sleep(Duration::from_millis(20));
        }
    });
    let watchdog = watchdog.expect("a thread");
    let finds = Rc::new(finds);
    for name in ["first", "second"] {
        let (finds, begins) = (finds.clone(), begins.clone());
        let stuck = move |_: &mut Context<'_>| {
            if name == "second" {
                begins.send(()).expect("the watchdog");
            }
            let seen: Sighting = finds.recv_timeout(Duration::from_secs(60)).expect("it is named");
            assert_eq!(seen.name, Some(Name::Given(name)));
        };
        events.submit(Event::best_effort(0, stuck).named(name));
    }
    assert_eq!(events.run(), End::Done);
    drop(watchdog);
}

#[test]
fn a_loop_of_no_number_of_colours_does_not_keep_others_from_theirs() {
    let (colours, mut events) = (Colours::new(1), Loop::new().expect("files"));
    let join = |events: &mut Loop| colours.join(1, events);
    let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| join(&mut events)));
    assert!(refused.is_err() && events.is_empty());
    colours.join(0, &mut events);
    colours.submit(7, 0, |context| context.stop());
    assert_eq!(events.run(), End::Stopped);
}

#[test]
fn loops_on_threads_do_what_is_of_one_colour_in_order_and_beside_others() {
    let loops = Loops::start(3).expect("files");
    let (sender, receiver) = std::sync::mpsc::channel();
    // An event of the first colour waits for one of another colour: so they are called side by
    // side.
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let (first, colours) = (sender.clone(), loops.colours());
    loops.submit(0, 0, move |_| {
        colours.submit(1, 0, move |_| go_on.send(()).expect("it waits"));
        goes_on.recv().expect("another loop calls it");
        first.send((0, 0)).expect("it is heard");
    });
    for number in 1..100_u64 {
        let sender = sender.clone();
        loops.submit(number % 5, 0, move |_| {
            sender.send((number % 5, number)).expect("it is heard")
        });
    }
    let timers = sender.clone();
    let timer = Event::timer(now_ns(), move |_| timers.send((9, 0)).expect("it is heard"));
    loops.handle(2).submit(timer).expect("it is there");
    let heard: Vec<_> = receiver.iter().take(101).collect();
    assert!(heard.contains(&(9, 0)));
    for colour in 0..5 {
        let of = heard.iter().filter(|(of, _)| *of == colour).map(|(_, number)| *number);
        assert!(of.is_sorted(), "{colour}: {heard:?}");
    }
    let called = |stats: &Vec<Stats>| -> u64 { stats.iter().map(|of| of.run.count()).sum() };
    assert!(loops.stop().iter().map(called).sum::<u64>() >= 102);
}

#[test]
fn a_panic_of_a_colour_is_the_callers_when_it_stops_and_others_go_on() {
    let loops = Loops::start(2).expect("files");
    loops.submit(0, 0, |_| std::panic::resume_unwind(Box::new("of a test")));
    let (sender, receiver) = std::sync::mpsc::channel();
    loops.submit(0, 1, move |_| sender.send(()).expect("it is heard"));
    receiver.recv().expect("the other loop has it");
    let stops = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loops.stop()));
    assert!(stops.is_err());
}
