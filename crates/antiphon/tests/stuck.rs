//! Reports of stuck pools, in which all fibers wait; and cases without a report.

use std::hint::black_box;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use antiphon::fiber::{STACK_BYTES, sleep, yield_now};
use antiphon::net::{TcpListener, TcpStream};
use antiphon::pool::{Pool, Stuck};
use antiphon::{Latch, Mutex};

const AFTER: Duration = Duration::from_millis(20);
/// Longer than any wait in a passing test.
const LONG: Duration = Duration::from_secs(60);

/// The parts of a report.
struct Report {
    text: String,
    waiting: usize,
    still_for: Duration,
}

fn fibers(threads: usize) -> (Pool, Receiver<Report>) {
    let (sender, reports) = channel();
    let tell = move |stuck: &Stuck| {
        assert_eq!(stuck.pool, "bank");
        let (text, waiting) = (stuck.to_string(), stuck.census.waiting());
        // The receiver may be gone.
        let _ = sender.send(Report { text, waiting, still_for: stuck.still_for });
    };
    let builder = Pool::builder().threads(threads).name("bank").on_stuck(AFTER, tell);
    // SAFETY: no fiber waits while it makes a thread-local.
    (unsafe { builder.fibers(STACK_BYTES) }.build().expect("fibers"), reports)
}

/// Checks that no report comes, for many times as long as a report takes.
fn nothing_comes(reports: &Receiver<Report>) {
    let told = reports.recv_timeout(AFTER * 20).map(|report| report.text);
    assert_eq!(told, Err(RecvTimeoutError::Timeout));
}

#[inline(never)]
fn transfers(first: &Mutex<u32>, second: &Mutex<u32>, both: &Latch) {
    let mut from = first.lock();
    both.count_down(1);
    both.wait();
    let mut to = second.lock();
    *to += black_box(*from);
    *from = 0;
}

#[test]
fn a_deadlock_is_reported_once_with_its_places() {
    // Not dropped: the drop would wait for the fibers.
    let (pool, reports) = fibers(2);
    let pool = ManuallyDrop::new(pool);
    let accounts = Arc::new((Mutex::new(1), Mutex::new(2), Latch::new(2)));
    for turned in [false, true] {
        let accounts = accounts.clone();
        let _fiber = pool.spawn(move || {
            let (one, other, both) = &*accounts;
            if turned { transfers(other, one, both) } else { transfers(one, other, both) }
        });
    }
    let report = reports.recv_timeout(LONG).expect("a report");
    assert_eq!(report.waiting, 2);
    assert!(report.still_for >= AFTER);
    let text = report.text;
    assert!(text.contains("the pool bank is stuck") && text.contains("wait: 2"), "{text}");
    assert!(text.contains("2 by lock_api::mutex::Mutex<R,T>::lock"), "{text}");
    assert!(text.contains("stuck::transfers"), "{text}");
    for (one, other) in [(1, 2), (2, 1)] {
        let chain = text.lines().find(|line| line.starts_with(&format!("fiber {one}, of bank-")));
        let chain = chain.expect("a line for each");
        assert!(chain.contains("waits for the mutex at 0x"), "{text}");
        assert!(chain.ends_with(&format!("fiber {other} may hold it")), "{text}");
    }
    println!("{text}");
    // No new report comes.
    nothing_comes(&reports);
}

#[test]
fn a_lock_that_a_thread_holds_is_reported_each_time_anew() {
    let (pool, reports) = fibers(1);
    let lock = Arc::new(Mutex::new(0));
    for round in 1..=2 {
        let held = lock.lock();
        let waits = {
            let lock = lock.clone();
            pool.spawn(move || *lock.lock() += 1)
        };
        assert_eq!(reports.recv_timeout(LONG).expect("a report").waiting, 1);
        drop(held);
        waits.join().expect("no panic");
        assert_eq!(*lock.lock(), round);
    }
}

#[test]
fn who_drops_a_stuck_pool_is_told() {
    let (pool, reports) = fibers(1);
    let gate = Arc::new(Latch::new(1));
    let waits = {
        let gate = gate.clone();
        pool.spawn(move || gate.wait())
    };
    let drops = thread::spawn(move || drop(pool));
    assert_eq!(reports.recv_timeout(LONG).expect("a report").waiting, 1);
    gate.count_down(1);
    drops.join().expect("the pool ends");
    waits.join().expect("no panic");
}

