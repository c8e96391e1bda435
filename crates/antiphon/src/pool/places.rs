//! The CPUs that the workers of a pool are pinned to.

use std::cell::Cell;

use antiphon_linux::pin;

/// The CPUs of the seats, starting over if there are more seats than CPUs. If empty, workers run
/// anywhere.
pub(super) struct Places(pub(super) Vec<u32>);

thread_local! {
    /// The CPU that the calling thread was pinned to.
    static CPU: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Places {
    /// Pins the calling thread to the CPU of a seat, unless it is there already.
    ///
    /// # Errors
    ///
    /// The CPU, if the thread can't be pinned to it. The thread stays where it was.
    pub(super) fn settle(&self, seat: usize) -> Result<(), u32> {
        let cpu = self.0.get(seat % self.0.len().max(1)).copied();
        let Some(cpu) = cpu.filter(|_| CPU.get() != cpu) else { return Ok(()) };
        pin(cpu).map_err(|_| cpu)?;
        CPU.set(Some(cpu));
        Ok(())
    }
}
