//! A recording written and read back: all counts are there, and events without room are counted.

use std::fs::File;
use std::io;
use std::iter::empty;
use std::os::fd::FromRawFd;

use antiphon_record::layout::PROGRAM_BYTES;
use antiphon_record::{
    BuildId, FileId, HandedOn, Kind, Mapping, Module, Program, Recording, RowWriter, Scope,
    Strangers, ThreadWriter, Writer,
};

/// A recording in memory, and a writer that has it mapped.
fn recording(scope: Scope) -> io::Result<(Recording, Writer)> {
    // SAFETY: a new anonymous file; the name is a C string.
    let fd = unsafe { libc::memfd_create(c"recording".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no other owner has this descriptor.
    let file = unsafe { File::from_raw_fd(fd) };
    let recording = Recording::begin(file, scope)?;
    // The mapping outlives the descriptor.
    let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
    let opened = mapping.open(fd);
    Ok((recording, opened.map_err(|why| io::Error::other(format!("{why:?}")))?))
}

#[test]
fn reads_back_what_was_written() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Full)?;
    assert_eq!(writer.scope(), Scope::Full);
    let process = writer.process(77, None, 5_000_000, true).unwrap_or(u32::MAX);
    let child = writer.process(78, Some(process), 6_000_000, false).unwrap_or(u32::MAX);
    let thread = writer.thread(process, 79);
    let (row, fresh) = writer.row(process, Kind::Mutex, 0x1000, 0x40_0000);
    let file = FileId { device: 0xfe00, inode: 42, ..FileId::default() };
    let about = |file| FileId { build: BuildId::new(b"build"), modified_ns: 9, ..file };
    writer.place(fresh.unwrap_or(u32::MAX), b"/usr/bin/program", 0x123, file, about);
    let (again, fresh) = writer.row(process, Kind::Mutex, 0x1000, 0x40_0000);
    assert_eq!((row, None), (again, fresh));
    let (other, _) = writer.row(child, Kind::Condition, 0x1000, 0x40_0000);
    assert_ne!(row, other);

    let held = [RowWriter::REST, row];
    writer.waits_with(thread, None, held.into_iter());
    writer.wait_begins(thread, row, 7_000_000);
    let during = recording.read()?;
    let waiting = during.threads[0].waiting;
    let waiting = waiting.map(|it| (during.locks[it.lock].kind, it.since_ns, it.held));
    // The common row names no lock.
    assert_eq!(waiting, Some((Kind::Mutex, 7_000_000, [None, Some(0), None])));
    writer.wait_ends(thread, row, Kind::Mutex, 3_000, true);
    writer.held(row, 500);
    writer.refused(row);
    for (held, taken) in [(other, row), (row, other)] {
        writer.ordered(held, taken, [held].into_iter());
    }
    for (taken, count) in [(row, 1), (other, 2), (other, 3), (other, 1)] {
        writer.acquired_to_hold(thread, taken, 1, count);
    }

    let snapshot = recording.read()?;
    assert_eq!(snapshot.processes.iter().filter(|process| process.pid == 77).count(), 1);
    let child = snapshot.processes.iter().find(|process| process.pid == 78);
    let parent = child.and_then(|child| child.parent).map(|at| &snapshot.processes[at]);
    assert_eq!(parent.map(|parent| (parent.pid, parent.light)), Some((77, true)));
    assert_eq!(child.map(|child| child.light), Some(false));
    let Some(row) = snapshot.rows.iter().find(|row| row.acquisitions == 1) else {
        return Err(io::Error::other("no row"));
    };
    assert_eq!(
        (row.contended, row.gave_up, row.refused, row.wait.sum_ns, row.wait.max_ns),
        (1, 0, 1, 3_000, 3_000)
    );
    assert_eq!((row.hold.count(), row.hold.sum_ns), (1, 500));
    let lock = &snapshot.locks[row.lock];
    assert_eq!((lock.address, lock.kind), (0x1000, Kind::Mutex));
    let site = row.site.map(|at| &snapshot.sites[at]);
    let module = Module { path: "/usr/bin/program".to_owned(), file: about(file) };
    let place = site.map(|site| (site.module.as_ref(), site.offset));
    assert_eq!(place, Some((Some(&module), 0x123)));
    let thread = &snapshot.threads[0];
    assert_eq!((thread.tid, thread.blocked.mutex_ns, thread.waits), (79, 3_000, 1));
    assert_eq!((thread.waiting, thread.acquisitions), (None, 4));
    assert_eq!(snapshot.inversions().len(), 1);
    assert!(snapshot.edges.iter().all(|edge| edge.count == 1 && edge.guards.is_empty()));
    let places: Vec<_> = snapshot.edges.iter().flat_map(|edge| edge.rows).collect();
    assert!(places.iter().flatten().count() == 4 && places[0] == places[3], "{places:?}");
    assert_eq!(snapshot.depth(), Some((2.0, 2)));
    assert_eq!(snapshot.nests(), Some((2.0, 3)));
    assert_eq!(snapshot.dropped, Default::default());
    Ok(())
}

