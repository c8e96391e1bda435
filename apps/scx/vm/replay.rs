//! The kernel's turns, one by one, in the policy in Rust: would it have picked the same thread?
//!
//! The policy in the kernel keeps what it is told and what it decides. Here the same times, polls
//! and charges are told to the one in Rust, which picks at the beginning of each turn. Where it
//! picks another thread, the kernel's is charged all the same, so that a difference does not cause
//! further ones.
//!
//! The threads always want the CPU. A poll counts at the end of the turn within which it was seen,
//! as in Rust a poll ends a turn.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use antiphon_runtime::coop::{Member, Members, Options, Pick, Scheduler};
use serde_json::Value;

use crate::policy::{EXT, play};
use crate::scheduler::under;
use crate::start::Failure;
use crate::thread::{become_of, hog};

/// A release that came so shortly before a turn may not have been noticed: the timer and its
/// interrupt take that long.
const NOTICE_NS: u64 = 100_000;

/// In this time the threads begin, and sleep now and then, of which the policy in Rust is not told.
const START_NS: u64 = 100_000_000;

/// Four players and two threads that always want the CPU.
pub fn turns() -> Result<String, Failure> {
    let status = under(&["trace"], |scheduler| {
        let hints = &scheduler.connect()?;
        let stop = &AtomicBool::new(false);
        scope(|threads| -> Result<Value, Failure> {
            let players: Vec<_> = (0..4_u64)
                .map(|id| {
                    let period_ns = 16_600_000 + 130_000 * id;
                    threads.spawn(move || play(Some(hints), EXT, period_ns, stop).map(|_| ()))
                })
                .collect();
            let hogs = (0..2).map(|_| threads.spawn(|| become_of(EXT).map(|()| _ = hog(stop))));
            let all: Vec<_> = players.into_iter().chain(hogs).collect();
            sleep(Duration::from_millis(1_500));
            // Before they end: a thread that ends is not told to the policy in Rust.
            let status = scheduler.status();
            stop.store(true, Ordering::Relaxed);
            for one in all {
                one.join().map_err(|_| "a thread panicked")??;
            }
            status
        })
    })?;
    let events = status["events"].as_array().ok_or("no events")?;
    let seen = replay(events).ok_or("an event is malformed")?;
    let Seen { turns, same, noticed_late } = seen;
    let told = format!(
        "{same} of {turns} turns are the same in Rust, {noticed_late} others began before a \
         release of the last {} us was noticed",
        NOTICE_NS / 1_000
    );
    let share = f64::from(same + noticed_late) / f64::from(turns.max(1));
    if turns > 500 && share >= 0.98 { Ok(told) } else { Err(told.into()) }
}

#[derive(Default)]
struct Seen {
    turns: u32,
    same: u32,
    noticed_late: u32,
}

impl Seen {
    /// Counts a turn of thread `id`, beside what the policy in Rust picks.
    fn count(&mut self, pick: Pick, id: usize, is_due: bool, is_news: impl Fn(usize) -> bool) {
        self.turns += 1;
        match pick {
            Pick::Run { id: picked, due, .. } if picked == id && due == is_due => self.same += 1,
            Pick::Run { id: picked, due: true, .. } if is_news(picked) => self.noticed_late += 1,
            Pick::Run { .. } | Pick::Idle { .. } => {}
        }
    }
}

/// A thread whose turn goes on.
#[derive(Default)]
struct Turn {
    id: usize,
    ran_ns: u64,
    poll: Option<(u64, u64)>,
}

fn replay(events: &[Value]) -> Option<Seen> {
    let mut cpu = Scheduler::new(Members::new(), Options::default());
    let mut ids = HashMap::new();
    let (mut seen, mut turn) = (Seen::default(), None::<Turn>);
    let (mut releases, mut begun_ns) = (HashMap::new(), None);
    for event in events {
        let number = |at: usize| event.get(at)?.as_u64();
        let (at_ns, value, importance) = (number(0)?, number(3)?, number(4)?);
        let thread = number(2)?;
        let id = match ids.get(&thread) {
            Some(id) => *id,
            None => {
                let id = cpu.join(Member::default())?;
                ids.insert(thread, id);
                id
            }
        };
        let mine = turn.as_mut().filter(|turn| turn.id == id);
        match (number(1)?, mine) {
            (2, Some(mine)) => mine.ran_ns += value,
            (3, Some(mine)) => mine.poll = Some((value, importance)),
            (4, Some(_)) => {}
            (1 | 4, _) => {
                if let Some(former) = turn.take() {
                    end(&mut cpu, &mut releases, &former, at_ns);
                }
                let pick = cpu.pick(at_ns);
                let begun_ns = *begun_ns.get_or_insert(at_ns);
                if number(1)? == 1 && at_ns >= begun_ns + START_NS {
                    seen.count(pick, id, value != 0, |id| {
                        releases.get(&id).is_some_and(|at| at_ns.saturating_sub(*at) < NOTICE_NS)
                    });
                }
                turn = Some(Turn { id, ..Turn::default() });
            }
            // A charge or a poll of a thread that does not run: after the last turn that was kept.
            _ => {}
        }
    }
    Some(seen)
}

/// Ends a turn as it has ended in the kernel.
fn end(cpu: &mut Scheduler, releases: &mut HashMap<usize, u64>, turn: &Turn, at_ns: u64) {
    let Turn { id, ran_ns, poll } = *turn;
    let is_running = cpu
        .members()
        .any(|(one, member)| one == id && member.state == antiphon_runtime::coop::State::Running);
    match poll {
        Some((release, importance)) => {
            let release = (release != 0).then_some(release);
            releases.extend(release.map(|release| (id, release)));
            if is_running {
                cpu.poll(id, ran_ns, release, Some(importance));
            } else {
                cpu.charge(id, ran_ns);
                cpu.poll(id, 0, release, Some(importance));
            }
        }
        None if is_running => {
            if cpu.expire(at_ns, ran_ns).is_none() {
                cpu.preempt(id, ran_ns);
            }
        }
        None => cpu.charge(id, ran_ns),
    }
}
