//! Files, lines and the time of day, by the host: the image's side of the [channel](shared).
//!
//! The memory is that of QEMU's device `ivshmem-plain`, which `antiphon-lab metal --share DIR` adds
//! and serves. Without that device each call returns [`Error::Absent`].
//!
//! A call takes a slot, writes the request, and waits for the answer: the thread first lets others
//! run, and then sleeps between two checks, twice as long each time. So its CPU runs other threads,
//! or halts. A call can't be cancelled: if the host has died, the time limit of the run ends it.

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Acquire;
use core::{ptr, slice};

use super::{schedule, thread};
pub use crate::channel::Error;
use crate::channel::{self as shared, Channel, DATA, Held, Operation, Request, SLOTS, Slot, Taken};
use crate::metal::Metal;

/// The first and the longest sleep between two checks, in nanoseconds.
const SHORTEST_NS: u64 = 5_000;
const LONGEST_NS: u64 = 1_000_000;

/// The shared memory; null if there is none.
static MEMORY: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());
static TAKEN: Taken<Metal> = Taken::NEW;

/// Looks for the device, and for a host that serves it.
///
/// # Safety
///
/// The other processors do not run.
#[cfg(antiphon_image)]
pub(super) unsafe fn set_up() {
    use core::sync::atomic::Ordering::Release;

    use super::heap;
    use crate::x86::pci::Device;
    /// The number of shared memory between machines, and Red Hat's.
    const DEVICE: u32 = 0x1110_1af4;
    // SAFETY: by the caller's promise no other processor runs, so no other code uses PCI or the
    // device.
    let memory = unsafe { Device::find(DEVICE).and_then(|device| device.memory(2)) };
    let Some(memory) = memory.filter(|memory| memory.length() >= shared::LENGTH as u64) else {
        return;
    };
    // SAFETY: the device's memory is ordinary memory of the host, which may be cached.
    if unsafe { heap::map_device(memory) }.is_err() {
        return crate::println!("channel: no memory to map the device's");
    }
    let first = ptr::with_exposed_provenance_mut(memory.start as usize);
    // SAFETY: the memory is mapped for good, has that length, and is only accessed as atomics.
    let words = unsafe { slice::from_raw_parts(first, shared::LENGTH / 8) };
    if Channel::new(words).is_some_and(Channel::is_open) {
        // Release: pairs with the acquire in `channel`.
        MEMORY.store(first, Release);
    }
}

fn channel() -> Result<Channel<'static>, Error> {
    // Acquire: pairs with the release in `set_up`.
    let first = MEMORY.load(Acquire);
    if first.is_null() {
        return Err(Error::Absent);
    }
    // SAFETY: as in `set_up`, which has stored the address.
    let words = unsafe { slice::from_raw_parts(first, shared::LENGTH / 8) };
    Channel::new(words).ok_or(Error::Absent)
}

/// A call whose request was sent to the host. Dropping it waits for the answer.
#[must_use = "a call holds a slot until it is waited for"]
pub struct Call {
    slot: Slot<'static>,
    /// `None` when the answer was taken.
    held: Option<Held<'static, Metal>>,
}

impl Call {
    /// Sends a request to the host. Waits only while all slots are taken.
    ///
    /// # Errors
    ///
    /// [`Error::Absent`]; [`Error::TooMuch`] if there are more than [`DATA`] bytes of data.
    #[inline]
    pub fn ask(request: &Request, data: &[u8]) -> Result<Self, Error> {
        let channel = channel()?;
        if data.len() > DATA {
            return Err(Error::TooMuch);
        }
        let held = hold_slot();
        let slot = channel.slot(held.index());
        slot.ask(request, data);
        Ok(Self { slot, held: Some(held) })
    }

    /// Waits until the host has answered.
    pub fn wait(&self) {
        wait_for(|| self.slot.is_answered().then_some(()));
    }

