//! Tests of glances at running threads.

#![cfg(target_arch = "x86_64")]

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use antiphon_linux::glance::modules::with_module;
use antiphon_linux::glance::{Glance, Glances, INSTRUCTION_POINTER, Top, own_id, own_stack};
use antiphon_platform::ThreadId;

/// A thread that gets a CPU occasionally answers within this time.
const LONG: Duration = Duration::from_secs(20);

thread_local! {
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

fn top_of(address: usize) -> usize {
    let (low, high) = STACK.get();
    if (low..high).contains(&address) { high } else { 0 }
}

fn nowhere(_: usize) -> usize {
    0
}

fn take(thread: ThreadId, top: Top, patience: Duration) -> io::Result<Glance> {
    let glances = Glances::new().expect("a signal");
    // SAFETY: `top` is one of the functions above, which return 0 or the end of the thread's stack.
    unsafe { glances.take(thread, top, patience) }
}

/// Runs `look` while another thread, after `first`, spins.
fn beside_one_that_spins(first: fn(), look: impl FnOnce(ThreadId)) {
    let (over, (says, said)) = (AtomicBool::new(false), channel());
    thread::scope(|scope| {
        scope.spawn(|| {
            STACK.set(own_stack().expect("the C library says"));
            first();
            says.send(own_id()).expect("it is awaited");
            while !over.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        look(said.recv().expect("it begins"));
        over.store(true, Relaxed);
    });
}

#[test]
fn a_thread_that_spins_is_seen_and_goes_on() {
    let glances = Glances::new().expect("a signal");
    assert!((libc::SIGRTMIN()..=libc::SIGRTMAX()).contains(&glances.signal()));
    beside_one_that_spins(
        || (),
        |thread| {
            for _ in 0..3 {
                let glance = take(thread, top_of, LONG).expect("it answers");
                assert!(glance.stack.len() > 100);
                let at = glance.registers[INSTRUCTION_POINTER];
                let has_tables = with_module(at, |module| module.frame_header().is_some());
                assert_eq!(has_tables, Some(true), "{at:#x} is in this program");
            }
            // Its stack is not known.
            let error = take(thread, nowhere, LONG).expect_err("nothing is copied");
            assert_eq!(error.kind(), ErrorKind::NotFound);
        },
    );
}

#[test]
fn who_blocks_the_signal_is_not_waited_for_longer_than_that() {
    fn block_all() {
        let mut all = MaybeUninit::uninit();
        // SAFETY: fills a set, and blocks its signals.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
        }
    }
    beside_one_that_spins(block_all, |thread| {
        let error = take(thread, top_of, Duration::from_millis(5)).expect_err("blocked");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
    // The next request is a new one.
    beside_one_that_spins(
        || (),
        |thread| {
            assert!(take(thread, top_of, LONG).is_ok());
        },
    );
}

#[test]
fn a_thread_that_is_gone_is_not_found() {
    let gone = thread::spawn(own_id).join().expect("no panic");
    // A thread can be joined a moment before the kernel forgets it, and takes signals until then.
    while std::fs::exists(format!("/proc/self/task/{}", gone.0)).expect("procfs") {
        thread::yield_now();
    }
    // Its number is given again after all others were.
    let error = take(gone, top_of, LONG).expect_err("it is gone");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn an_address_of_nothing_is_in_no_module() {
    assert_eq!(with_module(1, |_| ()), None);
    let (low, high) = own_stack().expect("the C library says");
    assert!((low..high).contains(&ptr::from_ref(&low).addr()));
}

/// Writable memory is not returned as bytes that never change.
#[test]
fn what_is_written_to_is_not_to_be_had() {
    static WRITTEN: AtomicBool = AtomicBool::new(false);
    WRITTEN.store(true, Relaxed);
    let at = WRITTEN.as_ptr().expose_provenance() as u64;
    assert_eq!(with_module(at, |module| module.from(at).is_some()), Some(false));
    let code = take as *const () as u64;
    assert_eq!(with_module(code, |module| module.from(code).is_some()), Some(true));
}
