//! A writer's mapping of a recording: the beginning of each table, and more as more is used
//! ([`Column`]).

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use crate::column::{Column, errno_kept};
use crate::events::{Roll, RollHead, Shared as Chunk};
use crate::layout::{
    BASE_BYTES, BODY, Base, EDGE, EdgeRecord, FILE_BYTES, LOCK, LockRecord, MAGIC, MODULE,
    ModuleRecord, PROCESS, PROGRAM, ProcessRecord, ProgramRecord, ROW, RowBody, RowRecord, SITE,
    STACK, Section, SiteRecord, StackRecord, THREAD, ThreadRecord, VERSION,
};
use crate::{Scope, Writer, events};

/// Why a recording can't be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The file is not a recording of this version.
    Mismatch,
    /// The file can't be mapped, most likely because of a limit on memory.
    NoMemory,
}

/// The recording of this process, to be used as a static.
pub struct Mapping {
    /// Whether the recording may be written to: the beginnings of all tables are mapped.
    is_open: AtomicBool,
    /// Written once, before `is_open`.
    base: AtomicPtr<Base>,
    pub(crate) processes: Column<ProcessRecord>,
    pub(crate) modules: Column<ModuleRecord>,
    pub(crate) sites: Column<SiteRecord>,
    pub(crate) locks: Column<LockRecord>,
    pub(crate) threads: Column<ThreadRecord>,
    pub(crate) edges: Column<EdgeRecord>,
    pub(crate) programs: Column<ProgramRecord>,
    pub(crate) stacks: Column<StackRecord>,
    pub(crate) rows: Column<RowRecord>,
    pub(crate) bodies: Column<RowBody>,
    /// The head of the chunks; null without [`Scope::Events`].
    roll: AtomicPtr<RollHead>,
    chunks: Column<Chunk>,
}

const fn column<T: 'static>(section: Section) -> Column<T> {
    Column::new(section.first, section.pieces)
}

impl Mapping {
    /// A mapping of no recording yet.
    #[expect(clippy::declare_interior_mutable_const, reason = "a static begins as it")]
    pub const NEW: Self = Self {
        is_open: AtomicBool::new(false),
        base: AtomicPtr::new(null_mut()),
        processes: column(PROCESS),
        modules: column(MODULE),
        sites: column(SITE),
        locks: column(LOCK),
        threads: column(THREAD),
        edges: column(EDGE),
        programs: column(PROGRAM),
        stacks: column(STACK),
        rows: column(ROW),
        bodies: column(BODY),
        roll: AtomicPtr::new(null_mut()),
        chunks: column(events::CHUNK),
    };

    /// Maps the beginning of the recording in `file`, which is open to read and write, and may be
    /// closed afterwards. To be called once; allocates nothing, and doesn't change `errno`.
    ///
    /// # Errors
    ///
    /// If the file is not a recording, or can't be mapped; then nothing is mapped.
    pub fn open(&'static self, file: c_int) -> Result<Writer, Refused> {
        // SAFETY: the call moves the file's position, which is not used.
        let length = errno_kept(|| unsafe { libc::lseek(file, 0, libc::SEEK_END) });
        if u64::try_from(length).is_ok_and(|length| length < FILE_BYTES) || length < 0 {
            return Err(Refused::Mismatch);
        }
        let mut pieces = Pieces { file, mapped: [(null_mut(), 0); PIECES], count: 0 };
        let base = pieces.map(0, BASE_BYTES)?.cast::<Base>();
        // SAFETY: mapped, aligned, and of that length; any bytes are a valid `Base`, and all fields
        // that are not atomic are written before the file is passed to programs.
        let header = unsafe { &(*base).header };
        let scope = Scope::from_bits(header.scope);
        let sound = header.magic == MAGIC
            && header.version == VERSION
            && header.bytes == FILE_BYTES
            && scope.is_some();
        if !sound {
            return Err(Refused::Mismatch);
        }
        pieces.begin(&self.processes, PROCESS)?;
        pieces.begin(&self.modules, MODULE)?;
        pieces.begin(&self.sites, SITE)?;
        pieces.begin(&self.locks, LOCK)?;
        pieces.begin(&self.threads, THREAD)?;
        pieces.begin(&self.edges, EDGE)?;
        pieces.begin(&self.programs, PROGRAM)?;
        pieces.begin(&self.stacks, STACK)?;
        pieces.begin(&self.rows, ROW)?;
        pieces.begin(&self.bodies, BODY)?;
        let has_roll = length.cast_unsigned() >= FILE_BYTES + events::ROLL_BYTES;
        if scope == Some(Scope::Events) && has_roll {
            let roll = pieces.map(FILE_BYTES, events::HEAD_BYTES)?;
            pieces.begin(&self.chunks, events::CHUNK)?;
            // Release: publishes the first piece of the chunks; pairs with the acquire in `roll`.
            self.roll.store(roll.cast(), Release);
        }
        pieces.keep();
        self.base.store(base, Relaxed);
        // Release: publishes the first pieces of all tables; pairs with the acquire in `writer`.
        self.is_open.store(true, Release);
        Ok(Writer { map: self })
    }

