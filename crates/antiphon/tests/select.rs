//! Selects on threads, fibers and both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};
use std::thread;
use std::time::{Duration, Instant};

use antiphon::channel::{Receiver, Sender, bounded};
use antiphon::fiber::{self, STACK_BYTES};
use antiphon::pool::Pool;
use antiphon::select::{Lot, Select};
use antiphon::{Event, EventCount, Latch};

fn fibers(threads: usize) -> Pool {
    // SAFETY: no fiber waits while it makes a thread-local.
    let builder = unsafe { Pool::builder().threads(threads).fibers(STACK_BYTES) };
    builder.build().expect("fibers")
}

const SOON: Duration = Duration::from_millis(5);

#[test]
fn each_kind_is_had_when_it_is_there() {
    let (sender, receiver) = bounded::<u32>(1);
    let (event, latch, count) = (Event::new(), Latch::new(1), EventCount::new());
    let (pool, ready) = (Pool::new(1).expect("a pool"), AtomicU32::new(0));
    let (go, done) = bounded(1);
    let mut task = pool.spawn(move || done.recv().map(|()| 7).expect("told"));
    let mut value = Some(3);
    let mut one = |may_send: bool| {
        let mut none = None;
        Select::new()
            .recv(&receiver, |value| format!("{value:?}"))
            .send(&sender, if may_send { &mut value } else { &mut none }, |sent| {
                format!("{sent:?}")
            })
            .event(&event, || "event".to_owned())
            .latch(&latch, || "latch".to_owned())
            .when(&count, || ready.swap(0, Relaxed) > 0, || "count".to_owned())
            .join(&mut task, |returned| format!("{:?}", returned.ok()))
            .wait_for(SOON)
    };
    assert_eq!(one(false), None);
    assert_eq!(one(true).as_deref(), Some("Ok(())"));
    assert_eq!(one(true).as_deref(), Some("Ok(3)"));
    assert_eq!(one(true), None, "it was sent");
    event.set();
    assert_eq!(one(false).as_deref(), Some("event"));
    ready.store(1, Relaxed);
    assert_eq!(one(false).as_deref(), Some("count"));
    go.send(()).expect("a receiver");
    while one(false).as_deref() != Some("Some(7)") {}
    // A case that was taken is not taken again.
    assert_eq!(one(false).as_deref(), Some("None"));
    assert!(!event.is_set() && receiver.is_empty());
}

#[test]
fn a_latch_is_open_for_good_and_a_closed_channel_is_ready() {
    let latch = Latch::new(1);
    let open = || Select::new().latch(&latch, || ()).try_wait().is_some();
    assert!(!open());
    latch.count_down(1);
    assert!(open() && open());

    let (sender, receiver) = bounded::<u32>(1);
    sender.send(1).expect("room");
    drop(sender);
    let receive = || Select::new().recv(&receiver, |value| value.ok()).wait();
    assert_eq!((receive(), receive(), receive()), (Some(1), None, None));

    let (sender, receiver) = bounded::<u32>(1);
    drop(receiver);
    let mut value = Some(5);
    assert!(Select::new().send(&sender, &mut value, |sent| sent.is_err()).wait());
    assert_eq!(value, Some(5), "refused");
}

#[test]
#[should_panic = "a select of nothing"]
fn nothing_is_not_waited_for() {
    Select::<()>::new().wait();
}

#[test]
fn nothing_comes_until_the_deadline() {
    let began = Instant::now();
    assert_eq!(Select::<()>::new().wait_for(SOON), None);
    let (_sender, receiver) = bounded::<u32>(1);
    let deadline = Instant::now() + SOON;
    assert_eq!(Select::new().recv(&receiver, |_| ()).wait_until(deadline), None);
    assert!(began.elapsed() >= 2 * SOON);
}

