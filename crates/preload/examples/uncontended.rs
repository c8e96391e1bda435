//! Cost of a lock and unlock without contention: the C library's functions beside ours.
//!
//! ```sh
//! cargo build -p antiphon-preload --profile preload
//! cargo run --release -p antiphon-preload --example uncontended -- \
//!     target/preload/libantiphon_preload.so
//! ```
//!
//! Both are called by pointer, in turns, in one process: first while it has a single thread, which
//! the C library knows to use, then with a second one alive. Prints the median and the quartiles of
//! 31 rounds after one that is thrown away, and the ratio of the medians.

use std::ffi::{CStr, CString, c_int, c_void};
use std::time::Instant;

const ROUNDS: usize = 31;
const PAIRS: u32 = 200_000;

/// A lock or unlock function of any kind of object.
type OnLock = unsafe extern "C" fn(*mut c_void) -> c_int;

/// Lock and unlock from one library.
#[derive(Clone, Copy)]
struct Library {
    name: &'static str,
    lock: OnLock,
    unlock: OnLock,
}

/// The lock, and the functions that lock and unlock it.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    lock: &'static CStr,
    unlock: &'static CStr,
    /// The object as it begins; a mutex has 40 bytes, a readers-writer lock 56.
    initial: [u64; 7],
}

/// The kind of a mutex stands at offset 16.
const RECURSIVE: [u64; 7] = [0, 0, libc::PTHREAD_MUTEX_RECURSIVE as u64, 0, 0, 0, 0];
const MUTEX: (&CStr, &CStr) = (c"pthread_mutex_lock", c"pthread_mutex_unlock");
const UNLOCK: &CStr = c"pthread_rwlock_unlock";
const CASES: [Case; 4] = [
    Case { name: "mutex", lock: MUTEX.0, unlock: MUTEX.1, initial: [0; 7] },
    Case { name: "recursive", lock: MUTEX.0, unlock: MUTEX.1, initial: RECURSIVE },
    Case { name: "read", lock: c"pthread_rwlock_rdlock", unlock: UNLOCK, initial: [0; 7] },
    Case { name: "write", lock: c"pthread_rwlock_wrlock", unlock: UNLOCK, initial: [0; 7] },
];

impl Library {
    /// The functions of a case in the library at `path`.
    fn load(name: &'static str, path: &str, case: Case) -> Result<Self, String> {
        let path_c = CString::new(path).map_err(|error| error.to_string())?;
        // SAFETY: a path that ends in zero; the constructors of both libraries may run here.
        let handle = unsafe { libc::dlopen(path_c.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("can't load {path}"));
        }
        Ok(Self { name, lock: find(handle, case.lock)?, unlock: find(handle, case.unlock)? })
    }

    /// Average time of a lock and unlock, in nanoseconds.
    fn round(self, object: &mut [u64; 7]) -> f64 {
        let object = object.as_mut_ptr().cast();
        let begin = Instant::now();
        for _ in 0..PAIRS {
            // SAFETY: only this library has used the object, and only this thread uses it.
            unsafe {
                (self.lock)(object);
                (self.unlock)(object);
            }
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS)
    }
}

fn find(handle: *mut c_void, name: &CStr) -> Result<OnLock, String> {
    // SAFETY: an open library and a name that ends in zero.
    let function = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if function.is_null() {
        return Err(format!("the library does not define {}", name.to_string_lossy()));
    }
    // SAFETY: the functions that are asked for take a pointer to their object, by POSIX.
    Ok(unsafe { std::mem::transmute::<*mut c_void, OnLock>(function) })
}

/// Runs the libraries in turns. Each has an object of its own, with the initial value of the case.
fn compare(threads: &str, path: &str, case: Case) -> Result<(), String> {
    let libraries =
        [Library::load("glibc", "libc.so.6", case)?, Library::load("antiphon", path, case)?];
    let mut objects = [case.initial; 2];
    let mut rounds = [const { Vec::new() }; 2];
    for round in 0..=ROUNDS {
        for ((library, object), rounds) in libraries.iter().zip(&mut objects).zip(&mut rounds) {
            let ns = library.round(object);
            if round > 0 {
                rounds.push(ns);
            }
        }
    }
    let medians = rounds.map(|mut rounds| {
        rounds.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| rounds[ROUNDS * quarter / 4])
    });
    for (library, [low, median, high]) in libraries.iter().zip(medians) {
        let ratio = median / medians[0][1];
        let (case, name) = (format!("{threads}, {}", case.name), library.name);
        println!("{case:<26} {name:<9} {median:6.2} ns  [{low:.2}, {high:.2}]  {ratio:.2}x");
    }
    Ok(())
}

fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("which library? (…/libantiphon_preload.so)")?;
    CASES.into_iter().try_for_each(|case| compare("one thread", &path, case))?;
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || stopped.recv());
    CASES.into_iter().try_for_each(|case| compare("second thread", &path, case))?;
    drop(stop);
    second.join().map(|_| ()).map_err(|_| "the second thread panicked".into())
}
