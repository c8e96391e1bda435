//! Tests of untrusted files: whole, cut off, damaged, foreign.

use antiphon_trace::{
    About, Cost, Error, Event, Lock, LockKind, Reader, Site, Tables, Thread, Trace, What, Writer,
};

/// Each event there is, with its flags, by two threads.
fn events() -> Vec<Event> {
    let whats = [
        What::Begins,
        What::Creates { thread: 1 },
        What::Takes { lock: 0, site: 0, shared: false, tried: false },
        What::Releases { lock: 0 },
        What::Waits { lock: 1, site: 1 },
        What::Takes { lock: 1, site: 1, shared: true, tried: true },
        What::Releases { lock: 1 },
        What::Waits { lock: 1, site: 0 },
        What::GivesUp { lock: 1 },
        What::Sleeps { condition: 2, site: 0 },
        What::Wakes { condition: 2, notified: true },
        What::Wakes { condition: 2, notified: false },
        What::Notifies { condition: 2, all: true },
        What::Notifies { condition: 2, all: false },
        What::Joins { thread: 1 },
        What::Off { blocked_ns: u64::MAX, queued_ns: 128 },
        What::Joined { thread: 1 },
        What::Asked { ns: u64::MAX },
        What::Ends,
    ];
    let at = |at: usize| (at as u64) * 1_000_003;
    whats.into_iter().enumerate().map(|(i, what)| Event { at_ns: at(i), what }).collect()
}

fn tables() -> Tables {
    let lock = |kind| Lock { kind, address: 0x7f00_1234_5678, process: 0 };
    let site = |name: &str| Site { name: name.into(), module: "/bin/x".into(), offset: 99 };
    let thread = |id| Thread { id, ..Thread::default() };
    Tables {
        locks: [LockKind::Mutex, LockKind::RwLock, LockKind::Condition].map(lock).to_vec(),
        sites: vec![site("one"), site("two")],
        threads: vec![thread(10), thread(11)],
        costs: vec![Cost { code: 4, before_ps: 20_500, after_ps: 31_250, timed: 7 }],
        dropped: 3,
    }
}

fn about() -> About {
    About { command: vec!["x".into(), "a b".into()], cpus: 2, ..About::default() }
}

/// A trace of two threads, as a file.
fn file() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &about()).unwrap();
    let events = events();
    writer.events(0, &events[..7]).unwrap();
    writer.events(1, &events).unwrap();
    writer.events(0, &events[7..]).unwrap();
    let written = writer.finish(&tables()).unwrap();
    assert_eq!(written, bytes.len() as u64);
    bytes
}

fn read(bytes: &[u8]) -> Result<Trace, Error> {
    Reader::read(bytes)
}

/// The offsets of the blocks.
fn blocks(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![];
    let mut at = 12;
    while at < bytes.len() {
        starts.push(at);
        at += 9 + u32::from_le_bytes(bytes[at + 1..at + 5].try_into().unwrap()) as usize;
    }
    starts
}

/// Corrects the checksum of a changed payload.
fn seal(bytes: &mut [u8], block: usize) {
    let length = u32::from_le_bytes(bytes[block + 1..block + 5].try_into().unwrap()) as usize;
    let sum = crc32fast::hash(&bytes[block + 9..block + 9 + length]);
    bytes[block + 5..block + 9].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn what_is_written_is_read() {
    let trace = read(&file()).unwrap();
    assert_eq!(trace.about, about());
    assert_eq!(trace.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [10, 11]);
    assert_eq!(trace.threads[0].events, events());
    assert_eq!(trace.threads[1].events, events());
    assert_eq!((trace.locks, trace.sites), (tables().locks, tables().sites));
    assert_eq!((trace.dropped, trace.cut_off), (3, false));
    assert_eq!(trace.costs, tables().costs);
}

#[test]
fn an_event_that_took_for_ever_is_damage() {
    let costs = vec![Cost { before_ps: 1 << 60, ..tables().costs[0] }];
    let mut bytes = Vec::new();
    let writer = Writer::new(&mut bytes, &about()).unwrap();
    writer.finish(&Tables { costs, ..tables() }).unwrap();
    assert!(matches!(read(&bytes), Err(Error::Damaged { .. })));
}

#[test]
fn many_events_are_read_in_order() {
    let event = |at_ns| Event { at_ns, what: What::Releases { lock: 0 } };
    let many: Vec<Event> = (0..200_000).map(event).collect();
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &about()).unwrap();
    writer.events(1, &many).unwrap();
    writer.finish(&tables()).unwrap();
    assert_eq!(read(&bytes).unwrap().threads[1].events, many);
    assert!(bytes.len() < many.len() * 4, "{} bytes", bytes.len());
}

