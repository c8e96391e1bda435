//! The segments and the task state, with the stacks of vectors.
//!
//! Vectors have three stacks (IST): 1 for interrupts, 2 for exceptions, 3 for exceptions that may
//! come in the middle of either. So no handler begins below the stack pointer of the code that it
//! interrupts, where precompiled code may keep data (the red zone).

use core::arch::asm;
use core::cell::UnsafeCell;

/// The selector of code; that of data follows.
pub(super) const CODE: u16 = 8;

/// The numbers of the stacks: of interrupts, of exceptions, and of exceptions in the middle of
/// either.
pub(super) const INTERRUPTS: u8 = 1;
pub(super) const EXCEPTIONS: u8 = 2;
pub(super) const NESTED: u8 = 3;

/// Sizes of the stacks of vectors, in bytes: an interrupt leaves its stack at once, but a report
/// formats text.
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

/// The segments, the task state and the stacks of one processor. It must not move after it was
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
    /// Creates segments that are not loaded yet. All zero, so that a static takes no room in the
    /// image.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
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
        }
    }

    /// Makes this processor use these segments.
    ///
    /// # Safety
    ///
    /// No other processor uses them, they are not moved or freed, and interrupts are off.
    pub unsafe fn load(&self) {
        let task = self.task.get();
        let top = |stack: *const u8, size: usize| (stack.expose_provenance() + size) as u64;
        // SAFETY: the caller promises that no other processor uses them.
        unsafe {
            (*task).stacks[usize::from(INTERRUPTS) - 1] = top(self.interrupts.get().cast(), SMALL);
            (*task).stacks[usize::from(EXCEPTIONS) - 1] = top(self.exceptions.get().cast(), LARGE);
            (*task).stacks[usize::from(NESTED) - 1] = top(self.nested.get().cast(), LARGE);
            // No port is open to less privileged code, which does not exist here.
            (*task).ports = size_of::<TaskState>() as u16;
        }
        let base = task.expose_provenance() as u64;
        let limit = size_of::<TaskState>() as u64 - 1;
        // The descriptor of an available 64-bit task state, over which its address is spread.
        let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
        // SAFETY: the caller promises that no other processor uses them.
        unsafe {
            *self.descriptors.get() =
                [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, low, base >> 32];
        }
        let pointer = Pointer {
            limit: size_of::<[u64; 5]>() as u16 - 1,
            base: self.descriptors.get().expose_provenance() as u64,
        };
        // SAFETY: the selectors in use have the same meaning in the new table.
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

/// The address and size of a table, for the processor.
#[repr(C, packed(2))]
pub(super) struct Pointer {
    pub(super) limit: u16,
    pub(super) base: u64,
}
