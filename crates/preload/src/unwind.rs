//! The return addresses on the calling thread's stack, without an allocation or a lock.
//!
//! A frame is unwound by the table that its compiler has left for exceptions (`.eh_frame`), which
//! the loader finds for an address without a lock (`_dl_find_object`, glibc 2.35; without it there
//! are no stacks). Where code has no table, as machine code that was made at run time, the frame
//! pointer is tried.
//!
//! | file | does |
//! |---|---|
//! | [`tables`] | the tables of the object at an address |
//! | [`rules`] | what a table says of one address |
//!
//! - **UNWIND-1** The stack is read through the kernel, a page at a time, into memory of ours: what
//!   a table says of code that is not as it says can't make us touch memory that is not there.
//! - **UNWIND-2** Each step goes up the stack, but for one out of a signal handler, and there are
//!   at most [`STEPS`].
//! - **UNWIND-3** The tables of an object are read only while it can't be unloaded: its code is on
//!   our stack, as tables have led there from our own frame; or it was there when the program
//!   started. Once a frame pointer has led somewhere, only the latter count.
//! - **UNWIND-4** The page of a walk is in one of [`ROOMS`], taken by an exchange: a signal handler
//!   that comes between takes another, and a thread that finds none walks no stack. A room that a
//!   process before this one has taken, by a fork, is free.

mod rules;
mod tables;

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;

use crate::sys;
use rules::{Rule, Rules};
use tables::Tables;

/// The greatest number of frames that are walked, ours included.
const STEPS: usize = 64;
/// The greatest number of walks at a time.
const ROOMS: usize = 16;
/// Bytes of the stack that are read at once.
const PAGE: usize = 4096;
const WORD: usize = size_of::<usize>();

/// A page of a stack, as it was read.
struct Page {
    bytes: [u8; PAGE],
    /// Where it is; 0 for none.
    at: usize,
}

/// A [`Page`] that threads share.
struct Room {
    /// 1 + the epoch of the process whose thread has taken it; 0 if none has.
    taken: AtomicU32,
    page: UnsafeCell<Page>,
}

// SAFETY: the page is used by the thread that has taken the room (UNWIND-4), and by no other.
unsafe impl Sync for Room {}

static ALL: [Room; ROOMS] = [const {
    Room { taken: AtomicU32::new(0), page: UnsafeCell::new(Page { bytes: [0; PAGE], at: 0 }) }
}; ROOMS];

/// The registers of a frame.
#[derive(Clone, Copy)]
struct Frame {
    pc: usize,
    sp: usize,
    fp: usize,
    /// Whether `pc` is the next instruction itself, and not what a call returns to.
    is_exact: bool,
    /// Whether tables have led here from our own frame (UNWIND-3).
    is_sure: bool,
}

/// The result of a step.
enum Step {
    Caller(Frame),
    /// There is no caller: the thread began here.
    Bottom,
    /// The caller can't be told.
    Lost,
}

pub(crate) use tables::settle;

/// Calls `seen` with each address on the caller's stack at which a function goes on, the innermost
/// first, until that says no. Returns whether all were seen, up to where the thread began.
pub(crate) fn return_addresses(mut seen: impl FnMut(usize) -> bool) -> bool {
    let us = Linux::epoch().wrapping_add(1).max(1);
    let take = |room: &&Room| {
        let taken = room.taken.load(Relaxed);
        // Acquire: the walk before is over; pairs with the release below.
        taken != us && room.taken.compare_exchange(taken, us, Acquire, Relaxed).is_ok()
    };
    let Some(room) = ALL.iter().find(take) else { return false };
    // SAFETY: taken above, so no other reference to it exists (UNWIND-4).
    let page = unsafe { &mut *room.page.get() };
    page.at = 0;
    let complete = page.walk(&mut seen);
    // Release: pairs with the acquire above.
    room.taken.store(0, Release);
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
    Frame { pc, sp, fp, is_exact: true, is_sure: true }
}

impl Page {
    /// Not inlined: it has a frame of its own, at which the walk begins.
    #[inline(never)]
    fn walk(&mut self, seen: &mut impl FnMut(usize) -> bool) -> bool {
        let mut frame = here();
        for step in 0..STEPS {
            // The address that a call returns to may be the next function's first.
            let at = if frame.is_exact { frame.pc } else { frame.pc.wrapping_sub(1) };
            let tables = Tables::of(at, frame.is_sure);
            // An address in no object is left out: it may be no code at all.
            if step > 0 && tables.is_some() && !seen(frame.pc) {
                return false;
            }
            let next = match tables.and_then(|tables| Rules::of(&tables, at)) {
                Some(rules) => self.by_rules(&rules, frame),
                None => self.by_frame_pointer(frame),
            };
            match next {
                // UNWIND-2.
                Step::Caller(caller) if caller.is_exact || caller.sp > frame.sp => frame = caller,
                Step::Bottom => return true,
                _ => return false,
            }
        }
        false
    }

