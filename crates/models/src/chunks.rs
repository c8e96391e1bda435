//! Models of a recording's chunks of events: each event that a thread notes is delivered once, to a
//! reader during the run or to the reader of the rest, or is counted as dropped.

mod memory;

use std::collections::BTreeSet;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Release};

use antiphon_check::{Check, Data, Scope, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_record::Column;
use antiphon_record::events::{
    Batch, Chunk, Code, Head, Note, Pen, Roll, RollHead, drain, reclaim,
};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;
use memory::{Stoppable, interrupted, killed};

pub fn entries() -> Vec<Entry> {
    let plain = PLAIN;
    Subject("chunks").models([
        // Parameters: the number of chunks, and the capacity of each in events.
        model("drained-1+1", drained::<1, 2>(1, 4, 2), plain).reaches(&["taken"]),
        model("drained-2+1", drained::<2, 1>(2, 2, 1), plain).reaches(&["taken"]),
        model("passed-on-2+1", drained::<1, 1>(2, 1, 1), plain).reaches(&["taken"]),
        model("left-1+1", left::<1, 3>(), plain).reaches(&["cut", "whole"]),
        model("ends-1+1", ends::<1, 2>(), plain).reaches(&["taken"]),
        model("forks-2+1", forks::<2, 2>(), plain).reaches(&["taken"]),
        model("interrupted-1+1", interrupts::<2, 2>(), plain).reaches(&["taken"]),
        model("killed-1+1", kills::<1, 2>(0), plain).reaches(&["taken", "reclaimed"]),
        model("killed-2+1", kills::<1, 2>(1), plain).reaches(&["taken", "reclaimed"]),
    ])
}

/// The number of a handler's event among those of its thread.
const HANDLERS: u64 = 9;

/// The times of a thread's events begin at this multiple of its id.
const SPAN: u64 = 10;

/// A thread that notes events.
struct Writer<const COUNT: usize, const ROOM: usize> {
    roll: Roll<Stoppable, COUNT, ROOM>,
    pen: Pen<Stoppable>,
    process: u32,
    tid: u32,
    /// Number of events that it began to note, and that it has noted.
    begun: Data<u64>,
    noted: Data<u64>,
}

impl<const COUNT: usize, const ROOM: usize> Writer<COUNT, ROOM> {
    fn new(roll: Roll<Stoppable, COUNT, ROOM>, process: u32, tid: u32) -> Self {
        let (begun, noted) = (Data::new(0), Data::new(0));
        Self { roll, pen: Pen::NEW, process, tid, begun, noted }
    }

    /// Notes the event with this number among the thread's events.
    fn notes(&self, event: u64) {
        let time = u64::from(self.tid) * SPAN + event;
        self.begun.set(self.begun.get() + 1);
        let note = Note { time, code: Code::Takes, flags: 0, object: 1 };
        self.roll.write(&self.pen, self.process, self.tid, note);
        self.noted.set(self.noted.get() + 1);
    }
}

/// The reader, and the batches that it has received.
struct Reader<const COUNT: usize, const ROOM: usize> {
    roll: Roll<Stoppable, COUNT, ROOM>,
    told: Data<Vec<Batch>>,
}

impl<const COUNT: usize, const ROOM: usize> Reader<COUNT, ROOM> {
    /// Takes full chunks. Reaches `taken`.
    fn drains(&self) {
        self.takes("taken", drain(&self.roll, false));
    }

    /// Takes the rest from threads that no longer exist. Reaches `reclaimed`.
    fn reclaims(&self, gone: impl FnMut(&Head) -> bool) {
        self.takes("reclaimed", reclaim(&self.roll, gone));
    }

    fn takes<E>(&self, reached: &'static str, batches: Result<Vec<Batch>, E>) {
        let Ok(batches) = batches else { unreachable!("memory can always be read") };
        if !batches.is_empty() {
            probe(reached);
        }
        self.told.with_mut(|told| told.extend(batches));
    }

    /// Returns the events of a thread, in the order of its batches.
    fn told_by(&self, writer: &Writer<COUNT, ROOM>) -> Vec<u64> {
        // The child of a fork may still have its parent's number.
        let whose = (writer.process, writer.pen.number());
        let mut batches = self.told.with(|told| {
            let of = told.iter().filter(|batch| (batch.of.process, batch.of.thread) == whose);
            of.cloned().collect::<Vec<_>>()
        });
        batches.sort_by_key(|batch| batch.of.sequence);
        assert!(batches.iter().all(|batch| batch.of.tid == writer.tid), "of another thread");
        let numbers: BTreeSet<_> = batches.iter().map(|batch| batch.of.sequence).collect();
        assert_eq!(numbers.len(), batches.len(), "two batches have one number");
        let times = batches.iter().flat_map(|batch| &batch.notes).map(|note| note.time);
        times
            .map(|time| time.checked_sub(u64::from(writer.tid) * SPAN))
            .map(|event| event.filter(|&event| event < SPAN).expect("an event of another"))
            .collect()
    }

    /// Asserts, after all writes: each event was delivered once, with the thread that noted it, in
    /// order, or was dropped and counted. An event that a thread was noting when it was killed may
    /// be either or neither.
    fn has_all(&self, writers: &[&Writer<COUNT, ROOM>]) {
        self.takes("rest", drain(&self.roll, true));
        let mut told = 0;
        for writer in writers {
            let events = self.told_by(writer);
            let ordered: Vec<_> = events.iter().filter(|&&event| event != HANDLERS).collect();
            assert!(ordered.is_sorted_by(|one, next| one < next), "{events:?}");
            let each: BTreeSet<_> = events.iter().collect();
            assert_eq!(each.len(), events.len(), "an event is told twice");
            told += events.len() as u64;
        }
        let all = self.told.with(|told| told.iter().map(|batch| batch.notes.len() as u64).sum());
        assert_eq!(told, all, "events of nobody");
        let known = told + self.roll.dropped();
        let sum = |of: fn(&Writer<COUNT, ROOM>) -> u64| writers.iter().map(|one| of(one)).sum();
        let (noted, begun): (u64, u64) = (sum(|one| one.noted.get()), sum(|one| one.begun.get()));
        assert!((noted..=begun).contains(&known), "of {noted} events, {known} are known");
    }
}

/// The threads that note events (numbers 1 and up), and the reader (the last number).
struct Cast<'scope, const COUNT: usize, const ROOM: usize> {
    writers: Vec<&'scope Writer<COUNT, ROOM>>,
    reader: &'scope Reader<COUNT, ROOM>,
}

