//! Tests of stacks, with each kind of guard that the kernel has.

mod kernel;

use std::collections::HashSet;
use std::io::Write;
use std::os::fd::AsRawFd;

use super::*;
use crate::pages;

const KIB: usize = 1 << 10;
const BOTH: [Guards; 2] = [Guards::Marked, Guards::Shut];

const fn may_be_shared<T: Send + Sync>() {}
const _: () = (may_be_shared::<Stacks>(), may_be_shared::<Stack>()).1;

fn source(guards: Guards) -> Stacks {
    Stacks::with(64 * KIB, guards).expect("a size")
}

fn take(stacks: &Stacks, count: usize) -> Vec<Stack> {
    (0..count).map(|_| stacks.take().expect("a stack")).collect()
}

fn byte(address: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(address)
}

fn write(address: usize, value: u8) {
    // SAFETY: callers pass bytes of stacks that they have taken, or expect to crash.
    unsafe { byte(address).write_volatile(value) };
}

fn read(address: usize) -> u8 {
    // SAFETY: as in `write`.
    unsafe { byte(address).read_volatile() }
}

/// The address of the lowest usable byte.
fn bottom(stack: &Stack) -> usize {
    stack.base().get() - stack.bytes()
}

/// Returns whether `address` is readable, by a system call that does not crash the caller.
fn is_readable(address: usize) -> bool {
    let (_reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the kernel checks whether it may read the byte.
    unsafe { libc::write(writer.as_raw_fd(), byte(address).cast(), 1) == 1 }
}

/// Number of resident pages from `limit` to `base`, without the guard.
fn resident(stack: &(usize, usize)) -> usize {
    let (low, page) = (stack.0 + pages::size(), pages::size());
    let mut seen = vec![0_u8; (stack.1 - low).div_ceil(page)];
    // SAFETY: the call writes only one byte for each page.
    let told = unsafe { libc::mincore(byte(low).cast(), stack.1 - low, seen.as_mut_ptr()) };
    assert_eq!(told, 0);
    seen.iter().filter(|&&seen| seen & 1 != 0).count()
}

fn ends(stack: &Stack) -> (usize, usize) {
    (stack.limit().get(), stack.base().get())
}

/// The `waitpid` status of a child that runs `f`. A panic or `false` is an exit with code 1.
fn status(f: impl FnOnce() -> bool) -> libc::c_int {
    // SAFETY: the child uses only its own state, and exits without running anything else.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    if child == 0 {
        // SAFETY: takes only a number. A child that hangs is killed.
        unsafe { libc::alarm(60) };
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).unwrap_or(false);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!fine)) }
    }
    let mut status = 0;
    // SAFETY: the status word is a local.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } != child {}
    status
}

fn in_child(f: impl FnOnce() -> bool) {
    assert_eq!(status(f), 0);
}

/// Returns whether this kernel has markers; if not, reports it on the uncaptured standard error.
fn has_markers() -> bool {
    let page = pages::size();
    let at = pages::reserve(page).expect("a page");
    let has = pages::mark(at, page) && pages::open(at, page) && pages::is_guard(at, page);
    pages::unmap(at, page);
    if !has {
        let said = writeln!(std::io::stderr(), "in part: this kernel has no MADV_GUARD_INSTALL");
        assert!(said.is_ok());
    }
    has
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for bytes in [0, 1, 4096, LEAST_BYTES - 1] {
        assert_eq!(Stacks::new(bytes).err(), Some(BadSize::Small(bytes)));
    }
    for bytes in [isize::MAX as usize, usize::MAX - 4095, usize::MAX] {
        assert_eq!(Stacks::new(bytes).err(), Some(BadSize::Large(bytes)));
    }
    assert!(BadSize::Small(7).to_string().contains("8192 or more"));
    // A valid size, but no machine has that much.
    let stacks = Stacks::new(isize::MAX as usize / 2).expect("a size");
    assert_eq!(stacks.take().err(), Some(NoStack::Memory));
    assert_eq!(stacks.counts(), Counts { made: 0, hot: 0, cold: 0 });
}