    /// Waits for the answer and takes it, with as much of its data as `into` has room for.
    ///
    /// # Errors
    ///
    /// The error that the host has answered.
    #[inline]
    pub fn answer(mut self, into: &mut [u8]) -> Result<u64, Error> {
        self.wait();
        let answer = self.slot.take(into);
        self.held = None;
        answer
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.held.is_some() {
            self.wait();
        }
    }
}

/// Takes a free slot; waits for one.
fn hold_slot() -> Held<'static, Metal> {
    wait_for(|| TAKEN.take::<SLOTS>())
}

/// Waits until `find` returns a value; meanwhile other threads run, or the CPU halts.
fn wait_for<T>(mut find: impl FnMut() -> Option<T>) -> T {
    if let Some(found) = find() {
        return found;
    }
    schedule::yield_now();
    let mut ns = SHORTEST_NS;
    loop {
        if let Some(found) = find() {
            return found;
        }
        thread::sleep_ns(ns);
        ns = (2 * ns).min(LONGEST_NS);
    }
}

/// Makes a call whose answer has no data.
fn call(operation: Operation, file: u64, offset: u64, data: &[u8]) -> Result<u64, Error> {
    let request = Request { operation: operation as u64, file, offset, count: data.len() as u64 };
    Call::ask(&request, data)?.answer(&mut [])
}

/// Prints a line on the host's console. A line that is longer than [`DATA`] is refused.
///
/// # Errors
///
/// [`Error`].
pub fn print_line(text: &str) -> Result<(), Error> {
    call(Operation::Print, 0, 0, text.as_bytes()).map(drop)
}

/// Returns the time of the host's clock, in nanoseconds since 1 January 1970 UTC.
///
/// # Errors
///
/// [`Error`].
pub fn wall_ns() -> Result<u64, Error> {
    call(Operation::Clock, 0, 0, &[])
}

/// A file of the host, in the folder that the host shares. Dropping it closes it.
#[derive(Debug)]
pub struct File(u64);

impl File {
    /// Opens a file to read it. `path` is relative to the shared folder.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn open(path: &str) -> Result<Self, Error> {
        call(Operation::Open, 0, 0, path.as_bytes()).map(Self)
    }

    /// Creates a file, or empties it, to read and write it. Its folder must exist.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn create(path: &str) -> Result<Self, Error> {
        call(Operation::Create, 0, 0, path.as_bytes()).map(Self)
    }

    /// Reads from `offset` on, and returns the number of bytes. It is less than the length of
    /// `into` only at the end of the file.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        let mut done = 0;
        while done < into.len() {
            let part = (into.len() - done).min(DATA);
            let request = Request {
                operation: Operation::Read as u64,
                file: self.0,
                offset: offset.saturating_add(done as u64),
                count: part as u64,
            };
            let got = Call::ask(&request, &[])?.answer(&mut into[done..done + part])?;
            if got == 0 {
                break;
            }
            done += usize::try_from(got).unwrap_or(part).min(part);
        }
        Ok(done)
    }

    /// Writes all of `bytes` from `offset` on.
    ///
    /// # Errors
    ///
    /// [`Error`]. Part of the bytes may have been written.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        let mut done = 0;
        while done < bytes.len() {
            let part = &bytes[done..bytes.len().min(done + DATA)];
            let at = offset.saturating_add(done as u64);
            match call(Operation::Write, self.0, at, part)? {
                0 => return Err(Error::Failed),
                put => done += usize::try_from(put).unwrap_or(part.len()).min(part.len()),
            }
        }
        Ok(())
    }

    /// Closes the file.
    ///
    /// # Errors
    ///
    /// [`Error`].
    pub fn close(self) -> Result<(), Error> {
        let result = call(Operation::Close, self.0, 0, &[]).map(drop);
        core::mem::forget(self);
        result
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // An error can't be returned from here; `close` returns it.
        let _ = call(Operation::Close, self.0, 0, &[]);
    }
}
