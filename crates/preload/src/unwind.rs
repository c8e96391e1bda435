//! The return addresses on the calling thread's stack, without an allocation or a lock.
//!
//! A frame is unwound by the table that its compiler has left for exceptions (`.eh_frame`), which
//! the loader finds for an address without a lock (`_dl_find_object`, glibc 2.35). Where there is
//! none, as in machine code that was made at run time, the frame pointer is tried.
//!
//! - **UNWIND-1** The stack is read through the kernel, a page at a time, into memory of ours: what
//!   a table says of code that is not as it says can't make us touch memory that is not there.
//! - **UNWIND-2** Each step goes up the stack, and there are at most [`STEPS`].
//! - **UNWIND-3** The tables of an object are read while its code is on our stack, or is ours: it
//!   can't be unloaded meanwhile.
//! - **UNWIND-4** The room for a walk is one of [`ROOMS`], taken by an exchange: a signal handler
//!   that comes between takes another, and a thread that finds none walks no stack. The stack of a
//!   program's thread may be too small for it.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Pointer, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection as _, UnwindTableRow,
};

use crate::{objects, sys};

/// The greatest number of frames that are walked, ours included.
const STEPS: usize = 64;
/// The greatest number of walks at a time.
const ROOMS: usize = 16;
/// Bytes of the stack that are read at once.
const PAGE: usize = 4096;

/// The registers by which frames are found, as DWARF numbers them.
#[cfg(target_arch = "x86_64")]
mod number {
    use gimli::Register;

    pub(super) const FRAME: Register = Register(6);
    pub(super) const STACK: Register = Register(7);
    pub(super) const RETURN: Register = Register(16);
}
#[cfg(target_arch = "aarch64")]
mod number {
    use gimli::Register;

    pub(super) const FRAME: Register = Register(29);
    pub(super) const STACK: Register = Register(31);
    pub(super) const RETURN: Register = Register(30);
}

/// Storage in line, for functions that save as many registers as there are, and a few more.
struct InLine;

