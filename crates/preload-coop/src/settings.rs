//! The settings of this process, from its environment: read once, before `main`.

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
    /// Name and CPU, if its loops are to hand that on.
    pub domain: Option<(String, u32)>,
    /// Whether they are to be raised while they are late.
    pub boost: bool,
    /// How the CPU is shared.
    pub schedule: Options,
    report: Option<OsString>,
}

static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();

/// The settings, if there are any. `None` before the library is initialised: waits of constructors
/// that run earlier are the C library's.
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

    /// The page of its counts, if the environment names a file for them. It stays mapped.
    pub fn page(&self) -> Option<&'static Page> {
        let file = OpenOptions::new().read(true).write(true).open(self.report.as_ref()?).ok()?;
        let mapping = Box::leak(Box::new(Mapping::new(&file, PAGE_BYTES).ok()?));
        // SAFETY: mapped for good, as long as a page, at the beginning of one of the machine's; all
        // of it is atomic words, of which any bytes are some value.
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
    // SAFETY: the kernel writes 16 bytes at the most. If it does not, the name is empty.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

/// Decides what this process wants, before the program's own code runs.
extern "C" fn load(_: c_int, _: *const *const u8, _: *const *const u8) {
    let settings = SETTINGS.get_or_init(Settings::read).as_ref();
    // A loop that was raised when it executed this program has no helper that lowers it. A process
    // that comes of a fork, and was given a real-time class on purpose, does not have it reset by
    // the next fork.
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
// SAFETY: a section of pointers to such functions, which the loader calls once each, with what
// `main` is called with.
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn(c_int, *const *const u8, *const *const u8) = load;