#[test]
fn a_stack_has_what_was_asked_for_whatever_its_colour() {
    for bytes in [LEAST_BYTES, LEAST_BYTES + 1, 64 * KIB, 100_000, 1 << 20, 100 << 20] {
        let stacks = Stacks::new(bytes).expect("a size");
        for stack in take(&stacks, 40) {
            assert!(stack.bytes() >= bytes, "{} of {bytes}", stack.bytes());
            assert!(stack.bytes() < bytes + 3 * pages::size());
            assert_eq!(stack.limit().get() % pages::size(), 0);
            assert_eq!(stack.base().get() % 128, 0);
            write(stack.base().get() - 1, 1);
            write(bottom(&stack), 1);
        }
    }
}

#[test]
fn slabs_double_up_to_a_size() {
    let shape = Shape::new(64 * KIB).expect("a size");
    let largest = (64 << 20) / shape.stride();
    let sizes = [0, 64, 65, 128, 500, largest, 1_000_000].map(|made| shape.next_slab(made));
    assert_eq!(sizes, [64, 64, 65, 128, 500, largest, largest]);
    let large = Shape::new(40 << 20).expect("a size");
    assert_eq!([0, 1, 1_000].map(|made| large.next_slab(made)), [1; 3]);
    let giant = Shape::new(1 << 30).expect("a size");
    assert_eq!(giant.next_slab(1_000), 1);
}

#[test]
fn neighbours_differ_in_colour() {
    let taken = take(&source(Guards::Marked), 64);
    for neighbours in taken.chunks(16) {
        let sets: HashSet<_> = neighbours.iter().map(|stack| stack.base().get() % 4096).collect();
        assert_eq!(sets.len(), 16);
        let two = neighbours[1].limit().get().abs_diff(neighbours[0].limit().get());
        assert!(!(two / pages::size()).is_multiple_of(2));
    }
}

#[test]
fn stacks_are_apart_and_guarded() {
    for guards in BOTH {
        let stacks = source(guards);
        // The stacks come from several slabs.
        let mut taken = take(&stacks, 500);
        taken.sort_by_key(Stack::limit);
        assert!(taken.windows(2).all(|two| two[0].base() <= two[1].limit()), "{guards:?}");
        for stack in &taken {
            let (limit, page) = (stack.limit().get(), pages::size());
            write(stack.base().get() - 1, 1);
            assert!(is_readable(bottom(stack)) && bottom(stack) == limit + page, "{guards:?}");
            assert!(!is_readable(limit) && !is_readable(limit + page - 1), "{guards:?}");
            assert!(stacks.guards(limit) && stacks.guards(limit + page - 1), "{guards:?}");
            assert!(!stacks.guards(limit + page) && !stacks.guards(stack.base().get() - 1));
        }
        let here = 0;
        assert!(!stacks.guards(0) && !stacks.guards(core::ptr::from_ref(&here).addr()));
    }
}

#[test]
fn what_was_not_made_is_no_guard() {
    let stacks = source(Guards::Marked);
    assert!(!stacks.guards(0));
    let first = stacks.take().expect("a stack");
    let second = first.limit().get() + stacks.0.shape.stride();
    assert!(!stacks.guards(second));
    assert_eq!(stacks.take().expect("a stack").limit().get(), second);
    assert!(stacks.guards(second), "given back, it is still one");
}

#[test]
fn an_overflow_is_a_segmentation_fault() {
    for guards in BOTH {
        let stacks = source(guards);
        for stack in take(&stacks, 2) {
            in_child(|| {
                write(bottom(&stack), 1);
                true
            });
            let status = status(|| {
                write(bottom(&stack) - 1, 1);
                true
            });
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
        }
    }
}

