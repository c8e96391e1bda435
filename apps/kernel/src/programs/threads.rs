//! `threads`: tests of the promises of the kernel about threads and memory.
//!
//! | part | counts |
//! |---|---|
//! | `created` | threads that run on the chosen CPU, or by default on their creator's |
//! | `joined` | the sum of what threads have returned |
//! | `bound` | moves of a thread to the CPU that it asked for |
//! | `moved` | times that a yielding, sleeping thread was on a wrong CPU: must be 0 |
//! | `turns` | turns of threads that yield, in the order of their creation |
//! | `slices` | turns of threads that never yield, under preemption |
//! | `cooperative` | turns without preemption: the first thread keeps the CPU |
//! | `own_stacks` | stacks on the node of their CPU, after threads have moved and ended |
//! | `own_memory` | blocks on their allocator's node that another node wrote to first |

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use antiphon_metal::kernel::thread::{self, JoinHandle};
use antiphon_metal::kernel::{cpu, heap, schedule};
use antiphon_metal::x86::clock;
use antiphon_metal::x86::power::Outcome;

use crate::programs::parts::Parts;

const THREADS: u64 = 3;
const ROUNDS: u64 = 50;
const SLICE_NS: u64 = 20_000;

pub fn run() -> Outcome {
    let count = u64::from(cpu::count());
    let mut parts = Parts::NONE;
    parts.add("created", (created(), count * 2));
    parts.add("joined", (joined(), count * (count + 1) / 2));
    parts.add("bound", (bound(), count * 2));
    parts.add("moved", (moved(), 0));
    parts.add("turns", (turns(), THREADS * ROUNDS));
    parts.add("slices", (slices(SLICE_NS), 1));
    parts.add("cooperative", (slices(0), 0));
    parts.add("own_stacks", own_stacks());
    parts.add("own_memory", (own_memory(), count));
    parts.outcome()
}

fn on<T: Send + 'static>(cpu: u32, body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::spawn_on(cpu, body).expect("memory for a thread")
}

/// For each CPU: this thread creates a thread there, and that thread creates another.
fn created() -> u64 {
    let here = |number| u64::from(cpu::number() == number);
    let both = |number| {
        on(number, move || {
            let child = thread::spawn(move || here(number)).expect("memory for a thread");
            here(number) + child.join()
        })
    };
    let handles: Vec<_> = (0..cpu::count()).map(both).collect();
    handles.into_iter().map(JoinHandle::join).sum()
}

/// Half of the threads have ended before they are joined.
fn joined() -> u64 {
    let returns = |number: u32| {
        on(number, move || {
            thread::sleep_ns(u64::from(number % 2) * 50_000);
            u64::from(number) + 1
        })
    };
    let handles: Vec<_> = (0..cpu::count()).map(returns).collect();
    while !handles[0].is_finished() {
        schedule::yield_now();
    }
    handles.into_iter().map(JoinHandle::join).sum()
}

/// A thread goes to each CPU, and comes back from there.
fn bound() -> u64 {
    let home = cpu::number();
    let there_and_back = move || {
        let arrives = |number| {
            thread::bind(number);
            u64::from(cpu::number() == number)
        };
        (0..cpu::count()).map(|number| arrives(number) + arrives(home)).sum()
    };
    thread::spawn(there_and_back).expect("memory for a thread").join()
}

/// Threads of this CPU wait for each other, while all others have nothing to do.
fn moved() -> u64 {
    let home = cpu::number();
    let strays = move || {
        let look = |round| {
            match round % 8 {
                0 => thread::sleep_ns(5_000),
                _ => _ = schedule::yield_now(),
            }
            u64::from(cpu::number() != home)
        };
        (0..ROUNDS).map(look).sum::<u64>()
    };
    let handles: Vec<_> = (0..THREADS).map(|_| on(home, strays)).collect();
    handles.into_iter().map(JoinHandle::join).sum()
}

/// Each thread adds 1 if it is its turn, and yields.
fn turns() -> u64 {
    let total = Arc::new(AtomicU64::new(0));
    let turn = |mine: u64| {
        let total = total.clone();
        on(cpu::number(), move || {
            for _ in 0..ROUNDS {
                // Relaxed: threads of one CPU.
                let seen = total.load(Relaxed);
                if seen % THREADS == mine {
                    total.store(seen + 1, Relaxed);
                }
                schedule::yield_now();
            }
        })
    };
    let handles: Vec<_> = (0..THREADS).map(turn).collect();
    handles.into_iter().for_each(JoinHandle::join);
    total.load(Relaxed)
}

/// Threads spin until each has had its turn twice, in the order of their creation, or until the
/// time for that is over. The count is 1 if each has had its turns.
fn slices(slice_ns: u64) -> u64 {
    schedule::set_slice_ns(slice_ns);
    let turns = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    let end = clock::now_ns() + 50 * THREADS * SLICE_NS;
    let spin = |mine: u64| {
        let (turns, stop) = (turns.clone(), stop.clone());
        on(cpu::number(), move || {
            while !stop.load(Relaxed) {
                // Relaxed: threads of one CPU. An interrupt in between changes nothing: only the
                // thread whose turn it is goes on.
                let seen = turns.load(Relaxed);
                if seen % THREADS == mine {
                    turns.store(seen + 1, Relaxed);
                }
                if seen >= 2 * THREADS || clock::now_ns() > end {
                    stop.store(true, Relaxed);
                }
                core::hint::spin_loop();
            }
        })
    };
    let handles: Vec<_> = (0..THREADS).map(spin).collect();
    handles.into_iter().for_each(JoinHandle::join);
    schedule::set_slice_ns(0);
    u64::from(turns.load(Relaxed) >= 2 * THREADS)
}

/// A thread of the first CPU moves to the last one, which may be of another node, and ends there.
/// Then threads are created on the last one: more than have ever ended there.
fn own_stacks() -> (u64, u64) {
    let last = cpu::count() - 1;
    let is_own = |number| {
        let stack = move || {
            let (low, _) = cpu::current().stack();
            u64::from(heap::node_of_stack(low) == Some(cpu::get(number).node()))
        };
        on(number, stack)
    };
    let wanderers: Vec<_> = (0..THREADS).map(|_| on(0, move || thread::bind(last))).collect();
    let count = 8 * wanderers.len() as u64;
    wanderers.into_iter().for_each(JoinHandle::join);
    let handles: Vec<_> = (0..count).map(|_| is_own(last)).collect();
    (handles.into_iter().map(JoinHandle::join).sum(), count)
}

/// A block of each CPU is written to first by a thread of the last one, which may be of another
/// node.
fn own_memory() -> u64 {
    const BYTES: usize = 1 << 16;
    let last = cpu::count() - 1;
    let is_own = |number| {
        let block: Box<[MaybeUninit<u8>]> = on(number, || Box::new_uninit_slice(BYTES)).join();
        let block = on(last, move || {
            let mut block = block;
            block.fill(MaybeUninit::new(1));
            block
        });
        let block = block.join();
        let address = block.as_ptr().addr();
        let owner = cpu::get(number).node();
        u64::from(heap::node_of(address) == owner && heap::node_of(address + BYTES - 1) == owner)
    };
    (0..cpu::count()).map(is_own).sum()
}