/// A recording with locks and a thread that takes them at any site.
struct Locks {
    recording: Recording,
    writer: Writer,
    process: u32,
}

impl Locks {
    fn new() -> io::Result<Self> {
        let (recording, writer) = recording(Scope::Full)?;
        let process = writer.process(1, None, 1, false).unwrap_or(u32::MAX);
        Ok(Self { recording, writer, process })
    }

    fn row(&self, lock: u64, site: u64) -> RowWriter {
        self.writer.row(self.process, Kind::Mutex, lock * 64, site).0
    }

    /// Records that a thread that holds all other `locks` takes the last one at `site`.
    fn taken(&self, locks: &[u64], site: u64) {
        let rows: Vec<_> = locks.iter().map(|&lock| self.row(lock, site)).collect();
        if let Some((&taken, held)) = rows.split_last()
            && let Some(&last) = held.last()
        {
            self.writer.ordered(last, taken, held.iter().copied());
        }
    }

    /// Records another lock at the address of `lock`.
    fn renewed(&self, lock: u64) {
        self.writer.renewed(self.row(lock, 1));
    }

    /// The sites of the edges of each inversion.
    fn inversions(&self) -> io::Result<Vec<Vec<u64>>> {
        let snapshot = self.recording.read()?;
        let site = |edge: usize| {
            let row = snapshot.edges[edge].rows[1].map(|at| &snapshot.rows[at]);
            row.and_then(|row| row.site).map_or(0, |at| snapshot.sites[at].address)
        };
        let cycles = snapshot.inversions();
        let mut sites: Vec<Vec<u64>> =
            cycles.iter().map(|cycle| cycle.iter().map(|&edge| site(edge)).collect()).collect();
        sites.iter_mut().for_each(|sites| sites.sort_unstable());
        Ok(sites)
    }
}

#[test]
fn an_inversion_has_the_sites_of_both_orders() -> io::Result<()> {
    let locks = Locks::new()?;
    locks.taken(&[1, 2], 10);
    locks.taken(&[1, 2], 11);
    assert!(locks.inversions()?.is_empty());
    locks.taken(&[2, 1], 12);
    assert_eq!(locks.inversions()?, [[10, 12]]);
    // A cycle through a third lock, which no thread holds together with both.
    let locks = Locks::new()?;
    for (at, pair) in (20..).zip([[1, 2], [2, 3], [3, 1]]) {
        assert!(locks.inversions()?.is_empty());
        locks.taken(&pair, at);
    }
    assert_eq!(locks.inversions()?, [[20, 21, 22]]);
    Ok(())
}

#[test]
fn locks_at_one_address_one_after_the_other_are_not_one_lock() -> io::Result<()> {
    let locks = Locks::new()?;
    locks.taken(&[1, 2], 10);
    locks.renewed(2);
    locks.taken(&[2, 1], 11);
    assert!(locks.inversions()?.is_empty());
    // The second locks at these addresses are taken in both orders; the third ones again not.
    locks.taken(&[1, 2], 12);
    for _ in 0..3 {
        assert_eq!(locks.inversions()?, [[11, 12]]);
        locks.renewed(2);
        locks.taken(&[1, 2], 13);
    }
    Ok(())
}

#[test]
fn a_lock_that_is_always_held_makes_an_inversion_harmless() -> io::Result<()> {
    let locks = Locks::new()?;
    locks.taken(&[7, 8, 1, 2], 10);
    locks.taken(&[8, 3, 2, 1], 11);
    assert!(locks.inversions()?.is_empty());
    // Once the guard was not held.
    locks.taken(&[7, 1, 2], 12);
    assert_eq!(locks.inversions()?, [[10, 11]]);
    Ok(())
}

