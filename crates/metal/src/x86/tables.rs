//! Segments, the task state and the interrupt table.
//!
//! Each vector has a stack of its own kind (IST): 1 for interrupts, 2 for exceptions, 3 for those
//! that may come in the middle of either. So none of them writes below the stack pointer of the
//! code that it interrupts, where precompiled code may keep something (the red zone).

use core::arch::asm;
use core::cell::UnsafeCell;

use super::entry;

/// The vector of the interrupt that wakes a halted processor.
pub const KICK: u8 = 0xfc;
/// The vector of active messages.
pub const MESSAGE: u8 = 0xe8;
/// Likewise, for measurements: notes when the actions are about to be run.
pub const MESSAGE_NOTED: u8 = 0xe7;
/// An interrupt that only notes when it came.
pub const RAW: u8 = 0xe6;
/// Likewise, by an instruction of the processor itself.
pub const INSTRUCTION: u8 = 0xe5;
/// The vector of the timer.
pub const TIMER: u8 = 0xef;
/// The vector of interrupts that went away.
pub const SPURIOUS: u8 = 0xff;

/// The selector of code; data follows.
pub const CODE: u16 = 8;

/// Which stack a vector is entered on.
const INTERRUPTS: u8 = 1;
const EXCEPTIONS: u8 = 2;
const NESTED: u8 = 3;

/// Size of the stacks of vectors: an interrupt leaves its stack at once, a report formats text.
const SMALL: usize = 4096;
const LARGE: usize = 16384;

#[repr(C, packed(4))]
struct TaskState {
    reserved: u32,
    privileged: [u64; 3],
    reserved_too: u64,
    stacks: [u64; 7],
    reserved_as_well: u64,
    reserved_half: u16,
    ports: u16,
}

const _: () = assert!(size_of::<TaskState>() == 104);

#[repr(C, align(16))]
struct Stack<const SIZE: usize>([u8; SIZE]);

/// The segments, the task state and the stacks of one processor. It stays where it is once it was
/// loaded.
#[repr(C, align(16))]
pub struct Segments {
    descriptors: UnsafeCell<[u64; 5]>,
    task: UnsafeCell<TaskState>,
    interrupts: UnsafeCell<Stack<SMALL>>,
    exceptions: UnsafeCell<Stack<LARGE>>,
    nested: UnsafeCell<Stack<LARGE>>,
}

impl Segments {
    /// Segments that were not loaded yet. All zero, so that a static of it takes no room in an
    /// image.
    pub const NEW: Self = Self {
        descriptors: UnsafeCell::new([0; 5]),
        task: UnsafeCell::new(TaskState {
            reserved: 0,
            privileged: [0; 3],
            reserved_too: 0,
            stacks: [0; 7],
            reserved_as_well: 0,
            reserved_half: 0,
            ports: 0,
        }),
        interrupts: UnsafeCell::new(Stack([0; SMALL])),
        exceptions: UnsafeCell::new(Stack([0; LARGE])),
        nested: UnsafeCell::new(Stack([0; LARGE])),
    };

    /// Has this processor use them.
    ///
    /// # Safety
    ///
    /// No other processor uses them, they are not moved or freed, and interrupts are off.
    pub unsafe fn load(&self) {
        let task = self.task.get();
        let top = |stack: *const u8, size: usize| (stack.expose_provenance() + size) as u64;
        // SAFETY: no one else has them, by the caller's promise.
        unsafe {
            (*task).stacks[usize::from(INTERRUPTS) - 1] = top(self.interrupts.get().cast(), SMALL);
            (*task).stacks[usize::from(EXCEPTIONS) - 1] = top(self.exceptions.get().cast(), LARGE);
            (*task).stacks[usize::from(NESTED) - 1] = top(self.nested.get().cast(), LARGE);
            // No port is open to less privileged code, of which there is none.
            (*task).ports = size_of::<TaskState>() as u16;
        }
        let base = task.expose_provenance() as u64;
        let limit = size_of::<TaskState>() as u64 - 1;
        // An available task state of 64 bits: its address is spread over the descriptor.
        let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
        // SAFETY: as above.
        unsafe {
            *self.descriptors.get() =
                [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, low, base >> 32];
        }
        let pointer = Pointer {
            limit: size_of::<[u64; 5]>() as u16 - 1,
            base: self.descriptors.get().expose_provenance() as u64,
        };
        // SAFETY: the selectors that are in use mean the same in the new table.
        unsafe {
            asm!(
                "lgdt [{pointer}]",
                "push {code}",
                "lea {scratch}, [rip + 2f]",
                "push {scratch}",
                "retfq",
                "2:",
                "mov ds, {data:e}",
                "mov es, {data:e}",
                "mov ss, {data:e}",
                "mov fs, {data:e}",
                "ltr {task:x}",
                pointer = in(reg) &raw const pointer,
                code = const CODE as u64,
                scratch = out(reg) _,
                data = in(reg) u32::from(CODE) + 8,
                task = in(reg) CODE + 16,
            );
        }
    }
}

#[repr(C, packed(2))]
struct Pointer {
    limit: u16,
    base: u64,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Gate {
    low: u64,
    high: u64,
}

impl Gate {
    const ABSENT: Self = Self { low: 0, high: 0 };

    fn new(handler: usize, stack: u8) -> Self {
        const INTERRUPT_GATE: u64 = 0x8e;
        let at = handler as u64;
        let low = at & 0xffff
            | u64::from(CODE) << 16
            | u64::from(stack) << 32
            | INTERRUPT_GATE << 40
            | (at >> 16 & 0xffff) << 48;
        Self { low, high: at >> 32 }
    }
}

#[repr(C, align(16))]
struct Interrupts(UnsafeCell<[Gate; 256]>);

// SAFETY: written by the first processor, before it starts another.
unsafe impl Sync for Interrupts {}

static INTERRUPT_TABLE: Interrupts = Interrupts(UnsafeCell::new([Gate::ABSENT; 256]));

/// Writes the interrupt table, for processors whose APICs are used by registers of either kind.
///
/// # Safety
///
/// This is the only processor, and interrupts are off.
pub unsafe fn write_interrupt_table(x2: bool) {
    // SAFETY: the caller's promise.
    let table = unsafe { &mut *INTERRUPT_TABLE.0.get() };
    for (vector, handler) in entry::exceptions().into_iter().enumerate() {
        // Non-maskable interrupt, double fault, machine check.
        let stack = if [2, 8, 18].contains(&vector) { NESTED } else { EXCEPTIONS };
        table[vector] = Gate::new(handler, stack);
    }
    for gate in &mut table[32..] {
        *gate = Gate::new(entry::unexpected(), EXCEPTIONS);
    }
    for (vector, handler) in entry::interrupts(x2) {
        table[usize::from(vector)] = Gate::new(handler, INTERRUPTS);
    }
}

/// Has this processor use the interrupt table.
///
/// # Safety
///
/// It was written, and this processor has loaded its [`Segments`].
pub unsafe fn load_interrupt_table() {
    let pointer = Pointer {
        limit: size_of::<[Gate; 256]>() as u16 - 1,
        base: INTERRUPT_TABLE.0.get().expose_provenance() as u64,
    };
    // SAFETY: the caller's promise.
    unsafe {
        asm!("lidt [{}]", in(reg) &raw const pointer, options(nostack, preserves_flags));
    }
}
