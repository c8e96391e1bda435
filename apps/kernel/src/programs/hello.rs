//! `hello`: prints the machine's CPUs, nodes and memory, from a thread of each CPU.

use antiphon_metal::kernel::{cpu, heap, thread};
use antiphon_metal::println;
use antiphon_metal::x86::cpu::tsc;
use antiphon_metal::x86::power::Outcome;
use antiphon_metal::x86::{apic, clock};

pub fn run() -> Outcome {
    // Since the machine was switched on, with its firmware; in an exact run, instructions.
    println!("first_code_ticks={}", tsc());
    println!("first_code_us={}", clock::now_ns() / 1000);
    println!("cpus={}", cpu::count());
    println!("nodes={}", cpu::nodes());
    println!("x2apic={}", u8::from(apic::is_x2()));
    println!("tsc_deadline={}", u8::from(apic::is_by_deadline()));
    for node in 0..cpu::nodes() as u16 {
        let (size, left) = heap::memory(node);
        println!("node{node}.memory_kib={}", size >> 10);
        println!("node{node}.left_kib={}", left >> 10);
    }
    let mut right = true;
    for number in 0..cpu::count() {
        let hello = move || {
            let block = alloc::boxed::Box::new(number);
            let here = &raw const *block;
            (cpu::number(), cpu::this().node(), heap::node_of(here.addr()))
        };
        let Ok(handle) = thread::spawn_on(number, hello) else { return Outcome::Failed };
        let (cpu, node, memory) = handle.join();
        println!("hello from CPU {cpu}, node {node}, memory of node {memory}");
        right &= cpu == number && node == memory;
    }
    if right { Outcome::Passed } else { Outcome::Failed }
}