#[test]
fn a_wait_that_goes_on_is_counted_up_to_where_it_is_closed() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Contended)?;
    let process = writer.process(7, None, 1_000, false).unwrap_or(u32::MAX);
    let (row, _) = writer.row(process, Kind::Condition, 0x1000, 0x40_0000);
    let [stays, goes] = [8, 9].map(|tid| writer.thread(process, tid));
    for thread in [stays, goes] {
        writer.wait_begins(thread, row, 5_000);
    }
    writer.wait_ends(goes, row, Kind::Condition, 400, true);
    let mut snapshot = recording.read()?;
    let closed = snapshot.close_waits(|process, thread, waiting| {
        assert_eq!((process.pid, thread.tid, waiting.since_ns), (7, 8, 5_000));
        7_000
    });
    let row = &snapshot.rows[0];
    assert_eq!((closed.len(), row.still_waiting, row.contended, row.gave_up), (1, 1, 2, 0));
    assert_eq!((row.wait.count(), row.wait.sum_ns, row.wait.max_ns), (2, 2_400, 2_000));
    let condition: u64 = snapshot.threads.iter().map(|thread| thread.blocked.condition_ns).sum();
    assert_eq!(condition, 2_400);
    assert_eq!(snapshot.close_waits(|_, _, _| 9_000).len(), 0);
    // If the end is before the beginning of a wait, its length is 0: it is closed, too.
    assert_eq!(recording.read()?.close_waits(|_, _, _| 10).len(), 1);
    Ok(())
}

#[test]
fn a_wait_for_one_of_the_rest_is_closed_too() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Contended)?;
    let process = writer.process(1, None, 1, false).unwrap_or(u32::MAX);
    let rows = (1..).map(|lock| writer.row(process, Kind::Mutex, lock * 64, 64).0);
    // The common row is returned twice.
    let mut seen = std::collections::HashSet::new();
    let rest = rows.take(200_000).find(|row| !seen.insert(row.bits()));
    let rest = rest.ok_or_else(|| io::Error::other("a table without end"))?;
    writer.wait_begins(writer.thread(process, 2), rest, 10);
    let mut snapshot = recording.read()?;
    assert_eq!(snapshot.close_waits(|_, _, _| 15).len(), 1);
    let row = snapshot.rows.last().map(|row| (snapshot.locks[row.lock].kind, row.wait.sum_ns));
    assert_eq!(row, Some((Kind::Rest, 5)));
    Ok(())
}

#[test]
fn a_lookout_sees_the_waits_of_the_last_of_a_processs_images() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Contended)?;
    let before = writer.process(7, None, 1 << 20, false).unwrap_or(u32::MAX);
    let now = writer.process(7, None, 1 << 21, false).unwrap_or(u32::MAX);
    let (row, _) = writer.row(now, Kind::Mutex, 0x1000, 0x40_0000);
    writer.wait_begins(writer.thread(before, 7), row, 5);
    let lookout = recording.lookout()?;
    let idle = lookout.state(7, 7)?;
    assert_eq!((idle, lookout.state(8, 7)?), Default::default());
    let thread = writer.thread(now, 7);
    writer.wait_begins(thread, row, 5);
    let waits = lookout.state(7, 7)?;
    writer.wait_ends(thread, row, Kind::Mutex, 1, true);
    let waited = lookout.state(7, 7)?;
    assert!(waits.waits && !waited.waits && waited.ended == 1);
    assert!(waits.waited_since(idle) && waited.waited_since(waits) && waited.waited_since(idle));
    assert!(!waited.waited_since(waited));
    // A process of another namespace is not looked up.
    let ours = antiphon_record::namespace().unwrap_or(1);
    for (namespace, looked_up) in [(ours, true), (ours + 1, false)] {
        writer.lives_in(now, namespace);
        let state = recording.lookout()?.state(7, 7)?;
        assert_eq!(state.ended, u64::from(looked_up), "{namespace}");
        let processes = recording.read()?.processes;
        let told = processes.iter().find(|process| process.began_ns == 1 << 21);
        assert_eq!(told.map(|process| process.elsewhere), Some(!looked_up));
    }
    Ok(())
}

#[test]
fn starts_bypasses_and_strangers_are_counted() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Contended)?;
    assert_eq!(recording.read()?.strangers, Strangers::default());
    // Half of the room for processes is reserved for those that have something to record.
    let entered = (0..3000).filter(|_| writer.started()).count();
    assert_eq!(entered, 2016);
    writer.bypassed();
    writer.found_strangers(0x1000);
    writer.found_strangers(0x2000);
    let snapshot = recording.read()?;
    assert_eq!((snapshot.started, snapshot.bypasses), (3000, 1));
    assert_eq!(snapshot.strangers, Strangers { count: 2, lock: 0x2000 });
    Ok(())
}

