//! From the machine's entry to the program: memory, processors, threads.
//!
//! | step | needs | gives |
//! |---|---|---|
//! | the first CPU's state, interrupt table | nothing | reports of exceptions |
//! | start information, tables of the firmware | | the map of memory, nodes, processors |
//! | page tables, heaps | the map | allocation, a guard below the boot stack |
//! | APIC, clock | | interrupts, time |
//! | the device of the host's channel | page tables | calls to the host |
//! | the other CPUs, one after the other | stacks | all CPUs idle |
//! | the program, in a thread of CPU 0 | | an [`Outcome`](crate::x86::power::Outcome) |

use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Release};

use super::cpu::{self, Cpu};
use super::lock::Lock;
use super::schedule::{self, Idle};
use super::wake::{self, Wake};
use super::{channel, command_line, heap, thread};
use crate::acpi::Tables;
use crate::bytes::Memory;
use crate::machine::{Limits, Machine, Processor};
use crate::multiboot2::{self, Information};
use crate::pvh::{Range, StartInfo};
use crate::x86::power::{self, Outcome};
use crate::x86::{apic, clock, interrupts, paging, uart};

static FIRST: Cpu = Cpu::new();
/// Number of CPUs that have come up.
static UP: AtomicU32 = AtomicU32::new(1);

/// Physical memory below 4 GiB, which the boot tables map.
struct Low;

impl Memory for Low {
    fn read(&self, address: u64, length: usize) -> Option<&[u8]> {
        let end = address.checked_add(length as u64)?;
        if address == 0 || end > 4 << 30 {
            return None;
        }
        let first = ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the boot tables map the first 4 GiB; no code writes to the firmware's tables
        // while they are read. Where there is no memory, a read yields any value.
        Some(unsafe { core::slice::from_raw_parts(first, length) })
    }
}

static MACHINE: Lock<Machine> = Lock::new(Machine::NEW);

/// The entry of the first processor, on the boot stack and with the boot page tables. `information`
/// is the address of the data that its loader has left; `loader` is a number that tells which
/// loader it is.
pub(crate) extern "C" fn first(information: u64, loader: u32) -> ! {
    uart::Uart::set_up();
    // SAFETY: interrupts are off, and this is the only processor.
    unsafe {
        FIRST.adopt(0, 0, 0);
        interrupts::write(apic::can_x2());
        interrupts::load();
    }
    FIRST.announce();
    // Begin a new line: the firmware may have printed a part of one.
    if loader == multiboot2::LOADER {
        crate::println!("\nloader=multiboot2");
        let info = Information::read(&Low, information).expect("the information of multiboot2");
        command_line::keep(info.text());
        describe(info.rsdp(), info.usable());
    } else {
        crate::println!("\nloader=pvh");
        let info = StartInfo::read(&Low, information).expect("the start information of PVH");
        command_line::keep(info.text(&Low));
        describe(info.rsdp, info.usable(&Low));
    }
    // SAFETY: the map leaves out memory that is in use, and the memory below 4 GiB is mapped.
    let root = unsafe {
        let machine = MACHINE.lock();
        heap::set_up(machine.map(), stack_guard()).expect("memory for page tables")
    };
    // SAFETY: the new tables map all addresses that the old ones map.
    unsafe { paging::load(root) };
    heap::add_high(MACHINE.lock().map());
    apic::silence_old_controllers();
    apic::set_up();
    let own = apic::id();
    let node = node_of(own);
    // SAFETY: interrupts are off, and no other processor uses this state.
    unsafe { FIRST.adopt(0, own, node) };
    thread::adopt(&FIRST, crate::x86::boot::stack());
    clock::set_up();
    set_options();
    // SAFETY: the other processors do not run.
    unsafe { channel::set_up() };
    start_others(own, root);
    let program = thread::spawn(run);
    assert!(program.is_ok(), "memory for the program's stack");
    schedule::idle()
}

/// The body of the program's thread.
fn run() {
    unsafe extern "Rust" {
        /// Defined by [`program!`](crate::program).
        fn antiphon_metal_program() -> Outcome;
    }
    // SAFETY: the macro defines it with this signature.
    let outcome = unsafe { antiphon_metal_program() };
    crate::println!("status={}", if outcome == Outcome::Passed { "passed" } else { "failed" });
    power::end(outcome)
}

/// Reads the firmware's description of the machine: its tables, and the memory to use.
fn describe(rsdp: u64, usable: impl Iterator<Item = Range>) {
    const REGISTERS: u64 = 0xfee0_0000;
    let limits = Limits { long_ids: apic::can_x2(), memory_end: paging::memory_end() };
    let tables = Tables::find(&Low, rsdp);
    apic::choose(tables.as_ref().and_then(Tables::local_apic).unwrap_or(REGISTERS));
    if let Some(power_off) = tables.as_ref().and_then(Tables::power_off) {
        power::note(power_off);
    }
    let mut machine = MACHINE.lock();
    let taken = [Range { start: 0, end: 1 << 20 }, image()];
    machine.add_memory(usable, &taken, limits);
    machine.describe(tables.as_ref(), limits);
    cpu::set_nodes(machine.nodes() as u32);
    for reason in machine.left_out() {
        crate::println!("firmware: {reason}");
    }
}

fn node_of(apic_id: u32) -> u16 {
    let machine = MACHINE.lock();
    let found = machine.processors().iter().find(|one| one.apic_id == apic_id);
    found.map_or(0, |processor| processor.node)
}