/// All cases are always ready: each is chosen equally often.
#[test]
fn the_choice_is_fair() {
    const TURNS: usize = 4_000;
    let ends = [0, 1, 2].map(|_| bounded::<()>(2));
    let mut chosen = [0; 3];
    for _ in 0..TURNS {
        ends.iter().for_each(|(sender, _)| _ = sender.try_send(()));
        chosen[Select::new().recv_each(ends.iter().map(|ends| &ends.1), |at, _| at).wait()] += 1;
    }
    // A greater difference is extremely improbable.
    let fair = TURNS / 3 - TURNS / 12..TURNS / 3 + TURNS / 12;
    assert!(chosen.iter().all(|times| fair.contains(times)), "{chosen:?}");
}

#[test]
fn a_seed_chooses_the_same_and_another_one_does_not() {
    let chosen = |seed| {
        let (lot, ends) = (Lot::new(seed), [0, 1].map(|_| bounded::<()>(64)));
        ends.iter().for_each(|ends| (0..64).for_each(|_| ends.0.send(()).expect("room")));
        let one = || Select::seeded(&lot).recv(&ends[0].1, |_| 0).recv(&ends[1].1, |_| 1).wait();
        (0..64).map(|_| one()).collect::<Vec<_>>()
    };
    assert_eq!(chosen(1), chosen(1));
    assert_ne!(chosen(1), chosen(2));
}

