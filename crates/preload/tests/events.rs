//! The events of each thread and their times, in a recording of events.

mod support;

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use antiphon_record::events::{Code, NOTIFIED, Note, SHARED, TRIED, address_tag};
use antiphon_record::{Kind, Mapping, Recording, Scope};
use support::{compile, preloaded, scratch, succeeds};

/// The recording of a program, and its output.
struct Recorded {
    recording: Recording,
    /// The notes of each thread by its number, in the order of time.
    threads: HashMap<u32, Vec<Note>>,
    stdout: String,
}

fn record(directory: &Path, name: &str, lock: &str) -> Recorded {
    let path = directory.join("recording");
    let Ok(recording) = Recording::create(&path, Scope::Events) else {
        panic!("{}", path.display());
    };
    let mut command = preloaded(compile(directory, name));
    let output = succeeds(command.env("ANTIPHON_RECORD", &path).env("ANTIPHON_LOCK", lock));
    assert!(std::fs::remove_file(&path).is_ok());
    let mut batches = recording.drain(true).unwrap_or_default();
    batches.sort_by_key(|batch| (batch.of.thread, batch.of.sequence));
    let mut threads: HashMap<u32, Vec<Note>> = HashMap::new();
    for batch in batches {
        assert_eq!(batch.of.lost, 0);
        threads.entry(batch.of.thread).or_default().extend(batch.notes);
    }
    Recorded { recording, threads, stdout: String::from_utf8_lossy(&output.stdout).into() }
}

impl Recorded {
    /// The address of the lock of a row.
    fn address(&self, object: u32) -> Option<u64> {
        let (lock, _) = self.recording.row_records(object).ok()?;
        self.recording.lock(lock?).ok().map(|lock| lock.address)
    }

    /// The program's name of the object of a note.
    fn object(&self, note: &Note) -> String {
        let is = |address: u64| match note.code {
            Code::ReleasesAt => address_tag(address as usize) == note.object,
            _ => self.address(note.object) == Some(address),
        };
        let named = self.stdout.lines().filter_map(|line| line.split_once(' '));
        let mut named = named.filter_map(|(name, at)| Some((name, at.parse().ok()?)));
        named.find(|(_, at)| is(*at)).map_or_else(|| "?".into(), |(name, _)| name.into())
    }

    /// The events of a thread as text, without waits and spans, which vary.
    fn story(&self, notes: &[Note]) -> Vec<String> {
        let told = notes.iter().filter(|note| {
            !matches!(note.code, Code::Waits | Code::Ran | Code::Queued | Code::Asked)
        });
        told.map(|note| {
            let flag = |bit: u8, name: &'static str| if note.flags & bit == 0 { "" } else { name };
            let code = format!("{:?}", note.code);
            match note.code {
                Code::Takes => {
                    let (shared, tried) = (flag(SHARED, " shared"), flag(TRIED, " tried"));
                    format!("{code} {}{shared}{tried}", self.object(note))
                }
                Code::Wakes => format!("{code} {}{}", self.object(note), flag(NOTIFIED, " yes")),
                Code::Releases | Code::ReleasesAt | Code::Sleeps | Code::Notifies => {
                    format!("{code} {}", self.object(note))
                }
                _ => code,
            }
        })
        .collect()
    }
}

