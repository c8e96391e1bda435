//! `LD_PRELOAD` library that runs unmodified programs on Antiphon's locks.
//!
//! It defines the functions of `pthread.h` on mutexes, readers-writer locks, condition variables
//! and spinlocks, and so replaces the C library's in every dynamically linked object. `README.md`
//! beside this crate says what it replaces, what it forwards and what it can't reach.
//!
//! | module | contents |
//! |---|---|
//! | `entry` | the functions that programs call |
//! | `mutex`, `rwlock`, `cond`, `shared`, `spin` | the functions of each kind of lock |
//! | `theirs` | the same functions where the C library keeps the lock |
//! | `abi` | the C library's objects, and our fields in them |
//! | `clocks` | the clocks that the program sees, by which its deadlines are judged |
//! | `mode` | what this process wants, decided once |
//! | `asan` | the option for AddressSanitizer |
//! | `aside` | tools under which nothing is replaced |
//! | `real` | the C library's own functions |
//! | `lookup` | `dlsym` and `dlvsym`, which find ours |
//! | `objects` | the objects that the loader has loaded, and their tables |
//! | `thread` | the state of each thread, and whether there is more than one |
//! | `sharing` | functions by which a program comes to share thread-local state, or to bypass us |
//! | `mappings` | functions by which a program comes to share memory with other processes |
//! | `exec` | programs that this one executes, for the report |
//! | `filter` | filters of system calls, detected before they are installed |
//! | `inherit` | whether executed programs get the library, too |
//! | `sites` | policies by call site |
//! | `door` | files that can't be opened by their path |
//! | `recorder`, `maps`, `pieces`, `ticks` | contents of a recording; threads created and joined |
//! | `pretended` | what tests ask a library that pretends to another machine |
//! | `unwind` | the return addresses on a stack |
//! | `shim.c` | the sleep that can be cancelled, thread-local storage |
//!
//! The library never prints, starts no thread, installs no signal handler, and needs no
//! initialisation: a lock works before its constructor and after the last destructor.

use core::ffi::{c_char, c_int};

use antiphon_linux::Linux;
use antiphon_platform::Hints as _;

mod abi;
mod asan;
mod aside;
mod clocks;
mod cond;
mod door;
mod entry;
mod exec;
mod filter;
mod inherit;
mod lookup;
mod mappings;
mod maps;
mod mode;
mod mutex;
mod objects;
mod pieces;
#[cfg(feature = "pretend")]
mod pretended;
mod priority;
mod real;
mod recorder;
mod rwlock;
mod shared;
mod sharing;
mod sites;
mod spin;
mod sys;
mod theirs;
mod thread;
mod ticks;
mod unwind;

/// Decides what this process wants, before the program's own code runs.
extern "C" fn load(_: c_int, _: *const *const c_char, environment: *mut *const c_char) {
    // The objects' tables are read now, while no object can be unloaded.
    lookup::settle();
    unwind::settle();
    real::find_all();
    if !mode::disabled() {
        exec::elsewhere::find_library();
    }
    if mode::aside() {
        recorder::steps_aside();
        return inherit::settle(environment);
    }
    if !mode::theirs() {
        clocks::find();
        // Reads data now for which a slow path would otherwise open files.
        antiphon_linux::survey();
        antiphon_linux::ask_when_told();
        sites::start();
        if mode::light_wanted() {
            // If it is not available, the exchange form stays, and the recording says so.
            let _ = antiphon_linux::light::enable_light();
        }
        if mode::sections_wanted() {
            // If nothing heeds them here, nothing is told.
            let _ = antiphon_linux::section::enable_sections();
        }
    }
    if !mode::disabled() {
        mode::settle(recorder::start());
    }
    // Where sections are told, the only thread of a process tells them, too: there may be more
    // threads before the end of one.
    if !Linux::heeds_sections() {
        thread::find_single(real::single_threaded());
    }
    // SAFETY: the handler accesses only its thread's state. If it can't be registered, `__owner` of
    // normal mutexes names the parent's thread in children, which has no effect.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    inherit::settle(environment);
}

/// Called in the child of a fork.
extern "C" fn forked() {
    thread::forked();
    antiphon_linux::forked();
    if antiphon_linux::filtered() {
        // The process id is known only as the id of this thread, its first.
        recorder::enter();
    }
}

/// Makes the loader call [`load`].
#[used]
// SAFETY: the section holds pointers to functions of this type, each of which the loader calls
// once, with the arguments of `main`.
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn(c_int, *const *const c_char, *mut *const c_char) = load;