#[test]
fn more_than_a_few_are_waited_for() {
    let ends: Vec<_> = (0..40).map(|_| bounded::<usize>(1)).collect();
    let pool = fibers(1);
    let (senders, receivers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
    let all = pool.spawn(move || {
        let one = |_| {
            Select::new().recv_each(&receivers, |at, value| (at, value.expect("a value"))).wait()
        };
        (0..400).map(one).collect::<Vec<_>>()
    });
    (0..400).for_each(|turn| senders[turn * 7 % 40].send(turn).expect("received"));
    let mut all = all.join().expect("no panic");
    assert!(all.iter().all(|&(at, turn)| at == turn * 7 % 40));
    all.sort_by_key(|&(_, turn)| turn);
    assert!(all.iter().map(|&(_, turn)| turn).eq(0..400));
}

/// Each value arrives once, although all are sent and received by selects with other cases.
fn exchange(run: impl Fn(Box<dyn FnOnce() + Send>), each: usize) -> usize {
    let (ends, stop) = ([0, 1].map(|_| bounded::<usize>(2)), Arc::new(Latch::new(1)));
    let (sum, sent) = (Arc::new(AtomicUsize::new(0)), Arc::new(Latch::new(2)));
    for me in 0..2 {
        let (senders, sent) = ([ends[0].0.clone(), ends[1].0.clone()], sent.clone());
        run(Box::new(move || {
            let mut next = (0..each).map(|number| me * each + number + 1);
            let (mut here, mut there) = (next.next(), next.next());
            while here.is_some() || there.is_some() {
                Select::new()
                    .send(&senders[0], &mut here, |sent| sent.expect("received"))
                    .send(&senders[1], &mut there, |sent| sent.expect("received"))
                    .wait();
                here = here.or_else(|| next.next());
                there = there.or_else(|| next.next());
            }
            sent.count_down(1);
        }));
    }
    let ended = Arc::new(Latch::new(2));
    for me in 0..2 {
        let (receivers, stop) = ([ends[0].1.clone(), ends[1].1.clone()], stop.clone());
        let (sum, ended) = (sum.clone(), ended.clone());
        run(Box::new(move || {
            let mut patient = true;
            let receive = || {
                Select::new()
                    .recv(&receivers[me], |value| value.ok())
                    .recv(&receivers[1 - me], |value| value.ok())
                    .latch(&stop, || None)
                    .wait()
            };
            while patient {
                match receive() {
                    Some(value) => _ = sum.fetch_add(value, Relaxed),
                    None => patient = false,
                }
            }
            // The values that are left when the receiver is told to stop.
            for receiver in &receivers {
                while let Ok(value) = receiver.try_recv() {
                    sum.fetch_add(value, Relaxed);
                }
            }
            ended.count_down(1);
        }));
    }
    drop(ends);
    sent.wait();
    stop.count_down(1);
    ended.wait();
    sum.load(Relaxed)
}

#[test]
fn no_value_is_lost_among_threads() {
    assert_eq!(exchange(|work| _ = thread::spawn(work), 2_000), (1..=4_000).sum());
}

#[test]
fn no_value_is_lost_among_fibers() {
    for threads in [1, 2] {
        let pool = fibers(threads);
        assert_eq!(exchange(|work| _ = pool.spawn(work), 2_000), (1..=4_000).sum());
    }
}

#[test]
fn no_value_is_lost_between_threads_and_fibers() {
    let (pool, turn) = (fibers(1), AtomicU32::new(0));
    let run = |work: Box<dyn FnOnce() + Send>| {
        if turn.fetch_add(1, Relaxed).is_multiple_of(2) {
            pool.spawn(work);
        } else {
            thread::spawn(work);
        }
    };
    assert_eq!(exchange(run, 2_000), (1..=4_000).sum());
}

/// Waiters for either event, and waiters for one, together receive all sets.
#[test]
fn a_set_that_is_not_used_is_another_waiters() {
    const TURNS: u32 = 2_000;
    let (both, taken) = ([Event::new(), Event::new()], [Event::new(), Event::new()]);
    let pool = fibers(1);
    let (stop, seen) = (Latch::new(1), AtomicU32::new(0));
    pool.scope(|scope| {
        for me in 0..4 {
            let (both, taken, stop, seen) = (&both, &taken, &stop, &seen);
            scope.spawn(move || {
                loop {
                    let select = Select::new().latch(stop, || None);
                    let at = match me {
                        0 | 1 => select.event(&both[me], || Some(me)).wait(),
                        _ => {
                            let either = select.event(&both[0], || Some(0));
                            either.event(&both[1], || Some(1)).wait()
                        }
                    };
                    let Some(at) = at else { return };
                    seen.fetch_add(1, Relaxed);
                    taken[at].set();
                }
            });
        }
        for _ in 0..TURNS {
            both.iter().for_each(Event::set);
            taken.iter().for_each(Event::wait);
        }
        stop.count_down(1);
    });
    assert_eq!(seen.load(Relaxed), 2 * TURNS);
    assert!(!both.iter().any(Event::is_set));
}

/// Values arrive around the deadlines, sometimes before and sometimes after.
#[test]
fn what_comes_at_the_deadline_is_had_or_there() {
    const TURNS: usize = 500;
    let ends: [(Sender<usize>, Receiver<usize>); 2] = [bounded(TURNS), bounded(TURNS)];
    let receive = |limit: Duration| {
        Select::new().recv_each(ends.iter().map(|ends| &ends.1), |_, value| value).wait_for(limit)
    };
    let sum = thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..TURNS {
                ends[turn % 2].0.send(turn).expect("room");
                if turn % 8 == 0 {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        let (mut sum, mut had) = (0, 0);
        while had < TURNS {
            if let Some(value) = receive(Duration::from_micros(20)) {
                sum += value.expect("a sender");
                had += 1;
            }
        }
        sum
    });
    assert_eq!(sum, (0..TURNS).sum());
}

#[test]
fn a_task_that_ends_is_had_by_one_of_many_waits() {
    let pool = fibers(2);
    for turn in 0..200 {
        let (go, told) = bounded::<()>(1);
        let mut handle = pool.spawn(move || told.recv().map(|()| turn).expect("told"));
        let (other, never) = bounded::<()>(1);
        let waiting = pool.spawn(move || {
            let early = Select::new().recv(&never, |_| None).join(&mut handle, Some).try_wait();
            assert!(early.flatten().is_none_or(|returned| returned.is_ok()));
            let select = Select::new().recv(&never, |_| 0);
            select.join(&mut handle, |returned| returned.unwrap_or(usize::MAX)).wait()
        });
        go.send(()).expect("a receiver");
        let returned = waiting.join().expect("no panic");
        assert!(returned == turn || returned == usize::MAX);
        drop(other);
    }
}

/// One source is always ready; another is notified by a task that must run on the same thread.
#[test]
fn what_is_always_ready_lets_others_run() {
    let pool = fibers(1);
    let ((gone, closed), (said, heard)) = (bounded::<u32>(1), bounded(1));
    drop(gone);
    let waits = pool.spawn(move || {
        let mut refused = 0_u64;
        loop {
            let select = Select::new().recv(&closed, |_| None).recv(&heard, Result::ok);
            match select.wait() {
                Some(number) => return (number, refused),
                None => refused += 1,
            }
        }
    });
    let says = pool.spawn(move || said.send(42_u32));
    let (number, _) = waits.join().expect("no panic");
    assert_eq!(number, 42);
    says.join().expect("no panic").expect("it is heard");
}

#[test]
fn who_is_always_served_lets_others_run_by_the_count() {
    const TURNS: u32 = 20;
    let (pool, turns) = (fibers(1), Arc::new(AtomicU32::new(0)));
    let begun = Arc::new(Latch::new(1));
    let (gone, closed) = bounded::<u32>(1);
    drop(gone);
    let (beside, first) = (turns.clone(), begun.clone());
    let others = pool.spawn(move || {
        first.wait();
        while beside.fetch_add(1, Relaxed) < TURNS {
            fiber::yield_now();
        }
    });
    let waits = pool.spawn(move || {
        begun.count_down(1);
        let served = (0..100_000).take_while(|_| {
            let refused = Select::new().recv(&closed, |received| received.is_err());
            assert!(refused.wait() && closed.recv().is_err());
            turns.load(Relaxed) < TURNS
        });
        served.count()
    });
    let served = waits.join().expect("no panic");
    others.join().expect("no panic");
    // Each round is two steps, and each 128 steps give the other task a turn.
    assert!(served <= 64 * (TURNS as usize + 2), "{served} steps for {TURNS} turns");
}

#[test]
fn a_time_comes_beside_others() {
    let (said, heard) = bounded(1);
    let begun = Instant::now();
    let next = |at| Select::new().recv(&heard, Result::ok).timer(at, || None);
    let at = begun + Duration::from_millis(20);
    assert_eq!(next(at).wait(), None);
    assert!(Instant::now() >= at, "not before its time");
    assert_eq!(next(at).try_wait(), Some(None), "it has come for good");
    said.send(7_u32).expect("it is heard");
    assert_eq!(next(Instant::now() + Duration::from_secs(3600)).wait(), Some(7));
    let late = Instant::now() + Duration::from_secs(3600);
    assert_eq!(next(late).wait_for(Duration::from_millis(1)), None, "the wait is over first");
    // Both are ready: each is chosen sometimes.
    let chosen = |_| {
        said.try_send(7).ok();
        next(begun).wait().is_some()
    };
    let received = (0..200).map(chosen).filter(|&it| it).count();
    assert!((40..=160).contains(&received), "{received} of 200");
}

#[test]
fn a_fiber_is_suspended_until_the_first_of_two_times() {
    let pool = fibers(1);
    let begun = Instant::now();
    let waits = pool.spawn(move || {
        let (soon, late) = (begun + Duration::from_millis(10), begun + Duration::from_secs(3600));
        Select::new().timer(late, || "late").timer(soon, || "soon").wait()
    });
    // This wait does not block its thread.
    assert_eq!(pool.spawn(|| 6 * 7).join().ok(), Some(42));
    assert_eq!(waits.join().ok(), Some("soon"));
    assert!(begun.elapsed() >= Duration::from_millis(10));
}
