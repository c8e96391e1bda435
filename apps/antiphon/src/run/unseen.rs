//! Sentences on what a report could not see, each with the reason and the remedy.
//!
//! A report never claims that nothing happened where it does not know. Each gap in its knowledge
//! has a sentence here; a report is complete only if there is none.

use antiphon_record::{Dropped, Snapshot};
use antiphon_report::words::several;

use super::children;
use super::facts::Run;
use super::notes::done_to_locks;

/// The sentences on a run. `running` is `Some` if a process still ran when CMD had ended: the
/// number of those known by their ids. `refused` is the number of samples of a thread that the
/// kernel refused.
pub fn of(run: &Run, snapshot: &Snapshot, running: Option<usize>, refused: u64) -> Vec<String> {
    let all = [
        nothing_opened(run, snapshot),
        not_opened(run, snapshot),
        still_running(running),
        unsampled(run),
        not_looked_at(refused),
        unfinished(snapshot),
        full(&snapshot.dropped),
    ];
    all.into_iter().flatten().collect()
}

/// Why a program may have no recording although its environment names one.
const WHY_NOT: &str = "a limit on memory, a process namespace or a root directory of its own, \
                       another user, or no /proc";

/// Says that no program at all has opened the recording, although one should have.
fn nothing_opened(run: &Run, snapshot: &Snapshot) -> Option<String> {
    if let Some(why) = &run.untaped {
        return Some(format!(
            "Nothing was recorded: {why} has no room for a recording. CMD's locks were {} all the \
             same.",
            done_to_locks(&run.lock)
        ));
    }
    let meant = !run.is_outside() && run.kept_out.is_none();
    (meant && snapshot.started == 0).then(|| {
        format!(
            "Nothing was recorded: no program opened the recording. LD_PRELOAD was cleared or \
             ignored on the way, CMD ended before, or its locks were {} and it could not open it \
             ({WHY_NOT}).",
            done_to_locks(&run.lock)
        )
    })
}

/// Says that fewer programs have opened the recording than were executed with the library.
fn not_opened(run: &Run, snapshot: &Snapshot) -> Option<String> {
    if snapshot.started == 0 {
        return None;
    }
    let itself = u64::from(run.kept_out.is_none());
    let (meant, opened) = (itself + children::reached(snapshot), snapshot.started);
    (opened < meant).then(|| {
        format!(
            "{opened} of {} opened the recording. The locks of the others are missing: they could \
            not be executed, or could not open it ({WHY_NOT}).",
            several(meant, "program")
        )
    })
}

/// Says that CMD has left a process that still runs.
fn still_running(running: Option<usize>) -> Option<String> {
    let what = match running? {
        // A process that has recorded nothing yet is not known by its id.
        0 | 1 => "A process that CMD started is still running: what it does".to_owned(),
        several => format!("{several} processes that CMD started are still running: what they do"),
    };
    Some(format!(
        "{what} after the end of CMD is not here. Run a server in the foreground to see all of it."
    ))
}

/// Says that CMD's threads were not sampled from outside.
fn unsampled(run: &Run) -> Option<String> {
    run.unsampled.as_ref().map(|why| {
        format!(
            "CMD's threads were not looked at from outside ({why}): I/O, sleep, raw futexes and \
             the run queue are missing below."
        )
    })
}

/// Says that the kernel refuses samples of some threads.
fn not_looked_at(refused: u64) -> Option<String> {
    (refused > 0).then(|| {
        format!(
            "The kernel refused {} at threads, of other users or by kernel.yama.ptrace_scope: what \
             these waited for is under \"something else\".",
            several(refused, "look")
        )
    })
}

/// Says that parts of the recording were being written while they were read.
fn unfinished(snapshot: &Snapshot) -> Option<String> {
    (snapshot.unfinished > 0).then(|| {
        format!(
            "{} of the recording {} left out: a process that was still running was writing it, or \
             has damaged it.",
            several(snapshot.unfinished, "record"),
            if snapshot.unfinished == 1 { "is" } else { "are" },
        )
    })
}

/// Names tables that were full.
fn full(dropped: &Dropped) -> Option<String> {
    let kinds = [
        ("processes", dropped.processes),
        ("modules", dropped.modules),
        ("call sites", dropped.sites),
        ("locks", dropped.locks),
        ("rows", dropped.rows),
        ("threads", dropped.threads),
        ("pairs of locks", dropped.edges),
        ("executed programs", dropped.programs),
    ];
    let full: Vec<_> = kinds.iter().filter(|kind| kind.1 > 0).map(|kind| kind.0).collect();
    (!full.is_empty()).then(|| {
        format!(
            "The recording had no room for more {}, or could not be enlarged (a limit on memory): \
            the rest is under \"all others\".",
            full.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_record::{HandedOn, Program};

    fn run() -> Run {
        Run::of_program("shfl-mutex")
    }

    fn program(times: u64, handed_on: HandedOn) -> Program {
        Program { path: "/a".to_owned(), times, user: 0, group: 0, handed_on }
    }

    #[test]
    fn a_run_that_was_seen_whole_needs_no_words() {
        let programs = vec![program(2, HandedOn::Yes), program(5, HandedOn::No)];
        let snapshot = Snapshot { started: 3, programs, ..Snapshot::default() };
        assert_eq!(of(&run(), &snapshot, None, 0), Vec::<String>::new());
    }

    #[test]
    fn what_was_not_seen_is_said() {
        let says = |run: &Run, snapshot: &Snapshot, running: Option<usize>, words: &str| {
            let said = of(run, snapshot, running, 0);
            assert!(said.len() == 1 && said[0].contains(words), "{said:?}");
        };
        let one = Snapshot { started: 1, ..Snapshot::default() };
        says(&run(), &Snapshot::default(), None, "no program opened the recording");
        let programs = vec![program(2, HandedOn::Yes)];
        let executed = Snapshot { programs, ..one.clone() };
        says(&run(), &executed, None, "1 of 3 programs opened the recording");
        says(&run(), &one, Some(0), "A process that CMD started is still running");
        says(&run(), &one, Some(2), "2 processes that CMD started are still running");
        let unsampled = Run { unsampled: Some("no room".to_owned()), ..run() };
        says(&unsampled, &one, None, "not looked at from outside (no room)");
        says(
            &run(),
            &Snapshot { unfinished: 2, ..one.clone() },
            None,
            "2 records of the recording are",
        );
        let refused = of(&run(), &one, None, 3);
        assert!(refused.len() == 1 && refused[0].contains("refused 3 looks"), "{refused:?}");
        let untaped = Run { untaped: Some("the limit on memory".to_owned()), ..run() };
        says(
            &untaped,
            &Snapshot::default(),
            None,
            "the limit on memory has no room for a recording",
        );
        let dropped = Dropped { rows: 1, edges: 2, ..Dropped::default() };
        says(&run(), &Snapshot { dropped, ..one }, None, "no room for more rows, pairs of locks");
    }
}