    /// The caller by the compiler's table.
    fn by_rules(&mut self, rules: &Rules, frame: Frame) -> Step {
        if rules.is_signal {
            return self.interrupted(frame).map_or(Step::Lost, Step::Caller);
        }
        if matches!(rules.ra, Rule::Undefined) {
            return Step::Bottom;
        }
        self.caller(rules, frame).map_or(Step::Lost, Step::Caller)
    }

    fn caller(&mut self, rules: &Rules, frame: Frame) -> Option<Frame> {
        let base = if rules.cfa_is_of_frame { frame.fp } else { frame.sp };
        let cfa = base.checked_add_signed(rules.cfa_offset?)?;
        let Rule::Offset(offset) = rules.ra else { return None };
        let pc = plain(self.word(cfa.checked_add_signed(offset)?)?);
        let fp = match rules.fp {
            Rule::Same => frame.fp,
            // The caller does without it.
            Rule::Undefined => 0,
            Rule::Offset(offset) => self.word(cfa.checked_add_signed(offset)?)?,
            Rule::Other => return None,
        };
        (pc != 0).then_some(Frame { pc, sp: cfa, fp, is_exact: false, is_sure: frame.is_sure })
    }

    /// The frame that a signal has interrupted: its handler returns to code that has the kernel put
    /// the registers back, from where they are on the stack.
    #[cfg(target_arch = "x86_64")]
    fn interrupted(&mut self, frame: Frame) -> Option<Frame> {
        const REGISTERS: usize = core::mem::offset_of!(libc::ucontext_t, uc_mcontext)
            + core::mem::offset_of!(libc::mcontext_t, gregs);
        let mut register = |number: libc::c_int| {
            let at = REGISTERS + usize::try_from(number).ok()? * WORD;
            self.word(frame.sp.checked_add(at)?)
        };
        let [pc, sp, fp] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(&mut register);
        Some(Frame { pc: pc?, sp: sp?, fp: fp?, is_exact: true, is_sure: frame.is_sure })
    }

    #[cfg(target_arch = "aarch64")]
    fn interrupted(&mut self, frame: Frame) -> Option<Frame> {
        // Behind what the kernel says of the signal.
        const REGISTERS: usize = 128
            + core::mem::offset_of!(libc::ucontext_t, uc_mcontext)
            + core::mem::offset_of!(libc::mcontext_t, regs);
        let mut register =
            |number: usize| self.word(frame.sp.checked_add(REGISTERS + number * WORD)?);
        // x29, and sp and pc, which follow x30.
        let [fp, sp, pc] = [29, 31, 32].map(&mut register);
        Some(Frame { pc: pc?, sp: sp?, fp: fp?, is_exact: true, is_sure: frame.is_sure })
    }

    /// The caller by the frame pointer, of code without a table.
    fn by_frame_pointer(&mut self, frame: Frame) -> Step {
        let mut caller = || {
            if frame.fp < frame.sp {
                return None;
            }
            let (fp, pc) = (self.word(frame.fp)?, self.word(frame.fp.checked_add(WORD)?)?);
            let (pc, sp) = (plain(pc), frame.fp.checked_add(2 * WORD)?);
            // UNWIND-3.
            (pc != 0).then_some(Frame { pc, sp, fp, is_exact: false, is_sure: false })
        };
        // A table that is there and can't be used says that the frame pointer is none.
        let has_table = Tables::of(frame.pc.wrapping_sub(1), frame.is_sure)
            .is_some_and(|tables| tables.has(frame.pc.wrapping_sub(1)));
        if has_table { Step::Lost } else { caller().map_or(Step::Lost, Step::Caller) }
    }

    /// The word at that address of the stack (UNWIND-1).
    fn word(&mut self, at: usize) -> Option<usize> {
        if !at.is_multiple_of(WORD) || at < PAGE {
            return None;
        }
        let (page, into) = (at & !(PAGE - 1), at & (PAGE - 1));
        if self.at != page {
            self.at = 0;
            if sys::read_own([(page, PAGE), (page, 0)], &mut self.bytes)? != PAGE {
                return None;
            }
            self.at = page;
        }
        let bytes = self.bytes.get(into..into + WORD)?;
        bytes.try_into().ok().map(usize::from_ne_bytes)
    }
}

/// A return address without the signature that the CPU may have put into its upper bits.
fn plain(address: usize) -> usize {
    if cfg!(target_arch = "aarch64") { address & ((1 << 48) - 1) } else { address }
}