/// Creates `count` threads of one process each, with numbers.
fn cast<'scope, const COUNT: usize, const ROOM: usize>(
    scope: &'scope Scope<'scope, 'static>,
    count: u32,
) -> Cast<'scope, COUNT, ROOM> {
    let head: &RollHead<Stoppable, COUNT> = scope.share(RollHead::NEW);
    let chunks: &[Chunk<Stoppable, ROOM>; COUNT] = scope.share([const { Chunk::NEW }; COUNT]);
    // SAFETY: the scope keeps all three until the execution has ended, and they are not used after
    // that.
    let roll = unsafe {
        let column = scope.share(Column::whole(&*ptr::from_ref(chunks)));
        Roll::new(&*ptr::from_ref(head), &*ptr::from_ref(column))
    };
    let reader = scope.share(Reader { roll, told: Data::new(Vec::new()) });
    let writer = |at| scope.share(Writer::new(roll, at, at + 1));
    let writers: Vec<&Writer<COUNT, ROOM>> = (0..count).map(writer).collect();
    writers.iter().for_each(|writer| writer.pen.hand_over(roll.number()));
    Cast { writers, reader }
}

impl<'scope, const COUNT: usize, const ROOM: usize> Cast<'scope, COUNT, ROOM> {
    /// At the end, the reader reads the rest and checks that it has everything.
    fn played_out(self, scope: &'scope Scope<'scope, 'static>) -> Self {
        let (all, reader) = (self.writers.clone(), self.reader);
        scope.finally(move || reader.has_all(&all));
        self
    }
}

