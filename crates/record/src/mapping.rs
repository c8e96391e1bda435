//! A recording as a process that writes to it has it mapped: the begin of each table, and more of
//! it as more is used ([`Column`]).

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
    /// The file is no recording of this version.
    Mismatch,
    /// It can't be mapped: a limit on memory, most likely.
    NoMemory,
}

/// The recording of this process. A static of this type is how a program has one.
pub struct Mapping {
    /// Whether it may be written to: all of the begin is mapped.
    is_open: AtomicBool,
    /// Written before that, once.
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
    /// Of [`Scope::Events`]; null without.
    roll: AtomicPtr<RollHead>,
    chunks: Column<Chunk>,
}

const fn column<T: 'static>(section: Section) -> Column<T> {
    Column::new(section.first, section.pieces)
}

impl Mapping {
    /// One of nothing yet.
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

    /// Maps the beginning of the recording that is open, to read and write, as `file`, which may be
    /// closed afterwards. Call it once; it allocates nothing, and leaves `errno` alone.
    ///
    /// # Errors
    ///
    /// If it is no recording, or there is no memory; then nothing is mapped.
    pub fn open(&'static self, file: c_int) -> Result<Writer, Refused> {
        // SAFETY: moves the position of a file, which is not used.
        let length = errno_kept(|| unsafe { libc::lseek(file, 0, libc::SEEK_END) });
        if u64::try_from(length).is_ok_and(|length| length < FILE_BYTES) || length < 0 {
            return Err(Refused::Mismatch);
        }
        let mut pieces = Pieces { file, mapped: [(null_mut(), 0); PIECES], count: 0 };
        let base = pieces.map(0, BASE_BYTES)?.cast::<Base>();
        // SAFETY: mapped, aligned, and as long; any bytes are a `Base`, and all fields that are no
        // atomics are written before the file is handed out.
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
            // Release: the first piece of the chunks; pairs with the acquire in `roll`.
            self.roll.store(roll.cast(), Release);
        }
        pieces.keep();
        self.base.store(base, Relaxed);
        // Release: the first pieces of all tables; pairs with the acquire in `writer`.
        self.is_open.store(true, Release);
        Ok(Writer { map: self })
    }

    /// From now on there is no writer any more. Those that there are go on.
    pub fn close(&self) {
        // Relaxed: it publishes nothing.
        self.is_open.store(false, Relaxed);
        self.close_events();
    }

    /// From now on no events are recorded.
    pub fn close_events(&self) {
        // Relaxed: it publishes nothing.
        self.roll.store(null_mut(), Relaxed);
    }

    /// The writer to it; `None` if nothing is mapped, or it was closed.
    #[inline]
    pub fn writer(&'static self) -> Option<Writer> {
        // Acquire: pairs with the release in `open`.
        self.is_open.load(Acquire).then_some(Writer { map: self })
    }

    /// The begin of the file. Only a [`Writer`] asks, which there is when it is mapped.
    #[inline]
    pub(crate) fn base(&self) -> &'static Base {
        // Relaxed: acquired with `is_open` by the thread that made the writer.
        let base = self.base.load(Relaxed);
        // SAFETY: not null, because a writer is made after it was stored; mapped and looked at by
        // `open`, for good.
        unsafe { &*base }
    }

    /// The chunks of its events; `None` if there are none.
    #[inline]
    pub fn roll(&'static self) -> Option<Roll> {
        // Acquire: pairs with the release in `open`.
        let head = self.roll.load(Acquire);
        // SAFETY: null, or mapped by `open`, for good; any bytes are a head.
        unsafe { head.as_ref() }.map(|head| Roll::new(head, &self.chunks))
    }
}

/// How many mappings [`Mapping::open`] makes at most.
const PIECES: usize = 12;

/// Mappings that are undone when they are dropped, unless all of them were to be had.
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
            // SAFETY: a new mapping wherever the kernel likes touches no memory that is in use.
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
        // SAFETY: mapped just now; if that is undone, no thread learns of the column (`is_open`
        // stays false). The file is as long as all of its tables.
        unsafe { column.begins_at(base.cast()) };
        Ok(())
    }

    /// All of them stay.
    fn keep(&mut self) {
        self.count = 0;
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        for &(at, bytes) in self.mapped.iter().take(self.count) {
            errno_kept(|| {
                // SAFETY: mapped by `map`, and no thread knows of it.
                unsafe { libc::munmap(at.cast::<c_void>(), bytes) }
            });
        }
    }
}
