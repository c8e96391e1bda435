//! A recording that a program has overwritten: its reader returns something or an error, and
//! doesn't crash.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;

use antiphon_record::events::ROLL_BYTES;
use antiphon_record::{FILE_BYTES, Kind, Mapping, Recording, Scope};

/// Pseudo-random numbers: zero, small, any half word, any word.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = self.0 ^ self.0 >> 29;
        match word % 5 {
            0 | 1 => 0,
            2 => word >> 52,
            3 => word >> 32,
            _ => word,
        }
    }

    /// Writes `length` bytes of such numbers at `offset`.
    fn scribble(&mut self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        let bytes: Vec<u8> = (0..length / 8).flat_map(|_| self.word().to_ne_bytes()).collect();
        file.write_all_at(&bytes, offset)
    }
}

/// An empty recording, and its file.
fn recording(name: &str) -> io::Result<(Recording, File)> {
    let name = format!("antiphon-damaged-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let recording = Recording::create(&path, Scope::Events)?;
    let file = File::options().read(true).write(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok((recording, file))
}

/// Bytes of the header, which is not overwritten.
const HEADER: u64 = 512;

#[test]
fn tables_may_hold_anything() -> io::Result<()> {
    let (recording, file) = recording("tables")?;
    let mut random = Random(1);
    let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
    let writer = mapping.open(file.as_raw_fd()).expect("a recording");
    for lock in 1..2000 {
        let _ = writer.row(lock as u32 % 8, Kind::Mutex, lock * 64, lock);
    }
    // The rows, which are the last table and most of the file, stay; the records that they refer to
    // don't.
    random.scribble(&file, HEADER, FILE_BYTES / 16)?;
    let mut snapshot = recording.read()?;
    assert!(snapshot.unfinished > 1000);
    let waiting = snapshot.threads.iter().filter(|one| one.waiting.is_some()).count();
    let [rows, threads] = [snapshot.rows.len(), snapshot.threads.len()];
    assert!(rows > 20 && threads > 100 && waiting > 0, "{rows} {threads} {waiting}");
    snapshot.close_waits(|_, _, waiting| waiting.since_ns);
    let _ = snapshot.inversions();
    let lookout = recording.lookout()?;
    for process in &snapshot.processes {
        let _ = lookout.state(process.pid, process.pid)?;
    }
    for _ in 0..10_000 {
        let [number, record] = [random.word() as u32, random.word() as u32];
        // Records after the end of the file can't be read.
        let (row, named) = (recording.row_records(number), recording.lock(record));
        assert!(row.is_ok_and(|(lock, site)| lock != Some(u32::MAX) && site != Some(u32::MAX)));
        assert!(named.is_ok() || u64::from(record) * 32 > FILE_BYTES / 8);
        let _ = (recording.site(record), recording.namespace(record));
    }
    Ok(())
}

#[test]
fn chunks_may_hold_anything() -> io::Result<()> {
    let (recording, file) = recording("chunks")?;
    let mut random = Random(2);
    random.scribble(&file, FILE_BYTES, ROLL_BYTES / 8)?;
    for all in [false, true] {
        let batches = recording.drain(all)?;
        assert!(batches.iter().all(|batch| batch.notes.len() < 4096));
    }
    let _ = recording.reclaim(|_| true)?;
    let _ = (recording.clock()?, recording.dropped()?);
    Ok(())
}

#[test]
fn a_file_that_was_cut_off_is_an_error() -> io::Result<()> {
    let (recording, file) = recording("short")?;
    for length in [0, 8, HEADER, FILE_BYTES / 2, FILE_BYTES - 8] {
        file.set_len(length)?;
        assert!(recording.read().is_err() && recording.drain(true).is_err(), "{length}");
    }
    Ok(())
}
