//! Tests of light mode: a section stores or sees the flag, never neither; and the threads that may
//! use it.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::thread;

use antiphon_linux::light::{FENCES_PER_SECOND, enable_light, renounce};
use antiphon_linux::{Linux, U8, U16};
use antiphon_platform::{Atomic, LightUnlock as _};
use support::{FORKS, in_child};

/// Detects the required features of the machine without the code under test.
fn machine_has_rseq() -> bool {
    // SAFETY: the name is a zero-terminated string.
    let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    // SAFETY: null, or glibc's constant.
    cfg!(target_arch = "x86_64") && unsafe { size.cast::<u32>().as_ref() }.is_some_and(|&s| s != 0)
}

fn enabled() -> bool {
    let before = Linux::fenced();
    let enabled = enable_light().is_ok();
    assert_eq!(enabled, machine_has_rseq(), "probing finds what the machine has");
    assert_eq!((enabled, enabled), (Linux::light(), Linux::fenced()));
    assert!(!before, "a process starts in exchange mode");
    enabled
}

// The tests run in children that enable the mode themselves, because it can't be disabled.

#[test]
fn stores_unless_the_flag_is_up() {
    assert!(in_child(FORKS[0].1, || {
        !enabled() || {
            let (word, flag) = (U8::ZERO, U16::ZERO);
            word.store(1, Relaxed);
            // An abort is legal each time, but not every time. SAFETY: both words are alive.
            let stored = (0..1000).any(|_| unsafe { Linux::store_unless(&word, 7, &flag) });
            flag.store(1 << 8, Relaxed);
            // SAFETY: both words are alive.
            let again = (0..1000).any(|_| unsafe { Linux::store_unless(&word, 9, &flag) });
            stored && !again && word.load(Relaxed) == 7
        }
    }));
}

const ROUNDS: u32 = FENCES_PER_SECOND / 2;
const LOCKED: u8 = 0;
const FREE: u8 = 7;

static FLAG: U16 = U16::ZERO;
static ROUND: AtomicU32 = AtomicU32::new(0);
static STORED: AtomicBool = AtomicBool::new(false);
static ANSWERED: AtomicU32 = AtomicU32::new(0);

/// A word for each round, in a page that was never touched: the store then takes a page fault,
/// which keeps the unlocker between its load of the flag and its store for long enough to be
/// interrupted.
fn words() -> &'static [[U8; 4096]] {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let length = ROUNDS as usize * 4096;
    // SAFETY: new memory, never unmapped; zero bytes are words.
    unsafe {
        let at = libc::mmap(core::ptr::null_mut(), length, rights, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        libc::madvise(at, length, libc::MADV_NOHUGEPAGE);
        core::slice::from_raw_parts(at.cast(), ROUNDS as usize)
    }
}

/// Waits for a round: promptly if the other thread runs, and patiently if it does not.
fn await_round(word: &AtomicU32, round: u32) {
    for turn in 0_u32.. {
        if word.load(Acquire) == round {
            return;
        }
        if turn < 2_000 { core::hint::spin_loop() } else { thread::yield_now() }
    }
}

fn unlock_lightly(words: &[[U8; 4096]]) {
    assert!(Linux::light(), "each thread of glibc's may");
    for (round, page) in (1..).zip(words) {
        await_round(&ROUND, round);
        // SAFETY: neither is ever unmapped.
        let stored = unsafe { Linux::store_unless(&page[0], FREE, &FLAG) };
        STORED.store(stored, Relaxed);
        ANSWERED.store(round, Release);
    }
}

/// One thread unlocks lightly in a loop; the other raises the flag, fences and checks: after the
/// fence, the word is already free, or the unlocker does not store.
fn race() -> bool {
    let words = words();
    let unlocker = thread::spawn(|| unlock_lightly(words));
    let mut lost = 0;
    for (round, page) in (1..).zip(words) {
        FLAG.store(0, Relaxed);
        ROUND.store(round, Release);
        for _ in 0..round % 64 {
            core::hint::spin_loop();
        }
        FLAG.store(1, Relaxed);
        let fenced = Linux::heavy_fence().is_ok();
        let locked = page[0].load(Relaxed) == LOCKED;
        await_round(&ANSWERED, round);
        lost += u32::from(fenced && locked && STORED.load(Relaxed));
    }
    unlocker.join().is_ok() && lost == 0
}

#[test]
fn a_fence_and_a_store_never_miss_each_other() {
    assert!(in_child(FORKS[0].1, || !enabled() || race()));
}

#[test]
fn a_child_of_a_fork_stays_light_and_can_fence() {
    assert!(in_child(FORKS[0].1, || {
        !enabled()
            || FORKS.into_iter().all(|(_, fork)| {
                in_child(fork, || Linux::light() && Linux::fenced() && Linux::heavy_fence().is_ok())
            })
    }));
}

/// A thread that `clone` makes with its own, empty thread-local state is not registered.
#[test]
fn a_thread_without_registration_is_not_light() {
    assert!(in_child(FORKS[0].1, || {
        !enabled() || {
            let unregistered = thread::spawn(|| {
                // As after a raw clone: the kernel does not know this thread's area. SAFETY: the
                // names are zero-terminated strings.
                let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()) };
                let thread: *mut u8;
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the thread pointer.
                unsafe {
                    core::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) thread);
                }
                #[cfg(not(target_arch = "x86_64"))]
                {
                    thread = core::ptr::null_mut();
                }
                // SAFETY: glibc's constant: light mode is on, so it is there.
                let area = thread.wrapping_offset(unsafe { *offset.cast::<isize>() });
                // SAFETY: unregisters this thread's area, which glibc need not know.
                let done = unsafe { libc::syscall(libc::SYS_rseq, area, 32, 1, 0x5305_3053) };
                done == 0 && !Linux::light() && !Linux::light()
            });
            unregistered.join().unwrap_or(false)
        }
    }));
}

#[test]
fn who_renounces_is_not_light_and_others_are() {
    assert!(in_child(FORKS[0].1, || {
        !enabled() || {
            renounce();
            let others = thread::spawn(Linux::light).join().unwrap_or(false);
            !Linux::light() && others && Linux::fenced()
        }
    }));
    // Before the switch, too.
    assert!(in_child(FORKS[0].1, || {
        renounce();
        enable_light().is_err() && !Linux::light()
    }));
}

#[test]
fn fences_beyond_the_ration_are_refused() {
    assert!(in_child(FORKS[0].1, || {
        // Three seconds' worth take less than that, on any machine that is not stuck.
        !enabled() || (0..3 * FENCES_PER_SECOND).any(|_| Linux::heavy_fence().is_err())
    }));
}
