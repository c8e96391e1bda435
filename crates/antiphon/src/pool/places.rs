//! On which CPUs the workers of a pool are.

use std::cell::Cell;

use antiphon_linux::pin;

/// The CPUs of the seats, from the first on again if there are more seats; none: anywhere.
pub(super) struct Places(pub(super) Vec<u32>);

thread_local! {
    /// The CPU that the calling thread was put on.
    static CPU: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Places {
    /// Puts the calling thread where a seat is, if it is not there.
    ///
    /// # Errors
    ///
    /// If that can't be: the CPU. The thread stays where it was.
    pub(super) fn settle(&self, seat: usize) -> Result<(), u32> {
        let cpu = self.0.get(seat % self.0.len().max(1)).copied();
        let Some(cpu) = cpu.filter(|_| CPU.get() != cpu) else { return Ok(()) };
        pin(cpu).map_err(|_| cpu)?;
        CPU.set(Some(cpu));
        Ok(())
    }
}
