//! Finds the unwinding tables of the object at an address.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Pointer};

use super::PAGE;
use crate::objects;

pub(super) type Bytes = EndianSlice<'static, NativeEndian>;

/// The unwinding tables of an object.
pub(super) struct Tables {
    pub(super) header: EhFrameHdr<Bytes>,
    pub(super) frames: EhFrame<Bytes>,
    pub(super) bases: BaseAddresses,
}

/// The answer of the loader, as `dlfcn.h` declares it for these two machines.
#[repr(C)]
struct Found {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    /// The loader's record, whose first word is the offset of the object's addresses from those in
    /// its file.
    link_map: *const usize,
    eh_frame: *const u8,
    _reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// The loader's function; null if it has none.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Address ranges of the objects that the program started with, which are never unloaded: begin and
/// end. The end is written first.
static STAYING: [[AtomicUsize; 2]; 64] = [const { [const { AtomicUsize::new(0) }; 2] }; 64];

/// Looks up the loader's function, and stores which objects are never unloaded. Called at load.
pub(crate) fn settle() {
    let Some(function) = objects::next(c"_dl_find_object") else { return };
    // Relaxed: the address of code, which does not change.
    FIND_OBJECT.store(function.cast_mut(), Relaxed);
    let ranges = objects::all().filter_map(|object| {
        let found = Found::at(object.dynamic().addr())?;
        Some(found.map_start.addr()..found.map_end.addr())
    });
    for (range, [begin, end]) in ranges.zip(&STAYING) {
        end.store(range.end, Relaxed);
        // Release: pairs with the acquire load in `stays`.
        begin.store(range.start, Release);
    }
}

/// Returns whether the address is in an object that is never unloaded.
fn stays(at: usize) -> bool {
    // Acquire: pairs with the release store in `settle`.
    let has =
        |[begin, end]: &[AtomicUsize; 2]| (begin.load(Acquire)..end.load(Relaxed)).contains(&at);
    STAYING.iter().any(has)
}

impl Tables {
    /// The tables of the object whose code is at `at`. Unless the caller `is_sure` that this code
    /// is on its stack, only those of an object that is never unloaded (UNWIND-3).
    #[inline(never)]
    pub(super) fn of(at: usize, is_sure: bool) -> Option<Self> {
        if !is_sure && !stays(at) {
            return None;
        }
        let found = Found::at(at)?;
        let segment = found.segment()?;
        let header = found.eh_frame.addr();
        let bases = BaseAddresses::default().set_eh_frame_hdr(header as u64);
        let begin = segment.as_ptr().addr();
        let header = EhFrameHdr::new(segment.get(header - begin..)?, NativeEndian);
        let parsed = header.parse(&bases, size_of::<usize>() as u8).ok()?;
        let Pointer::Direct(frames) = parsed.eh_frame_ptr() else { return None };
        let bases = bases.set_eh_frame(frames);
        let frames = usize::try_from(frames).ok()?.checked_sub(begin)?;
        #[allow(unused_mut, reason = "on one of the two machines")]
        let mut frames = EhFrame::new(segment.get(frames..)?, NativeEndian);
        #[cfg(target_arch = "aarch64")]
        frames.set_vendor(gimli::Vendor::AArch64);
        Some(Self { header, frames, bases })
    }
}

impl Found {
    /// The loader's answer for that address.
    fn at(address: usize) -> Option<Self> {
        let function = FIND_OBJECT.load(Relaxed);
        if function.is_null() {
            return None;
        }
        // SAFETY: the type of `_dl_find_object`, whose address was stored.
        let function = unsafe { transmute::<*mut c_void, FindObject>(function) };
        let mut found = MaybeUninit::<Self>::zeroed();
        // SAFETY: the function accepts any address, and writes to memory that is ours.
        let code = unsafe { function(core::ptr::without_provenance(address), found.as_mut_ptr()) };
        // SAFETY: written above, and zero is valid for all fields.
        (code == 0).then(|| unsafe { found.assume_init() })
    }

    /// The segment that contains the tables, as the object's program headers describe it.
    fn segment(&self) -> Option<&'static [u8]> {
        const PT_LOAD: u32 = 1;
        const READABLE: u32 = 4;
        let table = self.eh_frame.addr();
        if table == 0 || self.link_map.is_null() {
            return None;
        }
        // SAFETY: the loader's record, which lives as long as its object (UNWIND-3), and begins
        // with this word.
        let moved = unsafe { *self.link_map };
        for header in self.headers()?.chunks_exact(HEADER_BYTES) {
            let number =
                |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
            let (address, length) = (word(header, 16)?.wrapping_add(moved), word(header, 32)?);
            let inside = (address..address.checked_add(length)?).contains(&table);
            if number(0)? == PT_LOAD && number(4)? & READABLE != 0 && inside {
                let address = self.eh_frame.with_addr(address);
                // SAFETY: a segment that the loader has mapped readable, with its length in the
                // file; it stays mapped (UNWIND-3), and no thread writes to tables.
                return Some(unsafe { core::slice::from_raw_parts(address, length) });
            }
        }
        None
    }

    /// The program headers of the object.
    fn headers(&self) -> Option<&'static [u8]> {
        // SAFETY: as in `segment`; the second word is the object's name, which is empty for the
        // program itself.
        let name = unsafe { *self.link_map.add(1).cast::<*const u8>() };
        // SAFETY: null, or a string of the loader, which lives as long as its record.
        if unsafe { name.as_ref() }.is_none_or(|&first| first == 0) {
            // The kernel passes the address of the program's headers. The loader may only know
            // where the program's code is.
            let [at, size, count] = [libc::AT_PHDR, libc::AT_PHENT, libc::AT_PHNUM].map(|of| {
                // SAFETY: reads the values that the kernel has stored on the first stack.
                unsafe { libc::getauxval(of) as usize }
            });
            let begin = self.eh_frame.with_addr(at);
            // SAFETY: the address and count are the kernel's, and the program is never unloaded.
            return (at != 0 && size == HEADER_BYTES)
                .then(|| unsafe { core::slice::from_raw_parts(begin, count * HEADER_BYTES) });
        }
        const FILE_HEADER_BYTES: usize = 64;
        let begin = self.map_start;
        if begin.is_null() {
            return None;
        }
        // SAFETY: the loader has mapped the object there, with its whole first page; it stays
        // mapped (UNWIND-3).
        let header = unsafe { core::slice::from_raw_parts(begin, FILE_HEADER_BYTES) };
        if !header.starts_with(b"\x7fELF\x02") {
            return None;
        }
        let half = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let (offset, size, count) = (word(header, 32)?, half(54), half(56));
        // Loaders read the program headers there, so they are in the first page, too.
        let length = count.checked_mul(HEADER_BYTES)?;
        if size != HEADER_BYTES || offset.checked_add(length)? > PAGE {
            return None;
        }
        // SAFETY: inside the object's first page, which stays mapped (UNWIND-3).
        Some(unsafe { core::slice::from_raw_parts(begin.add(offset), length) })
    }
}

/// Bytes of a program header.
const HEADER_BYTES: usize = 56;

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
    usize::try_from(u64::from_ne_bytes(bytes)).ok()
}
