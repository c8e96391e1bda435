//! Tests of fibers on these stacks: many of them, and one that overflows its stack.

mod support;

use std::num::NonZeroUsize;
use std::ptr::null_mut;
use std::sync::OnceLock;

use antiphon_linux::stack::{Counts, Stack, Stacks};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use support::{FORKS, in_child};

/// A stack as a fiber runtime uses it.
struct Memory(Stack);

// SAFETY: the memory is the stack's own, with a guard, and more than the least.
unsafe impl corosensei::stack::Stack for Memory {
    fn base(&self) -> NonZeroUsize {
        self.0.base()
    }

    fn limit(&self) -> NonZeroUsize {
        self.0.limit()
    }
}

const BYTES: usize = 32 << 10;
static STACKS: OnceLock<Stacks> = OnceLock::new();

fn memory(stacks: &Stacks) -> Memory {
    Memory(stacks.take().expect("a stack"))
}

#[test]
fn fibers_run_side_by_side_and_again() {
    let stacks = Stacks::new(BYTES).expect("a size");
    for round in 1..=3 {
        let mut fibers: Vec<_> = (0..2_000_u64)
            .map(|number| {
                let body = move |yielder: &Yielder<u64, u64>, first: u64| {
                    // On the stack, while all others run on theirs.
                    let mut kept = [number; 64];
                    kept[0] += first;
                    for turn in 1..kept.len() {
                        if turn % 16 == 0 {
                            kept[turn] += yielder.suspend(kept[turn - 1]);
                        }
                    }
                    kept.iter().sum::<u64>()
                };
                (number, Coroutine::with_stack(memory(&stacks), body))
            })
            .collect();
        for _ in 0..3 {
            for (number, fiber) in &mut fibers {
                assert!(matches!(fiber.resume(round), CoroutineResult::Yield(n) if n == *number));
            }
        }
        for (number, fiber) in &mut fibers {
            let end = fiber.resume(round);
            assert!(matches!(end, CoroutineResult::Return(sum) if sum == *number * 64 + 4 * round));
        }
        drop(fibers);
        assert_eq!(stacks.counts(), Counts { made: 2_000, hot: 2_000, cold: 0 });
    }
    assert_eq!(stacks.trim(0), 2_000);
    let end = Coroutine::with_stack(memory(&stacks), |_: &Yielder<(), ()>, ()| 7).resume(());
    assert!(matches!(end, CoroutineResult::Return(7)));
}

/// Uses more than `depth` bytes of stack.
fn dig(depth: usize) -> usize {
    let frame = std::hint::black_box([depth as u8; 512]);
    let below = if depth < frame.len() { 0 } else { dig(depth - frame.len()) };
    below + usize::from(frame[depth % frame.len()] == depth as u8)
}

/// Ends the process, with success if the fault was an overflow.
extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel fills it in, with an address for this signal.
    let address = unsafe { (*info).si_addr() }.addr();
    let overflow = STACKS.get().is_some_and(|stacks| stacks.guards(address));
    // SAFETY: ends the process.
    unsafe { libc::_exit(if overflow { 0 } else { 2 }) }
}

fn handle_faults() -> bool {
    // SAFETY: zero bytes are a valid action.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_ONSTACK | libc::SA_SIGINFO;
    let size = 64 << 10;
    let other = libc::stack_t {
        ss_sp: Box::leak(vec![0_u8; size].into_boxed_slice()).as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: size,
    };
    // SAFETY: the stack is never freed, and the handler calls only functions that are allowed in
    // handlers.
    unsafe {
        libc::sigaltstack(&raw const other, null_mut()) == 0
            && libc::sigaction(libc::SIGSEGV, &raw const action, null_mut()) == 0
    }
}

#[test]
fn an_overflow_can_be_told_from_other_faults() {
    let stacks = STACKS.get_or_init(|| Stacks::new(BYTES).expect("a size"));
    let run = |depth: usize| {
        let mut fiber =
            Coroutine::with_stack(memory(stacks), move |_: &Yielder<(), ()>, ()| dig(depth));
        matches!(fiber.resume(()), CoroutineResult::Return(1..))
    };
    assert!(run(BYTES / 8));
    // A child that returns has failed: the handler exits with success.
    assert!(in_child(FORKS[0].1, || handle_faults() && !run(4 * BYTES)));
    // SAFETY: it is not, which is what the handler is for: the child ends there.
    let elsewhere = || unsafe { std::ptr::without_provenance_mut::<u8>(8).read_volatile() } == 0;
    assert!(!in_child(FORKS[0].1, || handle_faults() && elsewhere()));
}
