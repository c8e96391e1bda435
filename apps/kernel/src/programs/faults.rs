//! `fault`, `overflow`, `overflow-idle`, `panic`: each ends in a report and a status that is not
//! zero.

use antiphon_metal::kernel::{cpu, message, thread};
use antiphon_metal::x86::power::Outcome;

/// An address at which no memory is mapped.
const NOWHERE: usize = 0x1234_5678_9000;

/// Reads from an address at which no memory is mapped.
pub fn fault() -> Outcome {
    let nowhere = core::ptr::with_exposed_provenance::<u64>(NOWHERE);
    // SAFETY: no memory is mapped there, so the read yields no value: the processor raises a page
    // fault, and the kernel reports it and ends the machine.
    let value = unsafe { nowhere.read_volatile() };
    antiphon_metal::println!("read={value}");
    Outcome::Failed
}

/// Recurses until the stack of a thread on the last CPU overflows.
pub fn overflow() -> Outcome {
    let last = cpu::count() - 1;
    if let Ok(handle) = thread::spawn_on(last, || deeper(1)) {
        antiphon_metal::println!("depth={}", handle.join());
    }
    Outcome::Failed
}

/// Recurses until the boot stack overflows: in an action of CPU 0, which runs on the stack of that
/// CPU's idle thread. The CPU is idle while this thread sleeps on another one.
pub fn overflow_idle() -> Outcome {
    const MS: u64 = 1_000_000;
    if cpu::count() < 2 {
        antiphon_metal::println!("`overflow-idle` needs two CPUs");
        return Outcome::Misused;
    }
    thread::bind(1);
    thread::sleep_ns(MS);
    let action = message::register(|depth| _ = deeper(depth as u64), 1);
    message::post(0, action.expect("an action of the kernel"));
    thread::sleep_ns(1000 * MS);
    Outcome::Failed
}

#[inline(never)]
fn deeper(depth: u64) -> u64 {
    let room = core::hint::black_box([depth; 64]);
    if depth == 0 {
        return 0;
    }
    deeper(core::hint::black_box(depth + 1)) + room[core::hint::black_box(3)]
}

/// Panics in a thread.
pub fn panic() -> Outcome {
    if let Ok(handle) = thread::spawn(|| panic!("asked for on the command line")) {
        handle.join();
    }
    Outcome::Failed
}
