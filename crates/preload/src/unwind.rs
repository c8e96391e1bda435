//! Unwinder: the return addresses on the calling thread's stack, without an allocation or a lock.
//!
//! A frame is unwound by the compiler's table for exceptions (`.eh_frame`), which the loader finds
//! for an address without a lock (`_dl_find_object`, glibc 2.35; without it there are no stacks).
//! For code without a table, such as machine code generated at run time, the frame pointer is
//! tried.
//!
//! | module | contents |
//! |---|---|
//! | [`tables`] | the tables of the object at an address |
//! | [`rules`] | the rules of a table for one address |
//!
//! - **UNWIND-1** The stack is read by a system call, a page at a time, into memory of ours: a
//!   table that doesn't match its code can't make us access memory that doesn't exist.
//! - **UNWIND-2** Each step goes up the stack, except out of a signal handler, and there are at
//!   most [`STEPS`].
//! - **UNWIND-3** The tables of an object are read only while it can't be unloaded: its code is on
//!   our stack, because tables have led there from our own frame; or it was loaded when the program
//!   started. After a step by frame pointer, only the latter count.
//! - **UNWIND-4** The page of a walk is in one of [`ROOMS`], taken by an exchange: a signal handler
//!   that interrupts a walk takes another, and a thread that finds no free room walks no stack. A
//!   room that an ancestor of this process has taken, before a fork, counts as free.

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

/// Most frames that are walked, including ours.
const STEPS: usize = 64;
/// Most walks at a time.
const ROOMS: usize = 16;
/// Bytes of the stack that are read by one system call.
const PAGE: usize = 4096;
const WORD: usize = size_of::<usize>();

/// A copy of a page of the stack.
struct Page {
    bytes: [u8; PAGE],
    /// The address of the page; 0 for none.
    at: usize,
}

/// A [`Page`] that threads share.
struct Room {
    /// 1 + the epoch of the process whose thread has taken the room; 0 if it is free.
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
    /// Whether `pc` is the next instruction itself, and not a return address.
    is_exact: bool,
    /// Whether tables have led here from our own frame (UNWIND-3).
    is_sure: bool,
}

/// The result of a step.
enum Step {
    Caller(Frame),
    /// The thread began here: there is no caller.
    Bottom,
    /// The caller can't be determined.
    Lost,
}

pub(crate) use tables::settle;

/// Calls `seen` with each return address on the caller's stack, the innermost first, until `seen`
/// returns false. Returns whether all were seen, up to where the thread began.
pub(crate) fn return_addresses(mut seen: impl FnMut(usize) -> bool) -> bool {
    let us = Linux::epoch().wrapping_add(1).max(1);
    let take = |room: &&Room| {
        let taken = room.taken.load(Relaxed);
        // Acquire: the previous walk is over; pairs with the release below.
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
    /// Not inlined, so that it has a frame, at which the walk begins.
    #[inline(never)]
    fn walk(&mut self, seen: &mut impl FnMut(usize) -> bool) -> bool {
        let mut frame = here();
        for step in 0..STEPS {
            // A return address may be the first of the next function.
            let at = if frame.is_exact { frame.pc } else { frame.pc.wrapping_sub(1) };
            let tables = Tables::of(at, frame.is_sure);
            // An address in no object is skipped: it may not be code.
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

    /// The caller's frame, by the compiler's table.
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
            // The caller doesn't use the register.
            Rule::Undefined => 0,
            Rule::Offset(offset) => self.word(cfa.checked_add_signed(offset)?)?,
            Rule::Other => return None,
        };
        (pc != 0).then_some(Frame { pc, sp: cfa, fp, is_exact: false, is_sure: frame.is_sure })
    }

    /// The frame that a signal has interrupted: its handler returns to code that has the kernel
    /// restore the registers from the stack.
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
        // After the kernel's description of the signal.
        const REGISTERS: usize = 128
            + core::mem::offset_of!(libc::ucontext_t, uc_mcontext)
            + core::mem::offset_of!(libc::mcontext_t, regs);
        let mut register =
            |number: usize| self.word(frame.sp.checked_add(REGISTERS + number * WORD)?);
        // x29, and sp and pc, which follow x30.
        let [fp, sp, pc] = [29, 31, 32].map(&mut register);
        Some(Frame { pc: pc?, sp: sp?, fp: fp?, is_exact: true, is_sure: frame.is_sure })
    }

    /// The caller's frame by the frame pointer, for code without a table.
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
        // Where a table exists that can't be used, `fp` may not be a frame pointer.
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

/// A return address without the signature that the CPU may have stored in its upper bits.
fn plain(address: usize) -> usize {
    if cfg!(target_arch = "aarch64") { address & ((1 << 48) - 1) } else { address }
}
