//! What a lock and unlock cost that nobody contends for: the C library's functions beside ours.
//!
//! ```sh
//! cargo build -p antiphon-preload --profile preload cargo run --release -p antiphon-preload
//! --example uncontended -- target/preload/libantiphon_preload.so
//! ```
//!
//! Both are called by pointer, in turns, in one process: first while it has a single thread, which
//! the C library knows to use, then with a second one alive. Prints the median and the quartiles of
//! 31 rounds after one that is thrown away, and the ratio of the medians.

use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Instant;

const ROUNDS: usize = 31;
const PAIRS: u32 = 200_000;

type OnMutex = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;

/// Lock and unlock from one library.
#[derive(Clone, Copy)]
struct Library {
    name: &'static str,
    lock: OnMutex,
    unlock: OnMutex,
}

impl Library {
    fn load(name: &'static str, path: &str) -> Result<Self, String> {
        let path_c = CString::new(path).map_err(|error| error.to_string())?;
        // SAFETY: a path that ends in zero; the constructors of both libraries may run here.
        let handle = unsafe { libc::dlopen(path_c.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("can't load {path}"));
        }
        Ok(Self {
            name,
            lock: find(handle, c"pthread_mutex_lock".as_ptr())?,
            unlock: find(handle, c"pthread_mutex_unlock".as_ptr())?,
        })
    }

    /// Nanoseconds that a lock and unlock take on average.
    fn round(self, mutex: &mut libc::pthread_mutex_t) -> f64 {
        let begin = Instant::now();
        for _ in 0..PAIRS {
            // SAFETY: a mutex that this library alone has used, and this thread alone uses.
            unsafe {
                (self.lock)(mutex);
                (self.unlock)(mutex);
            }
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(PAIRS)
    }
}

fn find(handle: *mut c_void, name: *const c_char) -> Result<OnMutex, String> {
    // SAFETY: an open library and a name that ends in zero.
    let function = unsafe { libc::dlsym(handle, name) };
    if function.is_null() {
        return Err("the library does not define the mutex functions".into());
    }
    // SAFETY: both functions have this type by POSIX.
    Ok(unsafe { std::mem::transmute::<*mut c_void, OnMutex>(function) })
}

/// Runs the libraries in turns, with a mutex each that begins as `initial`.
fn compare(case: &str, libraries: [Library; 2], initial: libc::pthread_mutex_t) {
    let mut mutexes = [initial; 2];
    let mut rounds = [const { Vec::new() }; 2];
    for round in 0..=ROUNDS {
        for ((library, mutex), rounds) in libraries.iter().zip(&mut mutexes).zip(&mut rounds) {
            let ns = library.round(mutex);
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
        let name = library.name;
        println!("{case:<26} {name:<9} {median:6.2} ns  [{low:.2}, {high:.2}]  {ratio:.2}x");
    }
}

fn compare_kinds(case: &str, libraries: [Library; 2]) {
    compare(case, libraries, libc::PTHREAD_MUTEX_INITIALIZER);
    let recursive = libc::PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    compare(&format!("{case}, recursive"), libraries, recursive);
}

fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("which library? (…/libantiphon_preload.so)")?;
    let libraries = [Library::load("glibc", "libc.so.6")?, Library::load("antiphon", &path)?];
    compare_kinds("one thread", libraries);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || stopped.recv());
    compare_kinds("second thread", libraries);
    drop(stop);
    second.join().map(|_| ()).map_err(|_| "the second thread panicked".into())
}