/// Returns the memory below the boot stack, which is not mapped, so that the overflow of that stack
/// is a fault.
fn stack_guard() -> Range {
    let (low, _) = crate::x86::boot::stack();
    Range { start: (low - crate::x86::boot::GUARD) as u64, end: low as u64 }
}

/// Returns the memory of the image.
fn image() -> Range {
    unsafe extern "C" {
        static image_begin: u8;
        static image_end: u8;
    }
    let at = |symbol: *const u8| symbol.expose_provenance() as u64;
    Range { start: at(&raw const image_begin), end: at(&raw const image_end) }
}

/// Sets the options of the command line:
///
/// - `preempt_us=N`: the length of time slices in microseconds, 0 for none.
/// - `idle=watch`: idle CPUs watch their inboxes, if the processor can.
/// - `wake=queue|kick|batched`: how CPUs learn of threads in their inboxes; `tick_us=N`: with
///   `wake=queue`, the time between two checks of an idle CPU.
/// - `end=acpi`: the machine is switched off by ACPI.
fn set_options() {
    let options = command_line::options();
    match options.number("preempt_us", 0) {
        Ok(us) => schedule::set_slice_ns(us * 1000),
        Err(value) => panic!("`preempt_us={value}`: give a number of microseconds"),
    }
    match options.get("idle") {
        None | Some("halt") => {}
        Some("watch") if schedule::set_idle(Idle::Watch) => {}
        Some("watch") => crate::println!("idle=halt: this processor has no MONITOR"),
        Some(other) => panic!("`idle={other}`: give `halt` or `watch`"),
    }
    match options.get("end") {
        None | Some("port") => {}
        Some("acpi") => power::without_debug_exit(),
        Some(other) => panic!("`end={other}`: give `port` or `acpi`"),
    }
    match options.get("wake") {
        None | Some("kick") => {}
        Some("queue") => wake::set(Wake::Queue),
        Some("batched") => wake::set(Wake::Batched),
        Some(other) => panic!("`wake={other}`: give `queue`, `kick` or `batched`"),
    }
    match options.number("tick_us", 100) {
        Ok(us) => wake::set_tick_ns(us.max(1) * 1000),
        Err(value) => panic!("`tick_us={value}`: give a number of microseconds"),
    }
}

/// Time within which a processor must come up, in nanoseconds. It is long because a processor of an
/// emulator waits for a turn on a host that has other work.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Starts the other processors, one after the other: each by the id of its APIC, so that processors
/// which the firmware has left out stay off.
fn start_others(own: u32, root: u64) {
    use crate::x86::boot::{TRAMPOLINE, place_trampoline};
    // SAFETY: the first megabyte is mapped, and the map of memory leaves it out.
    unsafe { place_trampoline() };
    let count = MACHINE.lock().processors().len();
    let listed = |index: usize| MACHINE.lock().processors()[index];
    // The firmware may have left out the first processor, which is one of the most that there can
    // be.
    let others = || {
        let others = (0..count).map(listed).filter(|processor| processor.apic_id != own);
        others.take(cpu::MOST_CPUS - 1)
    };
    for processor in others() {
        apic::send_reset(processor.apic_id);
    }
    // The time that a processor of the first generations takes to reset.
    clock::delay_ns(if others().next().is_some() { 10_000_000 } else { 0 });
    for (index, processor) in others().enumerate() {
        let number = index as u32 + 1;
        let stack = thread::stack_for(processor.node).expect("memory for the stack of a CPU");
        let cpu = heap::leak_on(processor.node, Cpu::new()).expect("memory for the state of a CPU");
        let starting = Box::leak(Box::new(Starting { number, processor, stack, cpu }));
        // SAFETY: no other processor is starting.
        unsafe { write_parameters(root, stack.1, starting) };
        apic::send_start(processor.apic_id, TRAMPOLINE);
        if !comes_up(number, 200_000) {
            // Some processors need a second message.
            apic::send_start(processor.apic_id, TRAMPOLINE);
        }
        assert!(
            comes_up(number, PATIENCE_NS),
            "the processor with APIC id {} does not start",
            processor.apic_id
        );
    }
}

/// The data that a starting processor is given.
struct Starting {
    number: u32,
    processor: Processor,
    stack: (usize, usize),
    cpu: &'static Cpu,
}

fn comes_up(number: u32, within_ns: u64) -> bool {
    let end = clock::now_ns() + within_ns;
    // Acquire: its state; pairs with the release in `other`.
    while UP.load(Acquire) <= number {
        if clock::now_ns() > end {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}

/// # Safety
///
/// No processor reads the parameters meanwhile.
unsafe fn write_parameters(root: u64, stack: usize, starting: *const Starting) {
    let parameters =
        [root as usize, stack, starting.expose_provenance(), other as *const () as usize];
    let at = ptr::with_exposed_provenance_mut::<[usize; 4]>(crate::x86::boot::PARAMETERS);
    // SAFETY: the place is in the page of the trampoline; the caller's promise.
    unsafe { at.write_volatile(parameters) };
}

/// The entry of every other processor in Rust, on the stack of its idle thread.
extern "C" fn other(starting: &'static Starting) -> ! {
    let Starting { number, processor, stack, cpu } = *starting;
    // SAFETY: interrupts are off; the state was made for this processor.
    unsafe {
        cpu.adopt(number, processor.apic_id, processor.node);
        interrupts::load();
    }
    apic::set_up();
    thread::adopt(cpu, stack);
    cpu.announce();
    // Release: pairs with the acquire in `comes_up`.
    UP.store(number + 1, Release);
    schedule::idle()
}