#[test]
fn the_hottest_is_taken_first_then_cold_ones_then_new_ones() {
    let stacks = source(Guards::Marked);
    let mut taken = take(&stacks, 4);
    let limits: Vec<_> = taken.iter().map(Stack::limit).collect();
    // Given back in the order 2, 0, 3, 1, of which 2 and 0 get cold.
    for at in [2, 0, 1, 0] {
        drop(taken.remove(at));
    }
    assert_eq!(stacks.trim(2), 2);
    assert_eq!(stacks.counts(), Counts { made: 4, hot: 2, cold: 2 });
    assert_eq!(stacks.trim(2), 0);
    taken = take(&stacks, 5);
    let again: Vec<_> = taken.iter().map(Stack::limit).collect();
    assert_eq!(again[..2], [limits[1], limits[3]]);
    assert!(again[2..4].contains(&limits[0]) && again[2..4].contains(&limits[2]));
    assert!(!limits.contains(&again[4]));
    assert_eq!(stacks.counts(), Counts { made: 5, hot: 0, cold: 0 });
}

#[test]
fn cold_stacks_have_no_memory_and_others_keep_theirs() {
    for guards in BOTH {
        let stacks = source(guards);
        let mut taken = take(&stacks, 200);
        for stack in &taken {
            write(stack.base().get() - 1, 7);
            write(bottom(stack), 7);
        }
        let pages: Vec<_> = taken.iter().map(ends).collect();
        assert!(pages.iter().all(|stack| resident(stack) == 2), "{guards:?}");
        // Every tenth stays taken; the last of the others stay hot.
        let mut number = 0..;
        let kept: Vec<_> =
            taken.extract_if(.., |_| number.next().is_some_and(|n| n % 10 == 0)).collect();
        let hottest: HashSet<_> = taken[170..].iter().map(ends).collect();
        taken.into_iter().for_each(drop);
        assert_eq!(stacks.trim(10), 170);
        for stack in &pages {
            let stays = hottest.contains(stack) || kept.iter().any(|kept| ends(kept) == *stack);
            assert_eq!(resident(stack), if stays { 2 } else { 0 }, "{guards:?}");
            assert!(!is_readable(stack.0), "{guards:?}: a guard stays");
        }
        assert!(kept.iter().all(|stack| read(bottom(stack)) == 7), "{guards:?}");
        let again = take(&stacks, 180);
        let held = |stack: &&Stack| read(stack.base().get() - 1) == 7 && read(bottom(stack)) == 7;
        assert_eq!(again.iter().filter(held).count(), 10, "{guards:?}");
        assert_eq!(stacks.counts(), Counts { made: 200, hot: 0, cold: 0 });
    }
}

#[test]
fn a_source_goes_when_its_last_stack_does() {
    in_child(|| {
        let stacks = source(Guards::Marked);
        let mut taken = take(&stacks, 300);
        drop(stacks);
        let last = taken.swap_remove(150);
        let lowest = taken.iter().map(Stack::limit).min();
        drop(taken);
        write(bottom(&last), 1);
        let ends = [Some(last.limit()), lowest];
        let mapped = || {
            ends.map(|limit| {
                let mut seen = 0;
                // SAFETY: one page, so one byte.
                limit.is_some_and(|limit| unsafe {
                    libc::mincore(byte(limit.get()).cast(), 1, &raw mut seen) == 0
                })
            })
        };
        let before = mapped();
        drop(last);
        before == [true; 2] && mapped() == [false; 2]
    });
}

#[test]
fn threads_share_a_source() {
    let stacks = source(Guards::Marked);
    std::thread::scope(|scope| {
        for mark in 1..=4_u8 {
            let stacks = stacks.clone();
            scope.spawn(move || {
                for turn in 0..500 {
                    let taken = take(&stacks, usize::from(mark) * 3);
                    for stack in &taken {
                        write(stack.base().get() - 1, mark);
                        write(bottom(stack), mark);
                    }
                    let mine = |stack: &Stack| {
                        read(stack.base().get() - 1) == mark && read(bottom(stack)) == mark
                    };
                    assert!(taken.iter().all(mine), "a stack is one thread's");
                    drop(taken);
                    if turn % 50 == 0 {
                        stacks.trim(usize::from(mark));
                    }
                }
            });
        }
    });
    let Counts { made, hot, cold } = stacks.counts();
    assert_eq!(made, hot + cold);
    // At most 30 are in use, and each of 40 calls of `trim` may hide as many for a moment.
    assert!((12..=30 * 41).contains(&made), "{made}");
}
