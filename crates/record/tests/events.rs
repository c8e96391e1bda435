//! Events of threads that end, of too many threads, and of interrupted threads: each is in a batch
//! or is counted as dropped.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

use antiphon_record::events::{Batch, CHUNKS, Code, Note, Pen, Roll};
use antiphon_record::{Mapping, Recording, Scope};

/// A recording in memory, and its chunks to write to.
fn recording() -> io::Result<(Recording, Roll)> {
    // SAFETY: a new anonymous file; the name is a C string.
    let fd = unsafe { libc::memfd_create(c"recording".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no other owner has this descriptor.
    let file = unsafe { File::from_raw_fd(fd) };
    let recording = Recording::begin(file, Scope::Events)?;
    // The mapping outlives the descriptor.
    let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
    let opened = mapping.open(fd);
    opened.map_err(|why| io::Error::other(format!("{why:?}")))?;
    let roll = mapping.roll().ok_or_else(|| io::Error::other("no events"))?;
    Ok((recording, roll))
}

/// A pen of a new thread.
fn pen(roll: Roll) -> Pen {
    let pen = Pen::NEW;
    pen.hand_over(roll.number());
    pen
}

fn note(time: u64) -> Note {
    Note { time, code: Code::Takes, flags: 0, object: 1 }
}

fn notes(batches: &[Batch]) -> usize {
    batches.iter().map(|batch| batch.notes.len()).sum()
}

#[test]
fn a_thread_that_ends_keeps_no_chunk() -> io::Result<()> {
    let (recording, roll) = recording()?;
    let (rounds, threads) = (4, CHUNKS / 2);
    for round in 0..rounds {
        for _ in 0..threads {
            let pen = pen(roll);
            roll.write(&pen, 0, 7, note(round));
            pen.ends();
            roll.write(&pen, 0, 7, note(round));
            // The event of a destructor.
            roll.write(&pen, 0, 7, note(round));
        }
        let batches = recording.drain(false)?;
        assert_eq!(notes(&batches) + recording.dropped()? as usize, 3 * threads);
        assert!(batches.iter().all(|batch| batch.of.tid == 7 && batch.notes[0].time == round));
    }
    assert_eq!((recording.dropped()?, recording.drain(true)?), (0, Vec::new()));
    Ok(())
}

#[test]
fn what_threads_without_any_chunk_did_is_counted() -> io::Result<()> {
    let (recording, roll) = recording()?;
    let threads = CHUNKS + 100;
    let pens: Vec<Pen> = (0..threads).map(|_| pen(roll)).collect();
    for pen in pens.iter().chain(&pens) {
        roll.write(pen, 0, 7, note(1));
    }
    assert_eq!(recording.dropped()?, 200);
    assert_eq!(notes(&recording.drain(true)?), 2 * CHUNKS);
    Ok(())
}

#[test]
fn the_chunks_of_threads_that_were_killed_are_taken_when_few_are_free() -> io::Result<()> {
    let (recording, roll) = recording()?;
    let (few, most) = (100, CHUNKS - 100);
    let pens: Vec<Pen> = (0..few).map(|_| pen(roll)).collect();
    let write = |pen: &Pen, tid| roll.write(pen, 0, tid, note(1));
    pens.iter().for_each(|pen| write(pen, 8));
    assert_eq!(recording.reclaim(|_| true)?, []);
    let killed: Vec<Pen> = (0..most).map(|_| pen(roll)).collect();
    killed.iter().for_each(|pen| write(pen, 7));
    let batches = recording.reclaim(|head| head.tid == 7)?;
    assert_eq!((batches.len(), notes(&batches)), (most, most));
    // There is room again, also for a thread that was wrongly considered gone.
    killed.iter().chain(&pens).for_each(|pen| write(pen, 9));
    let batches = recording.drain(true)?;
    assert_eq!((notes(&batches), recording.dropped()?), (most + 2 * few, 0));
    assert_eq!(batches.iter().filter(|batch| batch.of.sequence == 1).count(), most);
    Ok(())
}

/// A signal handler that writes between any two instructions of a thread that writes.
#[cfg(target_arch = "x86_64")]
mod interrupted {
    use std::cell::UnsafeCell;
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    struct Shared(Roll, UnsafeCell<Pen>);
    // SAFETY: one thread uses it; `Pen` consists of atomics, and only shared references to it are
    // used.
    unsafe impl Sync for Shared {}
    // SAFETY: `Roll` and `Pen` may be used by any thread; one thread uses this one.
    unsafe impl Send for Shared {}

    static SHARED: OnceLock<Shared> = OnceLock::new();
    static HANDLED: AtomicU64 = AtomicU64::new(0);

    /// Events of a chunk: 64 KiB without its head.
    const ROOM: usize = ((1 << 16) - 64) / 16;

    fn hand_over() {
        let Some(Shared(roll, pen)) = SHARED.get() else { return };
        // SAFETY: only written to through its atomics.
        unsafe { &*pen.get() }.hand_over(roll.number());
    }

    fn write(time: u64) {
        let Some(Shared(roll, pen)) = SHARED.get() else { return };
        // SAFETY: only written to through its atomics.
        roll.write(unsafe { &*pen.get() }, 0, 7, note(time));
    }

    extern "C" fn handler(_: libc::c_int) {
        HANDLED.fetch_add(1, Relaxed);
        write(1);
    }

    /// Calls `write` with a trap after each of its instructions.
    fn write_stepping() {
        // SAFETY: sets and clears the trap flag, for which there is a handler, and nothing else;
        // a block without `nostack` may push.
        unsafe {
            core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
            write(2);
            core::arch::asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq");
        }
    }

    #[test]
    fn each_event_is_told_or_counted() -> io::Result<()> {
        let (recording, roll) = recording()?;
        assert!(SHARED.set(Shared(roll, UnsafeCell::new(pen(roll)))).is_ok());
        // SAFETY: all zero is a valid action; the handler does only what a signal handler may do.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
            libc::sigaction(libc::SIGTRAP, &raw const action, std::ptr::null_mut());
        }
        let mut written = 0;
        for before_end in 1..=12 {
            // On a new chunk, and up to its end.
            hand_over();
            for _ in 0..ROOM - before_end {
                write(2);
            }
            write_stepping();
            for _ in 0..before_end {
                write(2);
            }
            written += ROOM as u64 + 1;
        }
        let told = notes(&recording.drain(true)?);
        assert!(HANDLED.load(Relaxed) > 100);
        let all = written + HANDLED.load(Relaxed);
        assert_eq!(told as u64 + recording.dropped()?, all);
        Ok(())
    }
}