/// CHUNK-1, CHUNK-2: chunks are taken when they become full, and reused.
fn drained<const COUNT: usize, const ROOM: usize>(
    writers: u32,
    events: u64,
    rounds: u32,
) -> Program {
    Program::new(writers + 1, writers * events as u32 + rounds, move |scope| {
        let Cast { writers, reader } = cast::<COUNT, ROOM>(scope, writers).played_out(scope);
        scope.spawn_each(writers, move |writer| (0..events).for_each(|event| writer.notes(event)));
        scope.spawn(move || (0..rounds).for_each(|_| reader.drains()));
    })
}

/// CHUNK-5: a thread's events are read while it goes on, as for a process that outlives the
/// recording. Reaches `cut` and `whole`.
fn left<const COUNT: usize, const ROOM: usize>() -> Program {
    Program::new(2, 3, |scope| {
        let Cast { writers, reader } = cast::<COUNT, ROOM>(scope, 1);
        let writer = writers[0];
        scope.spawn(move || (0..2).for_each(|event| writer.notes(event)));
        scope.spawn(move || reader.takes("left", drain(&reader.roll, true)));
        scope.finally(move || {
            let events = reader.told_by(writer);
            probe(if events.len() < 2 { "cut" } else { "whole" });
            assert_eq!(events, (0..events.len() as u64).collect::<Vec<_>>(), "a gap");
        });
    })
}

/// A thread that ends gives its chunk back, and so do the events that it notes after that.
fn ends<const COUNT: usize, const ROOM: usize>() -> Program {
    Program::new(2, 4, |scope| {
        let Cast { writers, reader } = cast::<COUNT, ROOM>(scope, 1).played_out(scope);
        let writer = writers[0];
        scope.spawn(move || {
            writer.pen.ends();
            writer.notes(0);
            writer.notes(1);
        });
        scope.spawn(move || (0..2).for_each(|_| reader.drains()));
    })
}

/// CHUNK-3: the child of a fork goes on with its parent's pen, concurrently with the parent.
fn forks<const COUNT: usize, const ROOM: usize>() -> Program {
    Program::new(3, 5, |scope| {
        let Cast { writers, reader } = cast::<COUNT, ROOM>(scope, 2).played_out(scope);
        let (parent, child) = (writers[0], writers[1]);
        let forked = scope.share(<Check as Atomics>::U32::ZERO);
        scope.spawn(move || {
            parent.notes(0);
            child.pen.copy(&parent.pen);
            // Release: pairs with the acquire below. A fork orders both sides.
            forked.store(1, Release);
            parent.notes(1);
        });
        scope.spawn(move || {
            forked.wait_while(Acquire, |forked| forked == 0);
            child.notes(0);
            child.notes(1);
        });
        scope.spawn(move || reader.drains());
    })
}

/// CHUNK-4: a signal handler notes an event, at any point of its thread.
fn interrupts<const COUNT: usize, const ROOM: usize>() -> Program {
    Program::new(2, 5, |scope| {
        let Cast { writers, reader } = cast::<COUNT, ROOM>(scope, 1).played_out(scope);
        let writer = writers[0];
        // SAFETY: shared objects live until the execution has ended, and no thread runs after that.
        let writer: &'static Writer<COUNT, ROOM> = unsafe { &*ptr::from_ref(writer) };
        let handler = move || writer.notes(HANDLERS);
        scope.spawn(move || {
            interrupted(handler, || (0..3).for_each(|event| writer.notes(event)));
        });
        scope.spawn(move || reader.drains());
    })
}

/// CHUNK-5, CHUNK-6: a thread is killed at any point, and its chunk is taken; `others` go on.
fn kills<const COUNT: usize, const ROOM: usize>(others: u32) -> Program {
    Program::new(2 + others, 4 + others, move |scope| {
        let Cast { writers, reader } = cast::<COUNT, ROOM>(scope, 1 + others).played_out(scope);
        let dead = scope.share(<Check as Atomics>::U32::ZERO);
        let victim = writers[0];
        scope.spawn(move || {
            killed(|| (0..3).for_each(|event| victim.notes(event)));
            // Release: pairs with the acquire below. The kernel reports the death after all writes.
            dead.store(1, Release);
        });
        scope.spawn_each(writers.into_iter().skip(1), move |writer| writer.notes(0));
        scope.spawn(move || {
            reader.drains();
            reader.reclaims(|head| head.tid == victim.tid && dead.load(Acquire) == 1);
        });
    })
}