#[test]
fn without_fibers_that_wait_nothing_is_said() {
    let (pool, reports) = fibers(2);
    nothing_comes(&reports);
    pool.spawn(yield_now).join().expect("no panic");
    nothing_comes(&reports);
    // There is no report either if one fiber computes, and the others wait for it.
    let gate = Arc::new(Latch::new(1));
    let ((begins, began), (end, ends)) = (channel(), channel::<()>());
    let computes = {
        let gate = gate.clone();
        pool.spawn(move || {
            begins.send(()).expect("it is awaited");
            // The fiber blocks its thread.
            ends.recv().expect_err("nothing is sent");
            gate.count_down(1);
        })
    };
    began.recv().expect("it begins");
    let waits = pool.spawn(move || gate.wait());
    nothing_comes(&reports);
    drop(end);
    computes.join().expect("no panic");
    waits.join().expect("no panic");
    nothing_comes(&reports);
}

#[test]
fn a_pool_that_waits_for_a_time_or_a_socket_is_not_stuck() {
    let (pool, reports) = fibers(2);
    let gate = Arc::new(Latch::new(1));
    let over = Arc::new(AtomicBool::new(false));
    let sleeps = {
        let over = over.clone();
        pool.spawn(move || {
            while !over.load(Relaxed) {
                sleep(AFTER * 3);
            }
        })
    };
    while pool.fibers(0, LONG).waiting() == 0 {}
    let waits = {
        let gate = gate.clone();
        // A deadline that can't be represented never comes.
        pool.spawn(move || _ = gate.wait_for(Duration::MAX))
    };
    nothing_comes(&reports);
    over.store(true, Relaxed);
    sleeps.join().expect("no panic");
    // Now the pool is stuck.
    assert_eq!(reports.recv_timeout(LONG).expect("a report").waiting, 1);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let reads = pool.spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read(&mut [0; 8]).expect("the end")
    });
    nothing_comes(&reports);
    let client = TcpStream::connect(address).expect("it listens");
    nothing_comes(&reports);
    drop(client);
    assert_eq!(reads.join().expect("no panic"), 0);
    gate.count_down(1);
    waits.join().expect("no panic");
}

/// A fiber that unwinds waits without switching away from its stack, and answers there.
#[test]
fn one_that_waits_while_it_unwinds_says_where() {
    struct Locks(Arc<Mutex<u32>>, Arc<Latch>);

    impl Drop for Locks {
        fn drop(&mut self) {
            self.1.count_down(1);
            *self.0.lock() += 1;
        }
    }

    let (pool, _reports) = fibers(1);
    let (lock, began) = (Arc::new(Mutex::new(0)), Arc::new(Latch::new(1)));
    let held = lock.lock();
    let unwinds = {
        let locks = Locks(lock.clone(), began.clone());
        pool.spawn(move || {
            let caught = catch_unwind(AssertUnwindSafe(move || {
                let _locks = locks;
                // Without the panic hook.
                resume_unwind(Box::new(7_u32));
            }));
            caught.expect_err("a panic").downcast::<u32>().is_ok_and(|seven| *seven == 7)
        })
    };
    began.wait();
    let census = loop {
        let census = pool.fibers(10, LONG);
        if census.waiting() == 1 {
            break census;
        }
    };
    assert!(census.to_string().contains("Locks"), "{census}");
    drop(held);
    assert!(unwinds.join().expect("no panic"));
    assert_eq!(*lock.lock(), 1);
}

/// A size of stacks of which there can be only a few.
const HUGE: usize = 1 << 44;

#[test]
fn fibers_that_wait_for_a_task_without_a_stack_are_reported() {
    let (sender, reports) = channel();
    let tell = move |stuck: &Stuck| _ = sender.send((stuck.to_string(), stuck.census.waiting()));
    let builder = Pool::builder().threads(1).on_stuck(AFTER, tell);
    // SAFETY: no fiber waits while it makes a thread-local.
    let pool = unsafe { builder.fibers(HUGE) }.build().expect("one stack, at least");
    // More than there are addresses for.
    let (opens, most) = (Arc::new(Latch::new(1)), (1 << 48) / HUGE);
    let waits = |opens: Arc<Latch>| move || opens.wait();
    let all: Vec<_> = (0..most).map(|_| pool.spawn(waits(opens.clone()))).collect();
    let last = {
        let opens = opens.clone();
        pool.spawn(move || opens.count_down(1))
    };
    let (text, waiting) = reports.recv_timeout(LONG).expect("a report");
    assert!((1..most).contains(&waiting), "{text}");
    assert!(text.contains("can't begin: no address space for more stacks"), "{text}");
    assert!(text.contains("and tasks wait for a stack"), "{text}");
    // No task is begun while no stack is available.
    let began = pool.stats().tasks;
    thread::sleep(AFTER * 5);
    assert_eq!(pool.stats().tasks, began);
    opens.count_down(1);
    all.into_iter().chain([last]).for_each(|task| task.join().expect("no panic"));
}