#[test]
fn a_file_that_was_cut_off_is_read_as_far_as_it_goes() {
    let bytes = file();
    let starts = blocks(&bytes);
    let [_, first, second, _, tables] = starts[..] else { panic!("{starts:?}") };
    for length in 0..bytes.len() {
        match read(&bytes[..length]) {
            Ok(trace) => {
                assert!(trace.cut_off, "{length}");
                assert!(length >= first);
                assert_eq!(trace.events() > 0, length >= second, "{length}");
            }
            Err(Error::Foreign) => assert!(length < 12, "{length}"),
            Err(Error::Damaged { offset, .. }) => {
                assert!((12..first).contains(&length), "{length}");
                assert_eq!(offset, 12);
            }
            Err(other) => panic!("{length}: {other}"),
        }
    }
    let trace = read(&bytes[..tables]).unwrap();
    assert_eq!(trace.events(), 2 * events().len());
    let kinds: Vec<_> = trace.locks.iter().map(|lock| lock.kind).collect();
    assert_eq!(kinds, [LockKind::Mutex, LockKind::RwLock, LockKind::Condition]);
}

#[test]
fn no_changed_byte_goes_unnoticed() {
    let bytes = file();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            // A length that points behind the end looks as if the file was cut off there.
            if let Ok(trace) = read(&changed) {
                assert!(trace.cut_off, "byte {at}, bit {bit}");
            }
        }
    }
}

/// Changes that carry a right checksum, so that what is behind it is met.
#[test]
fn nothing_in_a_payload_is_believed() {
    let bytes = file();
    let (mut sound, mut refused) = (0, 0);
    for block in blocks(&bytes) {
        let length = u32::from_le_bytes(bytes[block + 1..block + 5].try_into().unwrap()) as usize;
        for at in block + 9..block + 9 + length {
            for value in [0, 1, 31, 32, 64, 127, 128, 255] {
                let mut changed = bytes.clone();
                changed[at] = value;
                seal(&mut changed, block);
                match read(&changed) {
                    // Whatever was read can be used: it names what is there, in order.
                    Ok(trace) => {
                        sound += 1;
                        let mut again = Vec::new();
                        let mut writer = Writer::new(&mut again, &trace.about).unwrap();
                        for (at, thread) in trace.threads.iter().enumerate() {
                            writer.events(at as u32, &thread.events).unwrap();
                        }
                    }
                    Err(Error::Damaged { .. }) => refused += 1,
                    Err(other) => panic!("byte {at} as {value}: {other}"),
                }
            }
        }
    }
    assert!(sound > 0 && refused > 0);
}

#[test]
fn errors_say_what_to_do() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(message(b"\x7fELF, and more than that"), message(b""));
    assert!(message(b"").contains("antiphon record"));

    let mut newer = file();
    newer[8] = 9;
    assert!(message(&newer).contains("version 9"), "{}", message(&newer));

    let mut longer = file();
    longer.push(0);
    assert!(message(&longer).contains("after the last block"));

    let mut enormous = file();
    enormous[13..17].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(message(&enormous).contains("in one block"));
}

#[test]
fn what_cannot_be_is_refused_though_no_table_says_so() {
    let cut_off = |at_ns, what: What| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &about()).unwrap();
        writer.events(1, &[Event { at_ns, what }]).unwrap();
        read(&bytes)
    };
    let joins = |thread| What::Joins { thread };
    let trace = cut_off(1 << 56, joins(2)).unwrap();
    assert_eq!((trace.cut_off, trace.threads.len()), (true, 3));
    let trace = cut_off(1, What::Waits { lock: 4, site: 0 }).unwrap();
    assert_eq!((trace.locks.len(), trace.sites.len()), (5, 1));
    for (at_ns, what) in [
        (1, What::Releases { lock: 5 }),
        (1, What::Waits { lock: u32::MAX, site: 0 }),
        (1, What::Takes { lock: 0, site: u32::MAX, shared: false, tried: false }),
        (1, joins(u32::MAX)),
        ((1 << 56) + 1, What::Ends),
        (u64::MAX, What::Ends),
    ] {
        assert!(matches!(cut_off(at_ns, what), Err(Error::Damaged { .. })), "{what:?}");
    }
}

#[test]
fn what_is_in_no_table_is_refused() {
    let write = |thread: u32, what: What| {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &about()).unwrap();
        writer.events(thread, &[Event { at_ns: 1, what }]).unwrap();
        writer.finish(&tables()).unwrap();
        read(&bytes)
    };
    assert!(write(1, What::Releases { lock: 2 }).is_ok());
    for (thread, what) in [
        (0, What::Releases { lock: 3 }),
        (0, What::Waits { lock: 0, site: 2 }),
        (0, What::Joins { thread: 2 }),
        (0, What::Notifies { condition: 3, all: false }),
        (2, What::Ends),
        (u32::MAX, What::Ends),
    ] {
        assert!(matches!(write(thread, what), Err(Error::Damaged { .. })), "{what:?}");
    }
}
