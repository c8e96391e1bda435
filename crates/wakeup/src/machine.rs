//! What the protocol asks of a kernel.

use antiphon_platform::Atomics;

/// A kernel's processors, as far as waking them goes. A value without fields will do.
///
/// The protocol needs three properties of the hardware, which an APIC has: an interrupt that
/// arrives while interrupts are off stays pending; several of one signal that are pending may be
/// taken as one; and the receiver sees what the sender stored before it sent.
pub trait Machine {
    /// The atomic words: [`Words`](crate::words::Words), unless the kernel has its own.
    type Words: Atomics;

    /// A CPU: a number, or a reference to its state.
    type Cpu: Copy;

    /// An interrupt's purpose, usually its vector.
    type Signal: Copy;

    /// The signal that ends a halt. Its handler only acknowledges it.
    const KICK: Self::Signal;

    /// Returns whether the caller runs on this CPU. Called with interrupts off.
    fn is_current(&self, cpu: Self::Cpu) -> bool;

    /// Returns the number of other CPUs that [`interrupt_others`](Self::interrupt_others) reaches.
    fn others(&self) -> usize;

    /// Runs `body` with the caller's interrupts off, and then restores them.
    fn without_interrupts<R>(&self, body: impl FnOnce() -> R) -> R;

    /// Interrupts a CPU. Called with interrupts off.
    fn interrupt(&self, cpu: Self::Cpu, signal: Self::Signal);

    /// Interrupts all CPUs but the caller's. Called with interrupts off.
    fn interrupt_others(&self, signal: Self::Signal);

    /// Interrupts several CPUs: one after the other, unless the hardware has a multicast. Called
    /// with interrupts off.
    fn interrupt_several(&self, cpus: &[Self::Cpu], signal: Self::Signal) {
        cpus.iter().for_each(|&cpu| self.interrupt(cpu, signal));
    }

    /// Halts the caller's CPU until an interrupt has been handled. Called with interrupts off, and
    /// returns with them off. One that is pending already ends the halt at once (on x86: `sti` and
    /// `hlt` next to each other).
    fn halt(&self);
}
