//! Peers from optional shared libraries: nsync and Abseil, opened at run time.
//!
//! So neither is needed to build the command, and a machine without them prints a row that says how
//! to get them.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_void};
use std::mem::transmute;

use crate::bench::locks::subjects::Subject;

/// `void lock(mutex *)`; the C++ methods have the same shape on every Linux ABI.
type Function = unsafe extern "C" fn(*mut c_void);

/// `nsync_mu`: two words, zero when free.
pub struct Nsync(Foreign<[u64; 2]>);

impl Subject for Nsync {
    fn new() -> Result<Self, String> {
        let missing = "libnsync.so.1 is not there; on Debian: apt install libnsync1";
        let library = Library::open(c"libnsync.so.1").ok_or(missing)?;
        let pair = library.pair(c"nsync_mu_lock", c"nsync_mu_unlock");
        Ok(Self(Foreign::new(pair.ok_or("libnsync.so.1 has no nsync_mu_lock; 1.25 has")?)))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.hold(section)
    }
}

/// `absl::Mutex`: one word, zero when free.
pub struct Absl(Foreign<u64>);

/// Abseil's libraries are named after the release, and its symbols after the release or, in
/// Debian's packages, after the packaging.
const ABSL_RELEASES: [&str; 8] = [
    "20220623", "20230125", "20230802", "20240116", "20240722", "20250127", "20250512", "20250814",
];
const DEBIAN_NAMESPACES: std::ops::Range<u32> = 1..20;

impl Subject for Absl {
    fn new() -> Result<Self, String> {
        let missing = "no libabsl_synchronization.so is there; on Debian 12: \
                       apt install libabsl20220623";
        let (release, library) = ABSL_RELEASES
            .iter()
            .find_map(|release| {
                let versioned = format!("libabsl_synchronization.so.{release}");
                let unversioned = format!("libabsl_synchronization.so.{release}.0.0");
                let open = |name: String| Library::open(&CString::new(name).ok()?);
                Some((release, open(versioned).or_else(|| open(unversioned))?))
            })
            .ok_or(missing)?;
        let debian = DEBIAN_NAMESPACES.map(|number| format!("debian{number}"));
        let pair = std::iter::once(format!("lts_{release}")).chain(debian).find_map(|namespace| {
            let symbol = |method| {
                CString::new(format!("_ZN4absl{}{namespace}5Mutex{method}Ev", namespace.len())).ok()
            };
            library.pair(&symbol("4Lock")?, &symbol("6Unlock")?)
        });
        Ok(Self(Foreign::new(pair.ok_or("this libabsl_synchronization.so has no Mutex::Lock")?)))
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.hold(section)
    }
}

/// A lock of type `W`, zero when free, with its functions.
struct Foreign<W> {
    lock: Function,
    unlock: Function,
    word: UnsafeCell<W>,
}

// SAFETY: the word is accessed only by the library's functions, which are thread-safe.
unsafe impl<W> Sync for Foreign<W> {}

impl<W: Default> Foreign<W> {
    fn new((lock, unlock): (Function, Function)) -> Self {
        Self { lock, unlock, word: UnsafeCell::new(W::default()) }
    }

    #[inline]
    fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
        // SAFETY: the function takes the address of a mutex, which does not move while it is
        // borrowed.
        unsafe { (self.lock)(self.word.get().cast()) };
        let result = section();
        // SAFETY: the mutex does not move while it is borrowed, and this thread has locked it.
        unsafe { (self.unlock)(self.word.get().cast()) };
        result
    }
}

/// A shared library that is never closed, because its threads' state may outlive any owner.
struct Library(*mut c_void);

impl Library {
    fn open(name: &CStr) -> Option<Self> {
        // SAFETY: runs the library's constructors, which these libraries allow at any time.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!handle.is_null()).then_some(Self(handle))
    }

    fn pair(&self, lock: &CStr, unlock: &CStr) -> Option<(Function, Function)> {
        Some((self.function(lock)?, self.function(unlock)?))
    }

    fn function(&self, name: &CStr) -> Option<Function> {
        // SAFETY: the handle is that of an open library, and the name ends in zero.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: both requested names are functions of this type in every release.
        (!address.is_null()).then(|| unsafe { transmute::<*mut c_void, Function>(address) })
    }
}
