//! The notes of a report, of one or two sentences each: why it is empty, which form of the lock was
//! used, and which waits went past the library.

use antiphon_record::Snapshot;

use super::children::{self, Unreached};
use super::facts::Run;
use crate::{preload, sites};

/// The notes on a run, the most important first; `unseen` are those of [`super::unseen`].
pub fn of(
    run: &Run,
    snapshot: &Snapshot,
    unreached: &[Unreached],
    unseen: &[String],
) -> Vec<String> {
    let what = done_to_locks(&run.lock);
    let unseen = unseen.iter().cloned();
    if run.is_outside() {
        let outside =
            "glibc's own locks, seen from outside at no cost: no call sites; --profile has them.";
        return [outside.to_owned()].into_iter().chain(unseen).collect();
    }
    let kept_out = run.kept_out.as_ref().map(|kept_out| kept_out.afterwards(what));
    if snapshot.started == 0 {
        return kept_out.into_iter().chain(unseen).collect();
    }
    let notes = [kept_out, theirs(run), nothing_used(run, snapshot), form(run, snapshot)];
    let more = [bypassed(run, snapshot), strangers(snapshot), childless(run, what)];
    let unmatched = run.unmatched.as_deref().and_then(sites::sentence);
    let notes = notes.into_iter().flatten().chain(unseen).chain(more.into_iter().flatten());
    notes.chain(unmatched).chain(children::sentences(unreached, what)).collect()
}

/// The note about programs that were left alone on request.
fn childless(run: &Run, what: &str) -> Option<String> {
    (!run.children).then(|| {
        format!(
            "Programs that CMD executed were left alone, because of --no-children: their locks \
            were not {what}, their waits are seen from outside."
        )
    })
}

/// What was done to a program, in a few words: to its locks, if the library is in it for those, and
/// to its loops.
pub fn done(lock: &str, inside: bool, coop: bool) -> String {
    let locks = inside.then(|| done_to_locks(lock));
    let loops = coop.then_some("made cooperative");
    locks.into_iter().chain(loops).collect::<Vec<_>>().join(" or ")
}

/// The library's effect on a program's locks, in a word.
pub fn done_to_locks(lock: &str) -> &'static str {
    if lock == preload::GLIBC { "observed" } else { "replaced" }
}

/// The note on how a recording of glibc's locks differs from one of ours.
fn theirs(run: &Run) -> Option<String> {
    (run.lock == preload::GLIBC).then(|| {
        "glibc's own locks, seen from inside. A wait for a condition includes that for its mutex, \
         which glibc locks again itself; with our locks that is a wait for the mutex."
            .to_owned()
    })
}

fn nothing_used(run: &Run, snapshot: &Snapshot) -> Option<String> {
    (run.profile && snapshot.rows.is_empty()).then(|| {
        "No pthread mutex, readers-writer lock, condition variable or spinlock was used where the \
         library got in; a child that clears LD_PRELOAD or is static is out of its reach."
            .to_owned()
    })
}

/// The note about the form that was actually used: where the light form is not available, the
/// library unlocks by an exchange.
fn form(run: &Run, snapshot: &Snapshot) -> Option<String> {
    if run.lock != preload::LIGHT {
        return None;
    }
    let (all, light) = (snapshot.processes.len(), light_processes(snapshot));
    if light == all {
        return Some(format!("The light form was in use, in {all} of {all} processes."));
    }
    Some(format!(
        "The light form was in use in {light} of {all} processes, the exchange form in the \
         others: it needs x86-64, Linux 5.10, and glibc 2.35 with glibc.pthread.rseq on, and no \
         filter that refuses rseq or membarrier."
    ))
}

/// The number of processes whose mutexes had the light form.
pub fn light_processes(snapshot: &Snapshot) -> usize {
    snapshot.processes.iter().filter(|process| process.light).count()
}

fn bypassed(run: &Run, snapshot: &Snapshot) -> Option<String> {
    let times = snapshot.bypasses;
    let and_so = if run.lock == preload::GLIBC {
        "what they lock is not seen."
    } else {
        "they use glibc's locks. If they share a mutex with the rest of the program, it does \
         not exclude the other side: use --lock glibc."
    };
    (times > 0).then(|| {
        format!(
            "Objects were loaded past the library, by dlmopen or RTLD_DEEPBIND ({times} times): \
             {and_so}"
        )
    })
}

