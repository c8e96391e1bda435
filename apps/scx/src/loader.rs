//! Puts the policy into the kernel, and reads what it decides.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;

use antiphon_runtime::coop;
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject,
};

use crate::llcs::Llcs;
use crate::shared::{
    Counters, Event, MAX_EVENTS, MAX_THREADS, Parameters, Record, THREADS_PER_USER,
};

/// The compiled policy.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/antiphon.bpf.o"));
/// Of `struct sched_ext_ops`: only threads of the policy SCHED_EXT are scheduled.
const PARTIAL: u64 = 8;

/// Why the scheduler is not in the kernel.
pub type Failure = Box<dyn std::error::Error>;

/// Which threads are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that have asked for it: of the policy `SCHED_EXT`.
    Partial,
    /// All of the machine but those of real-time policies.
    Full,
}

/// How the scheduler is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which threads are scheduled.
    pub scope: Scope,
    /// The parameters.
    pub parameters: Parameters,
    /// The kernel unloads the scheduler if a thread waits for longer.
    pub watchdog_ms: u32,
}

/// How long threads count as spinning, with the option: two ticks of a kernel whose clock ticks 100
/// times a second.
pub const SPUN_NS: u64 = 20_000_000;

impl Default for Setup {
    fn default() -> Self {
        let options = coop::Options::default();
        let parameters = Parameters {
            period_ns: options.period_ns,
            min_slice_ns: options.min_slice_ns,
            slack_ns: options.slack_ns,
            threshold_ns: options.threshold_ns,
            grace_ns: 100_000,
            horizon_ns: 1_000_000_000,
            kick_ns: 100_000,
            tick_ns: 10_000_000,
            spun_ns: 0,
            // More than a thread waits for its turn where one more is ready than there are CPUs,
            // and less than `threshold_ns`: threads of the other cache are served on time.
            lag_ns: 3 * options.threshold_ns / 4,
            llcs: 0,
            per_user: THREADS_PER_USER,
            hesitation: 0,
            police: 1,
            kick: 1,
            stall: 0,
            trace: 0,
        };
        Self { scope: Scope::Partial, parameters, watchdog_ms: 5_000 }
    }
}

/// The scheduler in the kernel. It is there as long as this value is, or until the kernel unloads
/// it.
#[derive(Debug)]
pub struct Loaded {
    // Dropped first: nothing is scheduled by a policy whose maps are closed.
    link: Link,
    object: Object,
    /// Those that it was loaded with; `None`: one was asked for.
    llcs: Option<Llcs>,
}

impl Loaded {
    /// Loads the policy, and makes it the scheduler.
    ///
    /// # Errors
    ///
    /// The kernel refuses: no privilege, no sched_ext, another scheduler is there, or the BTF of
    /// the kernel is broken. The message of libbpf goes to stderr.
    pub fn load(setup: &Setup) -> Result<Self, Failure> {
        let llcs = (setup.parameters.llcs != 1).then(Llcs::of_this_machine);
        let one = Llcs::one();
        let mut object = open(setup, llcs.as_ref().unwrap_or(&one))?.load().map_err(explained)?;
        let mut maps = object.maps_mut();
        let mut ops = maps.find(|map| map.name() == "antiphon").ok_or("no map of the policy")?;
        let link = ops.attach_struct_ops()?;
        drop(maps);
        Ok(Self { link, object, llcs })
    }

    /// Returns whether it knows the last-level cache of each CPU that is online at present.
    #[must_use]
    pub fn knows_all_llcs(&self) -> bool {
        self.llcs.as_ref().is_none_or(|llcs| llcs.covers(&Llcs::of_this_machine()))
    }

    /// Returns the counters.
    ///
    /// # Errors
    ///
    /// As the system call that reads them.
    pub fn counters(&self) -> Result<Counters, Failure> {
        self.read(".data.counters", 0)
    }