    /// Stops recording: no new writers are returned. Existing ones continue.
    pub fn close(&self) {
        // Relaxed: the store publishes no other data.
        self.is_open.store(false, Relaxed);
        self.close_events();
    }

    /// Stops the recording of events.
    pub fn close_events(&self) {
        // Relaxed: the store publishes no other data.
        self.roll.store(null_mut(), Relaxed);
    }

    /// A writer to the recording; `None` if nothing is mapped, or it was closed.
    #[inline]
    pub fn writer(&'static self) -> Option<Writer> {
        // Acquire: pairs with the release in `open`.
        self.is_open.load(Acquire).then_some(Writer { map: self })
    }

    /// The beginning of the file. Called only by a [`Writer`], which exists only when it is mapped.
    #[inline]
    pub(crate) fn base(&self) -> &'static Base {
        // Relaxed: acquired with `is_open` by the thread that made the writer.
        let base = self.base.load(Relaxed);
        // SAFETY: not null, because a writer is created after the store; mapped and checked by
        // `open`, and never unmapped.
        unsafe { &*base }
    }

    /// The chunks of the events; `None` if no events are recorded.
    #[inline]
    pub fn roll(&'static self) -> Option<Roll> {
        // Acquire: pairs with the release in `open`.
        let head = self.roll.load(Acquire);
        // SAFETY: null, or mapped by `open` and never unmapped; any bytes are a valid head.
        unsafe { head.as_ref() }.map(|head| Roll::new(head, &self.chunks))
    }
}

/// Most mappings of [`Mapping::open`].
const PIECES: usize = 12;

/// Mappings that are undone when this object is dropped, unless `keep` was called.
struct Pieces {
    file: c_int,
    mapped: [(*mut u8, usize); PIECES],
    count: usize,
}

impl Pieces {
    fn map(&mut self, offset: u64, bytes: usize) -> Result<*mut u8, Refused> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off_t::try_from(offset).map_err(|_| Refused::Mismatch)?;
        let at = errno_kept(|| {
            // SAFETY: a new mapping at an address of the kernel's choice affects no memory in use.
            unsafe { libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, self.file, offset) }
        });
        if at == libc::MAP_FAILED {
            return Err(Refused::NoMemory);
        }
        let at = at.cast();
        if let Some(place) = self.mapped.get_mut(self.count) {
            *place = (at, bytes);
            self.count += 1;
        }
        Ok(at)
    }

    /// Maps the first piece of a table.
    fn begin<T: 'static>(&mut self, column: &Column<T>, section: Section) -> Result<(), Refused> {
        let base = self.map(section.offset, column.first_bytes())?;
        // SAFETY: mapped just now; if that is undone, no thread uses the column (`is_open` stays
        // false). The file has the length of all its tables.
        unsafe { column.begins_at(base.cast()) };
        Ok(())
    }

    /// Keeps all mappings.
    fn keep(&mut self) {
        self.count = 0;
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        for &(at, bytes) in self.mapped.iter().take(self.count) {
            errno_kept(|| {
                // SAFETY: mapped by `map`, and unknown to other threads.
                unsafe { libc::munmap(at.cast::<c_void>(), bytes) }
            });
        }
    }
}
