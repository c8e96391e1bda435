//! The parts: what a process of a case does. Each says in one line what it has seen.

use std::ffi::CStr;
use std::io;
use std::mem::zeroed;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::scope;
use std::time::Duration;

use antiphon_hints::now_ns;
use antiphon_linux::Linux;
use antiphon_linux::light::enable_light;
use antiphon_linux::section::{Listener, enable_sections};
use antiphon_platform::{Hints as _, LightUnlock as _};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};

use crate::offender;
use crate::start::Failure;
use crate::thread::{become_conductor, sleep_until, spin_until, stop_after};

/// The argument by which this program plays a part.
pub const VERB: &str = "part";

type Mutex = ShflMutex<Linux>;
type Spinlock = ShflSpin<Linux>;

/// Plays a part.
pub fn run(name: &str) -> ExitCode {
    let done = match name {
        "found" => found(),
        "refused" => refused(),
        "whichever" => whichever(),
        "spinlock off" => holders::<Spinlock>(false),
        "spinlock on" => holders::<Spinlock>(true),
        "mutex off" => holders::<Mutex>(false),
        "mutex on" => holders::<Mutex>(true),
        "cost off" => cost(false),
        "cost on" => cost(true),
        "light" => light(),
        "told" => told(),
        "offender" => offend(),
        "fork" => fork(),
        "another" => another(),
        other => Err(format!("no part {other:?}").into()),
    };
    match done {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// The version of the C library.
fn glibc() -> String {
    // SAFETY: returns a constant text with an end.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

/// Turns the extension on for this process.
fn listen() -> Result<(), Failure> {
    match enable_sections() {
        Ok(Listener::SliceExtension) => Ok(()),
        other => Err(format!("{}: sections are heeded by {other:?}", glibc()).into()),
    }
}

fn found() -> Result<String, Failure> {
    listen()?;
    Ok(format!("the extension, under {}", glibc()))
}

/// Without the extension nothing is told, and locks work.
fn refused() -> Result<String, Failure> {
    if enable_sections().is_ok() || Linux::heeds_sections() {
        return Err("something heeds sections here".into());
    }
    works()?;
    Ok(format!("no extension, under {}", glibc()))
}

/// The extension is there from glibc 2.41 on.
fn whichever() -> Result<String, Failure> {
    let version = glibc();
    let number = version.rsplit('.').next().and_then(|minor| minor.parse::<u32>().ok());
    let is_new = number.ok_or("a version without a number")? >= 41;
    if is_new && found().is_ok() { found() } else { refused() }
}

/// The time of a section, and of what is between two.
const SECTION_NS: u64 = 2_000;
/// A section that lasts longer was preempted, by the number of instructions: a switch to another
/// thread and back takes more, also if that one only finds the lock taken, and a tick less.
const GAP_NS: u64 = 7_000;

/// Two threads on one CPU, each in sections for half of its time.
fn holders<L: Lock>(is_told: bool) -> Result<String, Failure> {
    if is_told {
        listen()?;
    }
    become_conductor()?;
    let (lock, stop) = (L::NEW, AtomicBool::new(false));
    let (held, inside, all) = scope(|threads| -> Result<_, Failure> {
        let both = [(); 2].map(|()| threads.spawn(|| hold(&lock, &stop)));
        stop_after(Duration::from_secs(2), &stop);
        let mut sums = (0, 0, 0);
        for one in both {
            let (held, inside, all) = one.join().map_err(|_| "a thread panicked")?;
            sums = (sums.0 + held, sums.1 + inside, sums.2 + all);
        }
        Ok(sums)
    })?;
    Ok(format!("{held} sections, preempted inside {inside} of {all}"))
}

/// Returns how many sections there were, in how many of them the thread was preempted, and how
/// often it was in all.
fn hold<L: Lock>(lock: &L, stop: &AtomicBool) -> (u64, u64, u64) {
    let (mut held, mut inside) = (0, 0);
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Relaxed) {
        lock.lock();
        let begin = now_ns();
        spin_until(begin + SECTION_NS);
        let took_ns = now_ns() - begin;
        // SAFETY: locked above.
        unsafe { lock.unlock() };
        held += 1;
        inside += u64::from(took_ns > GAP_NS);
        spin_until(now_ns() + SECTION_NS);
    }
    (held, inside, preemptions())
}

/// How often the calling thread was preempted.
fn preemptions() -> u64 {
    // SAFETY: all zero is a record.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: writes one record.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nivcsw as u64
}

/// The time of a free mutex's lock and unlock: where time counts instructions, their number.
fn cost(is_told: bool) -> Result<String, Failure> {
    const TIMES: u64 = 20_000;
    if is_told {
        listen()?;
    }
    become_conductor()?;
    let lock = Mutex::NEW;
    let mut least = u64::MAX;
    for _ in 0..5 {
        let begin = now_ns();
        for _ in 0..TIMES {
            lock.lock();
            // SAFETY: locked above.
            unsafe { lock.unlock() };
        }
        least = least.min((now_ns() - begin) / TIMES);
    }
    Ok(least.to_string())
}

/// The light unlock excludes, and loses no waiter that sleeps.
fn light() -> Result<String, Failure> {
    enable_light().map_err(|_| format!("no light unlock under {}", glibc()))?;
    let rounds = works()?;
    Ok(format!("light unlock under {}: {rounds} sections", glibc()))
}

/// So does telling sections.
fn told() -> Result<String, Failure> {
    listen()?;
    let rounds = works()?;
    Ok(format!("told under {}: {rounds} sections", glibc()))
}

/// Four threads of a mutex for a second; some sections are long, so that waiters sleep. Returns the
/// number of sections.
fn works() -> Result<u64, Failure> {
    become_conductor()?;
    let is_light = Linux::light();
    let (lock, stop, count) = (Mutex::NEW, AtomicBool::new(false), AtomicU64::new(0));
    let sum = scope(|threads| -> Result<u64, Failure> {
        let work = || {
            let mut own = 0;
            // Relaxed, here and below: the lock orders the count.
            while !stop.load(Relaxed) {
                lock.lock();
                let before = count.load(Relaxed);
                if own % 64 == 0 {
                    sleep_until(now_ns() + 50_000);
                }
                count.store(before + 1, Relaxed);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
                own += 1;
            }
            (own, Linux::light() == is_light)
        };
        let all = [(); 4].map(|()| threads.spawn(work));
        stop_after(Duration::from_secs(1), &stop);
        let mut sum = 0;
        for one in all {
            let (own, is_as_the_first) = one.join().map_err(|_| "a thread panicked")?;
            if !is_as_the_first {
                return Err("a thread unlocks otherwise than the first".into());
            }
            sum += own;
        }
        Ok(sum)
    })?;
    let count = count.into_inner();
    if count == sum && sum > 0 { Ok(sum) } else { Err(format!("{count} of {sum} counted").into()) }
}

/// Makes a system call in a sequence, in glibc's area or, if that is not registered, in one of 32
/// bytes.
fn offend() -> Result<String, Failure> {
    let area = offender::area().ok_or("glibc has no areas")?;
    let is_complete = offender::offend(if register_own().is_ok() { own_area() } else { area });
    Ok(if is_complete { "completed" } else { "aborted" }.to_owned())
}

/// The child of a fork is heeded as its parent is.
fn fork() -> Result<String, Failure> {
    listen()?;
    let lock = Mutex::NEW;
    lock.lock();
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the child's copy of the lock is locked by its only thread.
        unsafe { lock.unlock() };
        lock.lock();
        let code = i32::from(!is_asking() || listen().is_err());
        // SAFETY: ends the child.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: writes one number.
    if unsafe { libc::waitpid(child, &mut status, 0) } != child {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: locked above.
    unsafe { lock.unlock() };
    if status == 0 && !is_asking() {
        return Ok("the child of a fork is heeded, too".to_owned());
    }
    Err(format!("the child ended with {status:#x}").into())
}

/// Whether the calling thread asks the kernel for an extension at present.
fn is_asking() -> bool {
    let request = |area: usize| std::ptr::with_exposed_provenance::<u8>(area + 28);
    // SAFETY: a byte of the calling thread's area, which glibc has registered.
    offender::area().is_some_and(|area| unsafe { request(area).read_volatile() } != 0)
}

/// An area of 32 bytes, as an allocator registers.
#[repr(C, align(32))]
struct Own([AtomicU64; 4]);

static OWN: Own = Own([const { AtomicU64::new(0) }; 4]);

fn own_area() -> usize {
    (&raw const OWN).expose_provenance()
}

/// Registers it for the calling thread.
fn register_own() -> io::Result<()> {
    // SAFETY: the area is used by the first thread alone, and lives for ever.
    let done = unsafe { libc::syscall(libc::SYS_rseq, own_area(), 32, 0, 0x5305_3053_u32) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn another() -> Result<String, Failure> {
    register_own()?;
    if enable_light().is_ok() || enable_sections().is_ok() {
        return Err("glibc's area is used, which is not registered".into());
    }
    works()?;
    let [ids, sequence, ..] = OWN.0.each_ref().map(|word| word.load(Relaxed));
    let (first, cpu) = (ids as u32, (ids >> 32) as u32);
    if sequence != 0 || first != cpu || cpu > 1_000 {
        return Err(format!("the area was changed: {ids:#x}, {sequence:#x}").into());
    }
    Ok("left alone, and nothing is used that is not registered".to_owned())
}