    /// Returns the kernel's words for why it unloaded the scheduler.
    ///
    /// # Errors
    ///
    /// As the system call that reads them.
    pub fn ending(&self) -> Result<String, Failure> {
        let bytes = self.map(".data.ending")?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?;
        let bytes = bytes.ok_or("no words about the end")?;
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or(&[]);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Returns the registered threads.
    ///
    /// # Errors
    ///
    /// As the system call that reads them.
    pub fn threads(&self) -> Result<Vec<Record>, Failure> {
        let high = u32::try_from(self.counters()?.high)?.min(MAX_THREADS);
        let all = (0..high).map(|place| self.read("threads", place));
        let mut all = all.collect::<Result<Vec<Record>, _>>()?;
        all.retain(|one| one.pid != 0);
        Ok(all)
    }

    /// Returns the events that were kept, in order.
    ///
    /// # Errors
    ///
    /// As the system call that reads them.
    pub fn events(&self) -> Result<Vec<Event>, Failure> {
        let count = self.counters()?.events.min(u64::from(MAX_EVENTS));
        (0..u32::try_from(count)?).map(|place| self.read("trace", place)).collect()
    }

    /// Makes a page the one of a process.
    ///
    /// # Errors
    ///
    /// As the system call; there are too many.
    pub fn give(&self, process: u32, page: BorrowedFd<'_>) -> Result<(), Failure> {
        use std::os::fd::AsRawFd as _;
        let value = (page.as_raw_fd() as u32).to_ne_bytes();
        Ok(self.map("pages")?.update(&process.to_ne_bytes(), &value, MapFlags::NO_EXIST)?)
    }

    /// Takes the page of a process that has ended.
    ///
    /// # Errors
    ///
    /// As the system call; the process has none.
    pub fn take_back(&self, process: u32) -> Result<(), Failure> {
        let key = process.to_ne_bytes();
        self.map("pages")?.delete(&key)?;
        // It is there only if a thread was registered.
        match self.map("taken")?.delete(&key) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Returns the program that registers its caller.
    ///
    /// # Errors
    ///
    /// If the object has none.
    pub fn register_program(&self) -> Result<OwnedFd, Failure> {
        let program = self.object.progs().find(|one| one.name() == "antiphon_register");
        Ok(program.ok_or("no program that registers")?.as_fd().try_clone_to_owned()?)
    }

    /// Takes the scheduler out of the kernel, and keeps its maps.
    pub fn detach(self) -> Object {
        drop(self.link);
        self.object
    }

    fn map(&self, name: &str) -> Result<libbpf_rs::Map<'_>, Failure> {
        let found = self.object.maps().find(|map| map.name() == name);
        Ok(found.ok_or_else(|| format!("no map {name}"))?)
    }

    fn read<T: Plain>(&self, map: &str, place: u32) -> Result<T, Failure> {
        let bytes = self.map(map)?.lookup(&place.to_ne_bytes(), MapFlags::ANY)?;
        from_bytes(&bytes.ok_or_else(|| format!("{map} has no place {place}"))?)
    }
}

/// A record of numbers, each of whose bit patterns is a value.
///
/// # Safety
///
/// It is, and it has no padding.
unsafe trait Plain: Copy {}
// SAFETY: numbers only, and `shared`'s test shows that there is no padding.
unsafe impl Plain for Counters {}
// SAFETY: as above.
unsafe impl Plain for Record {}
// SAFETY: as above.
unsafe impl Plain for Event {}
// SAFETY: as above.
unsafe impl Plain for Parameters {}

fn from_bytes<T: Plain>(bytes: &[u8]) -> Result<T, Failure> {
    let mut value = MaybeUninit::<T>::uninit();
    let part = bytes.get(..size_of::<T>()).ok_or("a map's value is too short")?;
    // SAFETY: `part` has as many bytes as the value; both are apart.
    unsafe { ptr::copy_nonoverlapping(part.as_ptr(), value.as_mut_ptr().cast(), part.len()) };
    // SAFETY: all bytes are written, and each pattern is a value.
    Ok(unsafe { value.assume_init() })
}

fn put_bytes<T: Plain>(value: &T, into: &mut [u8]) -> Result<(), Failure> {
    let part = into.get_mut(..size_of::<T>()).ok_or("a map's value is too short")?;
    // SAFETY: `part` has as many bytes as the value, which has no padding; both are apart.
    unsafe { ptr::copy_nonoverlapping(ptr::from_ref(value).cast(), part.as_mut_ptr(), part.len()) };
    Ok(())
}

/// Opens the object, and sets what can only be set before it is loaded.
fn open(setup: &Setup, llcs: &Llcs) -> Result<OpenObject, Failure> {
    let mut object = ObjectBuilder::default().open_memory(OBJECT)?;
    let parameters = Parameters { llcs: llcs.count.into(), ..setup.parameters };
    // It is only a template: libbpf creates the map of a process's page from its type.
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some(".rodata.options") => {
                put_bytes(&parameters, map.initial_value_mut().ok_or("no options")?)?;
            }
            Some(".rodata.llcs") => {
                let value = map.initial_value_mut().ok_or("no last-level caches")?;
                for (to, llc) in value.chunks_exact_mut(2).zip(&llcs.of_cpus) {
                    to.copy_from_slice(&llc.unwrap_or(0).to_ne_bytes());
                }
            }
            Some("antiphon") => {
                let value = map.initial_value_mut().ok_or("no structure of operations")?;
                settle(setup, value)?;
            }
            _ => {}
        }
    }
    Ok(object)
}