impl UnwindContextStorage<usize> for InLine {
    type Rules = [(Register, RegisterRule<usize>); 40];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

/// The memory that a walk needs.
struct Room {
    context: UnwindContext<usize, InLine>,
    /// The page of the stack that was read last, and where it is; 0 for none.
    page: [u8; PAGE],
    page_at: usize,
}

/// A [`Room`] that threads share.
struct Shared {
    is_taken: AtomicBool,
    room: UnsafeCell<MaybeUninit<Room>>,
}

// SAFETY: the room is used by the thread that has taken it (UNWIND-4), and by no other.
unsafe impl Sync for Shared {}

static SHARED: [Shared; ROOMS] = [const {
    Shared { is_taken: AtomicBool::new(false), room: UnsafeCell::new(MaybeUninit::uninit()) }
}; ROOMS];

/// The registers of a frame.
#[derive(Clone, Copy)]
struct Frame {
    pc: usize,
    sp: usize,
    fp: usize,
    /// The return address, where it is in a register.
    ra: usize,
}

/// The result of a step.
enum Step {
    Caller(Frame),
    /// There is no caller: the thread began here.
    Bottom,
    /// The caller can't be told.
    Lost,
}

/// Calls `seen` with each return address on the caller's stack, the innermost first, until that
/// says no. Returns whether all were seen, up to where the thread began.
pub(crate) fn return_addresses(mut seen: impl FnMut(usize) -> bool) -> bool {
    let take = |shared: &&Shared| {
        // Acquire: the walk before is over; pairs with the release below.
        shared.is_taken.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    };
    let Some(shared) = SHARED.iter().find(take) else { return false };
    // SAFETY: taken above, so no other reference to it exists (UNWIND-4).
    let room = unsafe { &mut *shared.room.get() };
    let room = room.write(Room { context: UnwindContext::new_in(), page: [0; PAGE], page_at: 0 });
    let complete = room.walk(&mut seen);
    // Release: pairs with the acquire above.
    shared.is_taken.store(false, Release);
    complete
}

/// The frame of the function that this is inlined into.
#[inline(always)]
fn here() -> Frame {
    let (pc, sp, fp): (usize, usize, usize);
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads three registers.
    unsafe {
        core::arch::asm!(
            "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
            out(reg) pc, out(reg) sp, out(reg) fp, options(nomem, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads three registers.
    unsafe {
        core::arch::asm!(
            "adr {}, .", "mov {}, sp", "mov {}, x29",
            out(reg) pc, out(reg) sp, out(reg) fp, options(nomem, nostack, preserves_flags),
        );
    }
    Frame { pc, sp, fp, ra: 0 }
}

impl Room {
    /// Not inlined: it has a frame of its own, at which the walk begins.
    #[inline(never)]
    fn walk(&mut self, seen: &mut impl FnMut(usize) -> bool) -> bool {
        let mut frame = here();
        let mut is_first = true;
        for _ in 0..STEPS {
            // The address that a call returns to may be the next function's first.
            let at = if is_first { frame.pc } else { frame.pc - 1 };
            is_first = false;
            let caller = match self.step(frame, at) {
                Step::Caller(caller) => caller,
                Step::Bottom => return true,
                Step::Lost => return false,
            };
            if caller.pc == 0 {
                return true;
            }
            // UNWIND-2.
            if caller.sp <= frame.sp || !seen(caller.pc) {
                return false;
            }
            frame = caller;
        }
        false
    }

    fn step(&mut self, frame: Frame, at: usize) -> Step {
        match Tables::of(at).and_then(|tables| self.by_table(&tables, frame, at)) {
            Some(step) => step,
            None => self.by_frame_pointer(frame).map_or(Step::Lost, Step::Caller),
        }
    }

    /// The caller by the compiler's table; `None` if there is none for that code, or one that says
    /// more than is understood here.
    fn by_table(&mut self, tables: &Tables, frame: Frame, at: usize) -> Option<Step> {
        let Tables { header, frames, bases } = tables;
        let parsed = header.parse(bases, size_of::<usize>() as u8).ok()?;
        let row = parsed
            .table()?
            .unwind_info_for_address(
                frames,
                bases,
                &mut self.context,
                at as u64,
                EhFrame::cie_from_offset,
            )
            .ok()?;
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = match register {
                    number::STACK => frame.sp,
                    number::FRAME => frame.fp,
                    _ => return None,
                };
                base.checked_add_signed(isize::try_from(offset).ok()?)?
            }
            CfaRule::Expression(_) => return None,
        };
        let [ra, fp] = [number::RETURN, number::FRAME].map(|register| row.register(register));
        if matches!(ra, Some(RegisterRule::Undefined)) {
            return Some(Step::Bottom);
        }
        let pc = self.restored(ra, cfa, frame.ra)?;
        let fp = self.restored(fp, cfa, frame.fp)?;
        Some(Step::Caller(Frame { pc, sp: cfa, fp, ra: 0 }))
    }

    /// The register's value in the caller, by its rule; `now` is that in the function.
    fn restored(
        &mut self,
        rule: Option<RegisterRule<usize>>,
        cfa: usize,
        now: usize,
    ) -> Option<usize> {
        match rule {
            None | Some(RegisterRule::SameValue) => Some(now),
            // It is not needed by the caller.
            Some(RegisterRule::Undefined) => Some(0),
            Some(RegisterRule::Offset(offset)) => {
                self.word(cfa.checked_add_signed(isize::try_from(offset).ok()?)?)
            }
            _ => None,
        }
    }

    /// The caller by the frame pointer, if it may be one.
    fn by_frame_pointer(&mut self, frame: Frame) -> Option<Frame> {
        const WORD: usize = size_of::<usize>();
        if frame.fp < frame.sp {
            return None;
        }
        let (fp, pc) = (self.word(frame.fp)?, self.word(frame.fp.checked_add(WORD)?)?);
        let sp = frame.fp.checked_add(2 * WORD)?;
        // What it leads to is code of an object, or it was none.
        Tables::of(pc.checked_sub(1)?)?;
        Some(Frame { pc, sp, fp, ra: 0 })
    }

    /// The word at that address of the stack (UNWIND-1).
    fn word(&mut self, at: usize) -> Option<usize> {
        if !at.is_multiple_of(size_of::<usize>()) || at < PAGE {
            return None;
        }
        let (page, into) = (at & !(PAGE - 1), at & (PAGE - 1));
        if self.page_at != page {
            self.page_at = 0;
            if sys::read_own([(page, PAGE), (page, 0)], &mut self.page)? != PAGE {
                return None;
            }
            self.page_at = page;
        }
        let bytes = self.page.get(into..into + size_of::<usize>())?;
        bytes.try_into().ok().map(usize::from_ne_bytes)
    }
}

type Bytes = EndianSlice<'static, NativeEndian>;

/// The tables of an object.
struct Tables {
    header: EhFrameHdr<Bytes>,
    frames: EhFrame<Bytes>,
    bases: BaseAddresses,
}

/// The answer of the loader, as `dlfcn.h` has it for these two machines.
#[repr(C)]
struct Found {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    /// The loader's record, which begins with the distance by which the object was moved.
    link_map: *const usize,
    eh_frame: *const u8,
    _reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// The loader's function; null without one.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks up the loader's function. Called at load.
pub(crate) fn settle() {
    if let Some(function) = objects::next(c"_dl_find_object") {
        // Relaxed: it is code, and does not change.
        FIND_OBJECT.store(function.cast_mut(), Relaxed);
    }
}

impl Tables {
    /// Those of the object whose code is at `at`.
    fn of(at: usize) -> Option<Self> {
        let function = FIND_OBJECT.load(Relaxed);
        if function.is_null() {
            return None;
        }
        // SAFETY: the function of that name, whose type this is.
        let function = unsafe { transmute::<*mut c_void, FindObject>(function) };
        let mut found = MaybeUninit::<Found>::zeroed();
        // SAFETY: it takes any address, and writes to room that is ours.
        let code = unsafe { function(core::ptr::without_provenance(at), found.as_mut_ptr()) };
        if code != 0 {
            return None;
        }
        // SAFETY: written above, and zero is a value of all fields.
        let found = unsafe { found.assume_init() };
        let segment = found.segment()?;
        let header = found.eh_frame.addr();
        let bases = BaseAddresses::default().set_eh_frame_hdr(header as u64);
        let header =
            EhFrameHdr::new(segment.get(header - segment.as_ptr().addr()..)?, NativeEndian);
        let Pointer::Direct(frames) =
            header.parse(&bases, size_of::<usize>() as u8).ok()?.eh_frame_ptr()
        else {
            return None;
        };
        let bases = bases.set_eh_frame(frames);
        let frames = usize::try_from(frames).ok()?.checked_sub(segment.as_ptr().addr())?;
        let frames = EhFrame::new(segment.get(frames..)?, NativeEndian);
        Some(Self { header, frames, bases })
    }
}

impl Found {
    /// The segment that the tables are in: as much of the object as its headers say is mapped
    /// there.
    fn segment(&self) -> Option<&'static [u8]> {
        const PT_LOAD: u32 = 1;
        const READABLE: u32 = 4;
        let table = self.eh_frame.addr();
        if table == 0 || self.link_map.is_null() {
            return None;
        }
        // SAFETY: the loader's record, which stays while code of its object is on our stack
        // (UNWIND-3), and begins with this word.
        let moved = unsafe { *self.link_map };
        for header in self.headers()?.chunks_exact(HEADER_BYTES) {
            let number =
                |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
            let (address, length) = (word(header, 16)?.wrapping_add(moved), word(header, 32)?);
            let inside = (address..address.checked_add(length)?).contains(&table);
            if number(0)? == PT_LOAD && number(4)? & READABLE != 0 && inside {
                let address = self.eh_frame.with_addr(address);
                // SAFETY: a segment that the loader has mapped to be read, as long as its file has
                // it; it stays (UNWIND-3), and no thread writes to tables.
                return Some(unsafe { core::slice::from_raw_parts(address, length) });
            }
        }
        None
    }

    /// The program headers of the object.
    fn headers(&self) -> Option<&'static [u8]> {
        // SAFETY: as in `segment`; the second word is the object's name, which is empty for the
        // program itself.
        let is_program = unsafe { *self.link_map.add(1).cast::<*const u8>() };
        // SAFETY: null, or a string of the loader's, which stays as its record does.
        if unsafe { is_program.as_ref() }.is_none_or(|&first| first == 0) {
            // The kernel has told where they are. The loader may know no more of the program than
            // where its code is.
            // SAFETY: reads what the kernel has left on the first stack.
            let [at, size, count] = [libc::AT_PHDR, libc::AT_PHENT, libc::AT_PHNUM]
                .map(|of| unsafe { libc::getauxval(of) } as usize);
            let begin = self.eh_frame.with_addr(at);
            // SAFETY: the kernel's word, and the program is never unloaded.
            return (at != 0 && size == HEADER_BYTES)
                .then(|| unsafe { core::slice::from_raw_parts(begin, count * HEADER_BYTES) });
        }
        const FILE_HEADER_BYTES: usize = 64;
        let begin = self.map_start;
        if begin.is_null() {
            return None;
        }
        // SAFETY: the loader has mapped the object there, and all of its first page; it stays while
        // its code is on our stack (UNWIND-3).
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
        // SAFETY: as above.
        Some(unsafe { core::slice::from_raw_parts(begin.add(offset), length) })
    }
}

/// Bytes of a program header.
const HEADER_BYTES: usize = 56;

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
    usize::try_from(u64::from_ne_bytes(bytes)).ok()
}