fn tells_what_each_thread_did(lock: &str) {
    let directory = scratch(&format!("events-{}", lock.len()));
    let recorded = record(&directory, "events.c", lock);
    assert_eq!(recorded.threads.len(), 2);
    let role = |notes: &[Note]| notes.iter().any(|note| note.code == Code::Role);
    let [mut main, mut sleeper] = [vec![], vec![]];
    let mut number = 0;
    for (thread, notes) in &recorded.threads {
        if role(notes) {
            number = *thread;
        }
        if role(notes) { &mut sleeper } else { &mut main }.clone_from(notes);
    }
    // Whether the mutex is released before or after the list is joined depends on the
    // implementation that keeps the lock.
    let mut story = recorded.story(&sleeper);
    story[3..5].sort();
    assert_eq!(
        story,
        [
            "Begins",
            "Role",
            "Takes mutex",
            "Releases mutex",
            "Sleeps cond",
            "Wakes cond yes",
            "Takes mutex",
            "Releases mutex",
            "Ends",
        ],
    );
    assert_eq!(
        recorded.story(&main),
        [
            "Begins",
            "Creates",
            "Takes mutex",
            "Notifies cond",
            "Releases mutex",
            "Joins",
            "Joined",
            "Takes rwlock shared",
            "Releases rwlock",
            "Takes rwlock",
            "Releases rwlock",
            "Takes mutex tried",
            "Releases mutex",
            "Takes spin",
            "ReleasesAt spin",
        ],
    );
    for code in [Code::Creates, Code::Joins, Code::Joined] {
        let named = main.iter().find(|note| note.code == code).map(|note| note.object);
        assert_eq!(named, Some(number), "{code:?}");
    }
    spans_say_whether_the_thread_ran(&recorded, &main);
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// The reader sleeps for 20 ms and the writer computes as long: the notes distinguish the two.
fn spans_say_whether_the_thread_ran(recorded: &Recorded, main: &[Note]) {
    let Ok(Some(clock)) = recorded.recording.clock() else { panic!("no clock") };
    let held = |shared: u8| {
        let of = |note: &Note| note.code == Code::Takes && recorded.object(note) == "rwlock";
        let taken = main.iter().position(|note| of(note) && note.flags & SHARED == shared);
        let notes = taken.map_or(&main[..0], |at| &main[at..]).iter();
        let mut notes = notes.filter(|note| note.code != Code::Asked).peekable();
        let take = notes.next().unwrap_or_else(|| panic!("{main:?}"));
        // A span in which the thread had its CPU all the time has no note of its own.
        let ran = notes.next_if(|note| note.code == Code::Ran);
        let queued = notes.next_if(|note| note.code == Code::Queued);
        let release = notes.next().unwrap_or_else(|| panic!("{main:?}"));
        assert_eq!(release.code, Code::Releases);
        let span_ns = clock.ns(release.time) - clock.ns(take.time);
        let (ran_ns, left) = ran.map_or((span_ns, 0), |ran| (ran.time, ran.object));
        (span_ns, ran_ns, left, queued.is_some())
    };
    let (slept_ns, ran_ns, left, is_told_queued) = held(SHARED);
    assert!(slept_ns >= 20_000_000 && ran_ns < slept_ns / 2, "{ran_ns} of {slept_ns}");
    assert!(left >= 1);
    let counts = std::path::Path::new("/proc/thread-self/schedstat").exists();
    assert_eq!(is_told_queued, counts, "{main:?}");
    let (burnt_ns, ran_ns, ..) = held(0);
    assert!(burnt_ns >= 19_000_000 && ran_ns >= 19_000_000, "{ran_ns} of {burnt_ns}");
    // At the end of such spans the recorder asked the kernel. The length is reported if the thread
    // had its CPU.
    let mut asked = main.iter().filter(|note| note.code == Code::Asked);
    assert!(asked.all(|note| (1..5_000).contains(&clock.span_ns(note.time))), "{main:?}");
    // The note is written when the thread begins, after its first event.
    assert_eq!(main.get(1).is_some_and(|note| note.code == Code::Queued), counts, "{main:?}");
}

#[test]
fn what_recording_takes_is_timed() {
    let directory = scratch("costs");
    for lock in ["shfl-mutex", "glibc"] {
        let recorded = record(&directory, "recorded.c", lock);
        let costs = recorded.recording.costs().unwrap_or_default();
        // One in 31 of each, and both parts of their time.
        for code in [Code::Takes, Code::Releases] {
            let events = recorded.threads.values().flatten().filter(|note| note.code == code);
            let events = events.count() as u64;
            let cost = costs.iter().find(|cost| cost.code == code);
            let Some(cost) = cost else { panic!("{code:?}: {costs:?}") };
            assert!(cost.timed >= events / 100 && cost.timed <= events / 20, "{events}: {cost:?}");
            assert!(cost.before_ps + cost.after_ps > 0, "{cost:?}");
        }
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

/// A recording at `path` without room for another process.
fn full(path: &Path, scope: Scope) -> Recording {
    let Ok(recording) = Recording::create(path, scope) else { panic!("{}", path.display()) };
    let file = File::options().read(true).write(true).open(path);
    let Ok(file) = file else { panic!("{file:?}") };
    let mapping: &'static Mapping = Box::leak(Box::new(Mapping::NEW));
    let Ok(writer) = mapping.open(file.as_raw_fd()) else { panic!("no recording") };
    let refused = (1..1 << 16).filter(|&pid| writer.process(pid, None, 0, false).is_none());
    assert!(refused.count() > 1 << 15);
    recording
}

#[test]
fn what_a_process_without_a_record_does_is_counted() {
    let directory = scratch("full");
    let program = compile(&directory, "events.c");
    let path = directory.join("recording");
    for lock in ["shfl-mutex", "glibc"] {
        let recording = full(&path, Scope::Events);
        let mut command = preloaded(&program);
        succeeds(command.env("ANTIPHON_RECORD", &path).env("ANTIPHON_LOCK", lock));
        assert!(std::fs::remove_file(&path).is_ok());
        assert!(recording.drain(true).is_ok_and(|batches| batches.is_empty()));
        // As many as `tells_what_each_thread_did` lists, without waits and the beginning of a
        // thread that has no number.
        let dropped = recording.dropped().unwrap_or_default();
        assert!(dropped >= 21, "{dropped}");
        let Ok(snapshot) = recording.read() else { panic!("no snapshot") };
        let rest = snapshot.rows.last().map(|row| (row.kind, row.acquisitions));
        assert!(rest.is_some_and(|(kind, taken)| kind == Kind::Rest && taken >= 6), "{rest:?}");
        assert!(snapshot.dropped.processes > 0 && snapshot.rows.len() == 1);
    }
    assert!(std::fs::remove_dir_all(&directory).is_ok());
}

#[test]
fn with_our_locks_each_thread_is_told() {
    tells_what_each_thread_did("shfl-mutex");
}

#[test]
fn with_the_c_librarys_locks_each_thread_is_told() {
    tells_what_each_thread_did("glibc");
}