/// The fields at the end of the structure of operations, as `bpf/kernel.h` has it: the flags and
/// the time of the watchdog, and the name, behind the pointers to the operations.
fn settle(setup: &Setup, value: &mut [u8]) -> Result<(), Failure> {
    const FIELDS: usize = 8 + 8 + 128;
    let short = "the structure of operations is too short";
    let fields = value.len().checked_sub(FIELDS).and_then(|at| value.get_mut(at..)).ok_or(short)?;
    let (flags, fields) = fields.split_at_mut(8);
    let now = u64::from_ne_bytes(flags.try_into()?);
    if now & PARTIAL == 0 {
        return Err("the structure of operations has its flags elsewhere".into());
    }
    let scope = match setup.scope {
        Scope::Partial => now | PARTIAL,
        Scope::Full => now & !PARTIAL,
    };
    flags.copy_from_slice(&scope.to_ne_bytes());
    fields[..4].copy_from_slice(&setup.watchdog_ms.to_ne_bytes());
    Ok(())
}

/// Adds to libbpf's error what the kernel's type information has to do with it.
fn explained(error: libbpf_rs::Error) -> Failure {
    let Ok(bytes) = fs::read("/sys/kernel/btf/vmlinux") else {
        return format!("{error}: the kernel has no type information").into();
    };
    match antiphon_btf::Kernel::read(&bytes) {
        Ok(kernel) if !kernel.has_sched_ext() => format!("{error}: the kernel has no sched_ext"),
        Ok(kernel) if !kernel.broken().is_empty() => format!(
            "{error}: the kernel's type information describes functions wrongly: {}",
            kernel.broken().join(", ")
        ),
        Ok(_) => error.to_string(),
        Err(malformed) => format!("{error}: {malformed}"),
    }
    .into()
}

/// Creates an empty page, which can be mapped.
///
/// # Errors
///
/// As the system call.
pub fn new_page(scope: Scope) -> Result<MapHandle, Failure> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: libbpf_sys::BPF_F_MMAPABLE,
        ..Default::default()
    };
    let bytes = antiphon_hints::PAGE_BYTES as u32;
    let page = MapHandle::create(MapType::Array, Some("hints"), 4, bytes, 1, &options)?;
    let mut head = vec![0_u8; antiphon_hints::PAGE_BYTES];
    let words = [antiphon_hints::MAGIC, antiphon_hints::VERSION, u32::from(scope == Scope::Full)];
    for (to, word) in head.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    page.update(&0_u32.to_ne_bytes(), &head, MapFlags::ANY)?;
    Ok(page)
}

/// Returns whether the kernel has a scheduler of sched_ext at present.
///
/// # Errors
///
/// If the kernel does not say: it has no sched_ext.
pub fn is_enabled() -> io::Result<bool> {
    Ok(fs::read_to_string("/sys/kernel/sched_ext/state")?.trim() == "enabled")
}