fn strangers(snapshot: &Snapshot) -> Option<String> {
    let strangers = snapshot.strangers;
    (strangers.count > 0).then(|| {
        format!(
            "A mutex in memory that processes share, but not flagged PTHREAD_PROCESS_SHARED, had \
             waiters of another process {} times (the last at {:#x}). They wait for up to 1.6 s \
             too long, because no process can wake them: flag it, or use --lock glibc.",
            strangers.count, strangers.lock
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::facts::KeptOut;
    use super::super::unseen;
    use super::*;
    use antiphon_record::{Histogram, Process, Row, Strangers};

    fn of(run: &Run, snapshot: &Snapshot) -> Vec<String> {
        super::of(run, snapshot, &[], &unseen::of(run, snapshot, None, 0))
    }

    fn started() -> Snapshot {
        let process =
            |light| Process { pid: 1, parent: None, began_ns: 1, light, elsewhere: false };
        Snapshot {
            started: 1,
            processes: vec![process(true), process(false)],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_plain_run_needs_no_words() {
        assert_eq!(of(&Run::of_program("shfl-mutex"), &started()), Vec::<String>::new());
    }

    #[test]
    fn from_where_the_c_librarys_locks_were_seen_is_said() {
        let mut run = Run::of_program(preload::GLIBC);
        let why = "statically linked".to_owned();
        run.kept_out = Some(KeptOut { why, only_cmd: true });
        let outside = of(&run, &Snapshot::default());
        assert!(outside.len() == 1 && outside[0].contains("from outside"), "{outside:?}");
        run.profile = true;
        let kept_out = of(&run, &Snapshot::default());
        assert_eq!(kept_out, ["Nothing was observed in CMD itself: statically linked."]);
        let children = of(&run, &used());
        assert!(children[0] == kept_out[0] && children[1].contains("from inside"), "{children:?}");
        run.kept_out = None;
        let inside = of(&run, &Snapshot { bypasses: 2, ..used() });
        assert!(inside[0].contains("from inside") && inside[1].contains("not seen"), "{inside:?}");
        assert_eq!(inside.len(), 2);
    }

    /// A recording with a row.
    fn used() -> Snapshot {
        let row = Row {
            lock: 0,
            kind: antiphon_record::Kind::Mutex,
            site: None,
            acquisitions: 1,
            contended: 0,
            gave_up: 0,
            refused: 0,
            still_waiting: 0,
            wait: Histogram::default(),
            hold: Histogram::default(),
        };
        Snapshot { rows: vec![row], ..started() }
    }

    #[test]
    fn what_was_left_alone_and_what_was_not_reached_is_said() {
        let mut run = Run::of_program("shfl-mutex");
        run.children = false;
        let one = Unreached { program: "/a".to_owned(), times: 2, why: "/a is static".to_owned() };
        let notes = super::of(&run, &started(), &[one], &[]);
        assert!(notes[0].contains("--no-children"), "{notes:?}");
        assert!(notes[1].contains("started 2 times: /a is static."), "{notes:?}");
    }

    #[test]
    fn the_form_that_was_used_is_said() {
        let mut snapshot = started();
        let some = of(&Run::of_program(preload::LIGHT), &snapshot);
        assert!(some.len() == 1 && some[0].contains("in 1 of 2 processes"), "{some:?}");
        snapshot.processes.pop();
        let all = of(&Run::of_program(preload::LIGHT), &snapshot);
        assert!(all.len() == 1 && all[0].contains("in 1 of 1 processes."), "{all:?}");
    }

    #[test]
    fn what_went_past_the_library_is_said() {
        let strangers = Strangers { count: 3, lock: 0x1000 };
        let snapshot = Snapshot { bypasses: 2, strangers, ..started() };
        let notes = of(&Run::of_program("shfl-mutex"), &snapshot);
        assert!(notes[0].contains("RTLD_DEEPBIND (2 times)"), "{notes:?}");
        assert!(notes[1].contains("3 times (the last at 0x1000)"), "{notes:?}");
        let notes = of(&Run::of_program("shfl-mutex"), &Snapshot::default());
        assert!(notes.len() == 1 && notes[0].contains("no program opened"), "{notes:?}");
    }
}