#[test]
fn what_finds_no_room_is_counted_and_keeps_the_sums_right() -> io::Result<()> {
    const MANY: u64 = 200_000;
    let (recording, writer) = recording(Scope::Contended)?;
    let process = writer.process(1, None, 1, false).unwrap_or(u32::MAX);
    let thread = writer.thread(process, 1);
    for lock in 1..=MANY {
        let (row, _) = writer.row(process, Kind::Mutex, lock * 64, 0x40_0000 + lock);
        writer.wait_ends(thread, row, Kind::Mutex, 10, true);
    }
    let snapshot = recording.read()?;
    let dropped = snapshot.dropped;
    assert!(dropped.sites > 0 && dropped.locks > 0 && dropped.rows > 0, "{dropped:?}");
    assert!(snapshot.rows.len() > 4_000, "{}", snapshot.rows.len());
    let waits: u64 = snapshot.rows.iter().map(|row| row.contended).sum();
    let waited: u64 = snapshot.rows.iter().map(|row| row.wait.sum_ns).sum();
    assert_eq!((waits, waited), (MANY, MANY * 10));
    let rest = snapshot.rows.iter().find(|row| snapshot.locks[row.lock].kind == Kind::Rest);
    assert_eq!(rest.map(|rest| rest.contended), Some(dropped.locks + dropped.rows));
    Ok(())
}

#[test]
fn more_processes_and_threads_than_there_is_room_for() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Contended)?;
    let entered = (1..=10_000).map(|pid| writer.process(pid, None, 0, false)).collect::<Vec<_>>();
    let refused = entered.iter().filter(|entered| entered.is_none()).count();
    assert!((10_000 - 4096..10_000 - 3000).contains(&refused), "{refused}");
    // Each process that was entered has the namespace that it was given.
    for (process, namespace) in entered.iter().flatten().zip(1..) {
        writer.lives_in(*process, namespace);
    }
    for (process, namespace) in entered.iter().flatten().zip(1..) {
        assert_eq!(recording.namespace(*process)?, namespace);
    }
    let (row, _) = writer.row(0, Kind::Spin, 64, 64);
    for tid in 1..=20_000 {
        writer.wait_ends(writer.thread(0, tid), row, Kind::Spin, 1, false);
    }
    let snapshot = recording.read()?;
    assert_eq!(snapshot.dropped.processes, refused as u64);
    let waits: u64 = snapshot.threads.iter().map(|thread| thread.waits).sum();
    assert_eq!(waits + snapshot.dropped.threads, 20_000);
    assert_eq!(snapshot.rows[0].gave_up, 20_000);
    // A process without a record counts in the sums.
    writer.wait_ends(ThreadWriter::NONE, RowWriter::REST, Kind::Spin, 7, true);
    let rest = recording.read()?.rows.pop().map(|row| (row.kind, row.contended, row.wait.sum_ns));
    assert_eq!(rest, Some((Kind::Rest, 1, 7)));
    Ok(())
}

#[test]
fn another_file_is_refused() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("antiphon-no-recording-{}", std::process::id()));
    std::fs::write(&path, [1; 4096])?;
    let opened = Recording::open(&path);
    std::fs::remove_file(&path)?;
    assert!(opened.is_err());
    Ok(())
}

