//! Determines the ends of waits that threads were still in when they ended.
//!
//! A thread that is killed, or whose process exits, does not record the end of its wait. Its record
//! still shows the wait, which lasted until the first of these events that is known:
//!
//! | event | known from |
//! |---|---|
//! | the process executed another program | the record of that program, under the same id |
//! | CMD ended; the thread was CMD's, or still exists | this process |
//! | the thread was gone from one round to the next | the sampler |
//!
//! Where only the sampler knows of an end, the wait counts up to when the sampler last saw the
//! thread. A child that lived for less than a round was never seen, and its waits have no length;
//! the same holds for a process in a separate process namespace, which is seen under other ids.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};

use antiphon_record::{Closed, Process, Snapshot};

use super::TAPE;
use super::sampler::Sampled;

/// Closes the waits that have not ended. CMD was process `root` and ended at `end_ns` of the
/// monotonic clock. Returns these waits.
pub fn close(snapshot: &mut Snapshot, sampled: &Sampled, root: u32, end_ns: u64) -> Vec<Closed> {
    let name = |process: &Process| (process.pid, process.elsewhere);
    let processes: Vec<_> =
        snapshot.processes.iter().map(|process| (name(process), process.began_ns)).collect();
    snapshot.close_waits(|process, thread, waiting| {
        let later = processes
            .iter()
            .filter(|&&(id, began_ns)| id == name(process) && began_ns > process.began_ns);
        let replaced_ns = later.map(|&(_, began_ns)| began_ns).min();
        // A sample from before the wait belongs to another thread, which had the same id.
        let last_seen = sampled.waiting.get(&(process.pid, thread.tid));
        let here = !process.elsewhere;
        let last_seen = last_seen.filter(|seen| here && seen.there_ns >= waiting.since_ns);
        // The sampler tells in which round the end was. Without more knowledge, the end is at the
        // start of that round.
        let is_known = here && process.pid == root || replaced_ns.is_some();
        let gone_ns = if here && is_there(process.pid, thread.tid) {
            end_ns
        } else if is_known {
            last_seen.and_then(|seen| seen.gone_ns).unwrap_or(end_ns)
        } else {
            last_seen.map_or(waiting.since_ns, |seen| seen.there_ns)
        };
        gone_ns.min(replaced_ns.unwrap_or(end_ns)).min(end_ns)
    })
}

/// The number of processes that still write to the recording, now that CMD, which was process
/// `root`, has ended: daemons, and processes that a shell left in the background. Their further
/// events are in no report. Processes in a separate process namespace are not known by their ids.
pub fn running(snapshot: &Snapshot, root: u32) -> usize {
    let here = snapshot.processes.iter().filter(|process| !process.elsewhere);
    let ids: BTreeSet<u32> = here.map(|process| process.pid).filter(|&pid| pid != root).collect();
    ids.into_iter().filter(|&pid| records(pid)).count()
}

/// Whether the thread still exists, in a process that has a recording mapped: an id that was reused
/// by another process does not count.
fn is_there(pid: u32, tid: u32) -> bool {
    fs::exists(format!("/proc/{pid}/task/{tid}")).unwrap_or(false) && records(pid)
}

/// Whether a process has a recording mapped.
fn records(pid: u32) -> bool {
    let maps = fs::File::open(format!("/proc/{pid}/maps")).map(BufReader::new);
    let name = TAPE.to_string_lossy();
    // A process that ends meanwhile, or that we may not inspect, counts as gone.
    maps.is_ok_and(|maps| maps.lines().map_while(Result::ok).any(|line| line.contains(&*name)))
}

#[cfg(test)]
mod tests {
    use super::super::sampler::LastSeen;
    use super::*;
    use antiphon_record::{Histogram, Kind, Lock, Row, Thread, Waiting};

    /// A thread of process `pid` that began to wait at 100.
    fn waits(pid: u32, tid: u32) -> Snapshot {
        let process =
            |began_ns| Process { pid, parent: None, began_ns, light: false, elsewhere: false };
        let waiting =
            Waiting { row: 0, lock: 0, site: None, since_ns: 100, held: [None; 3], stack: None };
        Snapshot {
            processes: vec![process(50)],
            locks: vec![Lock {
                process: 0,
                address: 64,
                kind: Kind::Mutex,
                first_site: None,
                made_site: None,
            }],
            rows: vec![Row {
                lock: 0,
                kind: Kind::Mutex,
                site: None,
                acquisitions: 0,
                contended: 0,
                gave_up: 0,
                refused: 0,
                still_waiting: 0,
                wait: Histogram::default(),
                hold: Histogram::default(),
            }],
            threads: vec![Thread {
                process: 0,
                tid,
                blocked: antiphon_record::Blocked::default(),
                waits: 0,
                acquisitions: 0,
                waiting: Some(waiting),
                nests: Default::default(),
            }],
            ..Snapshot::default()
        }
    }

    /// No process has such an id: the kernel's largest is 2²².
    const GONE: u32 = 1 << 30;

    #[test]
    fn a_wait_lasts_till_the_first_end_that_is_known() {
        let waited = |snapshot: &Snapshot, seen: Option<LastSeen>, root: u32| {
            let mut snapshot = snapshot.clone();
            let mut sampled = Sampled::default();
            sampled.waiting.extend(seen.map(|seen| ((GONE, GONE + 1), seen)));
            close(&mut snapshot, &sampled, root, 1_000);
            assert_eq!(snapshot.rows[0].still_waiting, 1);
            snapshot.rows[0].wait.sum_ns
        };
        let seen = |there_ns, gone_ns| Some(LastSeen { there_ns, gone_ns });
        let mut snapshot = waits(GONE, GONE + 1);
        assert_eq!(waited(&snapshot, None, GONE), 900);
        assert_eq!(waited(&snapshot, seen(400, None), GONE), 900);
        assert_eq!(waited(&snapshot, seen(400, Some(500)), GONE), 400);
        assert_eq!(waited(&snapshot, seen(980, Some(1_010)), GONE), 900);
        assert_eq!(waited(&snapshot, seen(90, Some(95)), GONE), 900);
        // The same process as a child of CMD.
        assert_eq!(waited(&snapshot, None, 1), 0);
        assert_eq!(waited(&snapshot, seen(400, None), 1), 300);
        assert_eq!(waited(&snapshot, seen(400, Some(500)), 1), 300);
        // Another process has the id here.
        let mut elsewhere = snapshot.clone();
        elsewhere.processes[0].elsewhere = true;
        assert_eq!(waited(&elsewhere, seen(400, None), GONE), 0);
        for began_ns in [600, 300, 20] {
            snapshot.processes.push(Process { began_ns, ..snapshot.processes[0].clone() });
        }
        assert_eq!(waited(&snapshot, None, 1), 200);
        assert_eq!(waited(&snapshot, seen(290, Some(310)), 1), 200);
        // The process that had this id before did not execute the program.
        assert_eq!(waited(&snapshot, seen(240, Some(250)), 1), 150);
    }

    #[test]
    fn another_process_of_the_same_id_is_not_the_one_that_waited() {
        // This process exists, but maps no recording.
        assert!(!is_there(std::process::id(), std::process::id()));
        assert!(!is_there(GONE, GONE));
    }
}
