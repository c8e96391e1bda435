//! A soak test: runs a given number of tasks of each kind on a pool. Their count and the sum of
//! their numbers show that each has run once; the process's memory after each tenth shows that
//! memory is given back. Fails if either is wrong. Without arguments, runs a million closures and
//! forks, and a tenth as many handles and futures.
//!
//! `cargo run --release -p antiphon --example soak -- closures=1000000000 futures=100000000`

use std::error::Error;
use std::fs;
use std::future::poll_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Instant;

use antiphon::pool::{self, Pool};

/// The number of tasks that exist at a time for each worker that spawns tasks.
const BATCH: u64 = 1_000;
/// Maximum growth of memory after the first tenth.
const SLACK_KIB: u64 = 16 << 10;

/// Runs the tasks with these numbers.
type Kind = fn(&Pool, Range<u64>);

const KINDS: [(&str, Kind); 4] =
    [("closures", closures), ("handles", handles), ("futures", futures), ("forks", forks)];

/// The arguments if none are given.
const USUAL: [&str; 4] = ["closures=1000000", "handles=100000", "futures=100000", "forks=1000000"];
/// Maximum number of tasks: more would take centuries.
const MOST: u64 = 1_000_000_000_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        arguments = USUAL.map(str::to_owned).to_vec();
    }
    // All arguments are checked before the first kind runs for hours.
    let soaks: Vec<_> = arguments.iter().map(|text| asked(text)).collect::<Result<_, _>>()?;
    let pool = Pool::builder().build()?;
    println!("{} workers", pool.threads());
    soaks.into_iter().try_for_each(|(name, kind, tasks)| soak(&pool, name, kind, tasks))
}

/// Parses an argument: a kind of tasks, and their number.
fn asked(text: &str) -> Result<(&str, Kind, u64), String> {
    let right = || {
        let kinds = KINDS.map(|(name, _)| name).join(", ");
        format!("{text}: not as closures=1000000, with 1 task to {MOST}; there are: {kinds}")
    };
    let (name, tasks) = text.split_once('=').ok_or_else(right)?;
    let (_, kind) = KINDS.into_iter().find(|(known, _)| *known == name).ok_or_else(right)?;
    let tasks = tasks.parse().ok().filter(|tasks| (1..=MOST).contains(tasks));
    Ok((name, kind, tasks.ok_or_else(right)?))
}

fn soak(pool: &Pool, name: &str, kind: Kind, tasks: u64) -> Result<(), Box<dyn Error>> {
    let (begin, mut before, mut after_first) = (Instant::now(), seen(), None);
    let mut most = 0;
    for tenth in 0..10 {
        let range = tasks * tenth / 10..tasks * (tenth + 1) / 10;
        all(pool, kind, range.clone());
        let now = seen();
        let wanted = [range.end - range.start, range.map(u128::from).sum::<u128>() as u64];
        if [now[0] - before[0], now[1].wrapping_sub(before[1])] != wanted {
            return Err(format!("{name}: {now:?} after {before:?}, not {wanted:?} more").into());
        }
        before = now;
        most = most.max(resident_kib()?);
        let first = *after_first.get_or_insert(most);
        if most > first + SLACK_KIB {
            return Err(format!("{name}: {first} KiB have grown to {most}").into());
        }
    }
    let (first, seconds) = (after_first.unwrap_or(most), begin.elapsed().as_secs_f64());
    println!(
        "{name}: {tasks} tasks in {seconds:.1} s, {:.0} ns each; all have run once; {first} KiB \
         after a tenth of them, {most} at most",
        seconds * 1e9 / tasks as f64
    );
    Ok(())
}

/// Each worker takes one batch after the other.
fn all(pool: &Pool, kind: Kind, tasks: Range<u64>) {
    let next = AtomicU64::new(tasks.start);
    pool.scope(|scope| {
        for _ in 0..pool.threads() {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(BATCH, Relaxed);
                    if first >= tasks.end {
                        return;
                    }
                    kind(pool, first..tasks.end.min(first + BATCH));
                }
            });
        }
    });
}

fn closures(pool: &Pool, tasks: Range<u64>) {
    pool.scope(|scope| tasks.for_each(|task| scope.spawn(move || run(task))));
}

fn handles(pool: &Pool, tasks: Range<u64>) {
    let handles: Vec<_> = tasks.map(|task| pool.spawn(move || task)).collect();
    handles.into_iter().for_each(|handle| run(handle.join().expect("it returns")));
}

/// Runs futures that are woken once each.
fn futures(pool: &Pool, tasks: Range<u64>) {
    let future = async |task| {
        let mut woken = false;
        poll_fn(|context| {
            if woken {
                return Poll::Ready(());
            }
            woken = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        task
    };
    let handles: Vec<_> = tasks.map(|task| pool.spawn_future(future(task))).collect();
    handles.into_iter().for_each(|handle| run(handle.join().expect("it returns")));
}

fn forks(_: &Pool, tasks: Range<u64>) {
    fn halves(tasks: Range<u64>) {
        let middle = tasks.start + (tasks.end - tasks.start) / 2;
        match tasks.end - tasks.start {
            0 => {}
            1 => run(tasks.start),
            _ => _ = pool::join(|| halves(tasks.start..middle), || halves(middle..tasks.end)),
        }
    }
    halves(tasks);
}

/// The number of tasks that a thread has run, and the sum of their numbers.
type Ran = [AtomicU64; 2];

static ALL: Mutex<Vec<Arc<Ran>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: Arc<Ran> = {
        let mine = Arc::new(Ran::default());
        ALL.lock().expect("nobody panics").push(mine.clone());
        mine
    };
}

/// The work of a task.
fn run(task: u64) {
    MINE.with(|mine| {
        let [ran, sum] = &**mine;
        // Only this thread writes.
        ran.store(ran.load(Relaxed) + 1, Relaxed);
        sum.store(sum.load(Relaxed).wrapping_add(task), Relaxed);
    });
}

/// Returns the sums of the counts of all threads.
fn seen() -> [u64; 2] {
    let all = ALL.lock().expect("nobody panics");
    [0, 1].map(|at| all.iter().fold(0, |sum, ran| ran[at].load(Relaxed).wrapping_add(sum)))
}

/// Returns the resident memory of the process, in KiB.
fn resident_kib() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("/proc/self/status has no VmRSS")?.parse()?)
}
