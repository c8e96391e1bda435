//! The settings of this process, read from its environment once, before `main`.

use core::ffi::c_int;
use std::env::{var, var_os};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::sync::OnceLock;

use antiphon_coop::Options;
use antiphon_linux::files::Mapping;
use antiphon_linux::schedule::{self, Class, Policy};
use antiphon_platform::ThreadId;
use antiphon_record::coop::{self, PAGE_BYTES, Page};

/// The settings of a process.
pub struct Settings {
    /// Name and CPU of the domain, if the loops must pass on their CPU.
    pub domain: Option<(String, u32)>,
    /// Whether the loops must be raised while they are late.
    pub boost: bool,
    /// The scheduling options of the CPU.
    pub schedule: Options,
    report: Option<OsString>,
}

static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();

/// The settings, if there are any. `None` before the library is initialised: it takes no part in
/// waits of constructors that run earlier.
pub fn get() -> Option<&'static Settings> {
    SETTINGS.get()?.as_ref()
}

impl Settings {
    fn read() -> Option<Self> {
        let tier = var(coop::TIER).ok()?;
        let baton = matches!(&*tier, "auto" | "t3");
        let domain = baton.then(|| {
            let name = var(coop::DOMAIN).ok()?;
            Some((name, var(coop::CPU).ok()?.parse().ok()?))
        });
        let domain = domain.flatten();
        let boost = matches!(&*tier, "auto" | "t1");
        let report = var_os(coop::REPORT);
        (boost || domain.is_some()).then(|| Self { domain, boost, schedule: schedule(), report })
    }

    /// The page for the counts, if the environment names a file for them. It is never unmapped.
    pub fn page(&self) -> Option<&'static Page> {
        let file = OpenOptions::new().read(true).write(true).open(self.report.as_ref()?).ok()?;
        let mapping = Box::leak(Box::new(Mapping::new(&file, PAGE_BYTES).ok()?));
        // SAFETY: never unmapped, of the length of a `Page`, and aligned to a page of the machine;
        // it consists of atomic words, for which any bytes are valid.
        Some(unsafe { &*mapping.as_ptr().cast::<Page>() })
    }
}

fn schedule() -> Options {
    let numbers = var(coop::OPTIONS).ok().and_then(|words| coop::numbers_of(&words));
    let Some([period_ns, min_slice_ns, slack_ns, threshold_ns]) = numbers else {
        return Options::default();
    };
    Options { period_ns, min_slice_ns, slack_ns, threshold_ns }
}

/// The name of the calling thread.
pub fn thread_name() -> [u8; 16] {
    let mut name = [0; 16];
    // SAFETY: the kernel writes at most 16 bytes. If the call fails, the name is empty.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Reads the settings, before the program's own code runs.
extern "C" fn load(_: c_int, _: *const *const u8, _: *const *const u8) {
    let settings = SETTINGS.get_or_init(Settings::read).as_ref();
    // A loop that was raised when it executed this program has no helper that lowers it. It is
    // recognised by the flag that resets the class on a fork: a process with an intended real-time
    // class, inherited by a fork, does not have that flag.
    if settings.is_some_and(|settings| settings.boost)
        && let Ok(class) = schedule::class(ThreadId(0))
        && class == (Class { policy: Policy::Fifo, resets_on_fork: true })
    {
        // Never refused.
        let _ = schedule::set_timeshared(ThreadId(0), class);
    }
}

/// Makes the loader call [`load`].
#[used]
// SAFETY: the section holds pointers to functions of this type, each of which the loader calls
// once, with the arguments of `main`.
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn(c_int, *const *const u8, *const *const u8) = load;