#[test]
fn readers_and_writers_of_a_lock_have_rows_of_their_own() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Full)?;
    let process = writer.process(7, None, 0, false).unwrap_or(u32::MAX);
    let [read, write] =
        [Kind::Read, Kind::Write].map(|kind| writer.row(process, kind, 0x1000, 0x40_0000).0);
    let (other, _) = writer.row(process, Kind::Mutex, 0x2000, 0x40_0000);
    let (beside, _) = writer.row(process, Kind::Read, 0x3000, 0x40_0000);
    let thread = writer.thread(process, 7);
    for (row, kind) in [(read, Kind::Read), (write, Kind::Write), (other, Kind::Mutex)] {
        writer.wait_ends(thread, row, kind, 100, true);
    }
    // A row converted to a number and back is the same row.
    assert_eq!(antiphon_record::RowWriter::from_bits(read.bits()), Some(read));
    let together = &std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for tid in 0..4 {
            scope.spawn(move || {
                together.wait();
                for _ in 0..200_000 {
                    writer.acquired(writer.thread(process, tid), read);
                    writer.held(read, 1);
                    writer.ordered(read, beside, core::iter::empty());
                }
            });
        }
    });
    // Under a lock that both threads hold to read.
    writer.ordered(other, write, [beside].into_iter());
    writer.ordered(read, other, [beside].into_iter());
    writer.wait_begins(thread, read, 5);

    let mut snapshot = recording.read()?;
    let rows_of = |kind| snapshot.rows.iter().filter(move |row| row.kind == kind);
    let readers: Vec<_> = rows_of(Kind::Read).filter(|row| row.acquisitions != 0).collect();
    assert_eq!((readers.len(), rows_of(Kind::Write).count()), (1, 1));
    assert_eq!((readers[0].acquisitions, readers[0].hold.sum_ns), (800_000, 800_000));
    // One lock, which comes before the other and after it.
    assert_eq!(snapshot.locks.len(), 3);
    assert_eq!(snapshot.locks[readers[0].lock].kind, Kind::RwLock);
    assert_eq!(snapshot.inversions().len(), 1);
    assert!(snapshot.edges.iter().any(|edge| edge.count == 800_000));
    assert_eq!(snapshot.close_waits(|_, _, waiting| waiting.since_ns + 50).len(), 1);
    let of_thread = snapshot.threads.iter().find(|thread| thread.waits != 0);
    let blocked = of_thread.map(|thread| (thread.blocked.rwlock_ns, thread.blocked.mutex_ns));
    assert_eq!(blocked, Some((250, 100)));
    Ok(())
}

#[test]
fn programs_are_told_apart_by_path_caller_and_environment() -> io::Result<()> {
    use HandedOn::{No, Yes};
    let (recording, writer) = recording(Scope::Contended)?;
    let long = [b'x'; PROGRAM_BYTES + 1];
    for (path, user, handed_on) in [
        (&b"/bin/a"[..], 1000, Yes),
        (b"/bin/a", 1000, Yes),
        (b"/bin/a", 1000, No),
        (b"/bin/a", 1001, Yes),
        (b"/bin/b", 1000, Yes),
        (&long[1..], 1000, Yes),
        (&long, 1000, Yes),
        (b"", 1000, Yes),
    ] {
        writer.executes(path, user, 7, handed_on);
    }
    let snapshot = recording.read()?;
    assert_eq!(snapshot.dropped.programs, 2);
    let times = |path: &[u8], user, handed_on| {
        let path = String::from_utf8_lossy(path);
        let is = |one: &&Program| {
            (&*one.path, one.user, one.group, one.handed_on) == (&*path, user, 7, handed_on)
        };
        snapshot.programs.iter().filter(is).map(|one| one.times).collect::<Vec<_>>()
    };
    assert_eq!(times(b"/bin/a", 1000, Yes), [2]);
    for (path, user, handed_on) in [
        (&b"/bin/a"[..], 1000, No),
        (b"/bin/a", 1001, Yes),
        (b"/bin/b", 1000, Yes),
        (&long[1..], 1000, Yes),
    ] {
        assert_eq!(times(path, user, handed_on), [1]);
    }
    Ok(())
}

/// Bytes that this process has mapped of files of that name.
fn mapped(name: &str) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let bytes = |line: &str| {
        let (begin, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(end)? - number(begin)?)
    };
    maps.lines().filter(|line| line.contains(name)).filter_map(bytes).sum()
}

