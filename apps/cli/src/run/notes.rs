//! What a report has to say beside its tables, one sentence or two each: why there is nothing in
//! it, which form of the lock it was, and what went past the library.

use antiphon_record::Snapshot;

use super::summary::Run;
use crate::preload;

/// The notes on a run, the one that matters most first.
pub fn of(run: &Run, snapshot: &Snapshot) -> Vec<String> {
    if let Some(obstacle) = &run.obstacle {
        return vec![format!("Nothing was replaced: {obstacle}.")];
    }
    if run.lock == preload::GLIBC {
        return vec!["glibc's own locks, seen from outside: no call sites.".to_owned()];
    }
    if snapshot.started == 0 {
        return vec![
            "Nothing was replaced: no program has loaded the library; LD_PRELOAD was cleared or \
             ignored on the way, or CMD ended before."
                .to_owned(),
        ];
    }
    let notes = [nothing_used(run, snapshot), form(run, snapshot), bypassed(snapshot)];
    notes.into_iter().chain([strangers(snapshot)]).flatten().collect()
}

fn nothing_used(run: &Run, snapshot: &Snapshot) -> Option<String> {
    (run.profile && snapshot.rows.is_empty()).then(|| {
        "No pthread mutex, condition variable or spinlock was used where the library got in; a \
         child that clears LD_PRELOAD or is static is out of its reach."
            .to_owned()
    })
}

/// Which form was really used: the library takes the exchange where the light form can't be had.
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

/// Processes whose mutexes were in the light form.
pub fn light_processes(snapshot: &Snapshot) -> usize {
    snapshot.processes.iter().filter(|process| process.light).count()
}

fn bypassed(snapshot: &Snapshot) -> Option<String> {
    let times = snapshot.bypasses;
    (times > 0).then(|| {
        format!(
            "Objects were loaded past the library, by dlmopen or RTLD_DEEPBIND ({times} times): \
             they use glibc's locks. A mutex that they share with the rest of the program excludes \
             nobody; if there may be one, use --lock glibc."
        )
    })
}

fn strangers(snapshot: &Snapshot) -> Option<String> {
    let strangers = snapshot.strangers;
    (strangers.count > 0).then(|| {
        format!(
            "A mutex in memory that processes share, but not flagged PTHREAD_PROCESS_SHARED, had \
             waiters of another process {} times (the last at {:#x}). They wait for up to 1.6 s \
             too long, since nobody can wake them: flag it, or use --lock glibc.",
            strangers.count, strangers.lock
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_record::{Process, Strangers};
    use std::time::Duration;

    fn run(lock: &str) -> Run {
        Run {
            command: vec!["program".to_owned()],
            lock: lock.to_owned(),
            profile: false,
            wall: Duration::ZERO,
            ended: "exit code 0".to_owned(),
            obstacle: None,
        }
    }

    fn started() -> Snapshot {
        let process = |light| Process { pid: 1, parent: None, began_ns: 1, light };
        Snapshot {
            started: 1,
            processes: vec![process(true), process(false)],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_plain_run_needs_no_words() {
        assert_eq!(of(&run("shfl-mutex"), &started()), Vec::<String>::new());
    }

    #[test]
    fn the_form_that_was_used_is_said() {
        let mut snapshot = started();
        let some = of(&run(preload::LIGHT), &snapshot);
        assert!(some.len() == 1 && some[0].contains("in 1 of 2 processes"), "{some:?}");
        snapshot.processes.pop();
        let all = of(&run(preload::LIGHT), &snapshot);
        assert!(all.len() == 1 && all[0].contains("in 1 of 1 processes."), "{all:?}");
    }

    #[test]
    fn what_went_past_the_library_is_said() {
        let strangers = Strangers { count: 3, lock: 0x1000 };
        let snapshot = Snapshot { bypasses: 2, strangers, ..started() };
        let notes = of(&run("shfl-mutex"), &snapshot);
        assert!(notes[0].contains("RTLD_DEEPBIND (2 times)"), "{notes:?}");
        assert!(notes[1].contains("3 times (the last at 0x1000)"), "{notes:?}");
        let notes = of(&run("shfl-mutex"), &Snapshot::default());
        assert!(notes.len() == 1 && notes[0].contains("no program has loaded"), "{notes:?}");
    }
}