#[test]
fn what_is_mapped_is_what_is_used() -> io::Result<()> {
    const NAME: &str = "small-recording";
    // SAFETY: a new anonymous file; the name is a C string.
    let fd = unsafe { libc::memfd_create(c"small-recording".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: no other owner has this descriptor.
    let file = unsafe { File::from_raw_fd(fd) };
    let recording = Recording::begin(file, Scope::Events)?;
    let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
    let writer = mapping.open(fd).map_err(|why| io::Error::other(format!("{why:?}")))?;
    let (begin, few) = (mapped(NAME), 512 << 10);
    assert!(begin > 0 && begin < few, "{begin}");
    let process = writer.process(1, None, 1, false).unwrap_or(u32::MAX);
    let wait = |lock: u64| {
        let (row, _) = writer.row(process, Kind::Mutex, lock * 64, 0x40_0000 + lock);
        writer.wait_ends(writer.thread(process, 1), row, Kind::Mutex, 10, true);
    };
    (1..8).for_each(wait);
    assert_eq!(mapped(NAME), begin, "eight rows have room from the begin on");
    (8..1000).for_each(wait);
    let some = mapped(NAME);
    assert!(some > begin && some < begin + 1000 * 40 * 1024, "{some}");
    let snapshot = recording.read()?;
    assert_eq!((snapshot.rows.len(), snapshot.unfinished), (999, 0));
    Ok(())
}

/// Reads a recording repeatedly while threads create new rows: each has the lock and the process
/// that it was created for.
#[test]
fn what_is_read_as_it_grows_names_nothing_else() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Full)?;
    let done = std::sync::atomic::AtomicBool::new(false);
    let write = |first: u32| {
        for pid in first..first + 200 {
            let process = writer.process(pid, None, u64::from(pid) << 20, false);
            let Some(process) = process else { return };
            for lock in 1..20 {
                // The address and the site of a lock are reported with the process that it is in.
                let address = u64::from(pid) << 20 | lock << 6;
                let (row, _) = writer.row(process, Kind::Mutex, address, address + 1);
                let thread = writer.thread(process, pid);
                writer.wait_begins(thread, row, 5);
                writer.wait_ends(thread, row, Kind::Mutex, 1, true);
            }
        }
    };
    std::thread::scope(|scope| {
        let writers = [1, 1001].map(|first| scope.spawn(move || write(first)));
        let reader = scope.spawn(|| -> io::Result<()> {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let snapshot = recording.read()?;
                let pid = |process: usize| u64::from(snapshot.processes[process].pid);
                for row in &snapshot.rows {
                    let lock = &snapshot.locks[row.lock];
                    if lock.kind == Kind::Rest {
                        continue;
                    }
                    assert_eq!(lock.address >> 20, pid(lock.process));
                    let site = row.site.map(|at| &snapshot.sites[at]);
                    assert!(site.is_none_or(|site| site.address == lock.address + 1));
                }
                for thread in &snapshot.threads {
                    assert_eq!(u64::from(thread.tid), pid(thread.process));
                }
            }
            Ok(())
        });
        let written = writers.into_iter().all(|writer| writer.join().is_ok());
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(written);
        reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader")))
    })?;
    assert_eq!(recording.read()?.unfinished, 0);
    Ok(())
}

#[test]
fn stacks_are_told_apart_by_their_callers_and_are_due_now_and_then() -> io::Result<()> {
    let (recording, writer) = recording(Scope::Contended)?;
    let process = writer.process(7, None, 1 << 20, false).unwrap_or(u32::MAX);
    let thread = writer.thread(process, 8);
    let (row, _) = writer.row(process, Kind::Mutex, 0x1000, 0x40_0000);
    let callers: Vec<u32> = (1..=3).map(|at| writer.site(process, 0x50_0000 + at).0).collect();
    let stack = |callers: &[u32], whole| writer.stack(row, callers, whole).expect("room");
    let (one, other) = (stack(&callers, true), stack(&callers[..2], false));
    assert_eq!(stack(&callers, true), one);
    assert_ne!(one, other);
    assert!(writer.stack(RowWriter::REST, &callers, true).is_none());

    assert!(writer.stack_is_due(thread, 1_000_000));
    writer.stack_taken(thread, 1_000_000);
    assert!(!writer.stack_is_due(thread, 1_400_000) && writer.stack_is_due(thread, 1_500_000));
    assert!(!writer.stack_is_due(ThreadWriter::NONE, 1_000_000));
    writer.stack_ends(one, 30);
    writer.stack_ends(other, 5);
    writer.waits_with(thread, Some(one), empty());
    writer.wait_begins(thread, row, 2_000_000);
    let mut snapshot = recording.read()?;
    // The wait in progress has its stack, too.
    snapshot.close_waits(|_, _, waiting| waiting.since_ns + 12);
    let by_callers = |count: usize| {
        let stack = snapshot.stacks.iter().find(|stack| stack.callers.len() == count);
        stack.map(|stack| (stack.row, stack.whole, stack.waits, stack.wait_ns))
    };
    assert_eq!(by_callers(3), Some((0, true, 2, 42)));
    assert_eq!(by_callers(2), Some((0, false, 1, 5)));
    let addresses = |stack: &antiphon_record::Stack| {
        let sites = stack.callers.iter().flatten().map(|&site| snapshot.sites[site].address);
        sites.collect::<Vec<_>>()
    };
    let longest = snapshot.stacks.iter().max_by_key(|stack| stack.callers.len()).expect("two");
    assert_eq!(addresses(longest), [0x50_0001, 0x50_0002, 0x50_0003]);
    Ok(())
}
