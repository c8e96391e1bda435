//! The figures of "Cooperative polling" on fairness and misbehaviour (`003_…`, 5.3 and 5.5), with
//! its scheduler in the kernel: eight players, whose videos take different times to decode, and
//! four threads that always want the CPU.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::thread::scope;

use antiphon_coop::event_loop::{Context, Histogram};

use crate::loops::{self, TIME};
use crate::policy::FAIR;
use crate::scheduler::under;
use crate::start::Failure;
use crate::thread::{become_of, hog, jain, stop_after, work};

const PLAYERS: u64 = 8;
const HOGS: u64 = 4;
/// The time from one frame of a video to the next, of the first player; those of the others are a
/// little longer, and have no common multiple that is short.
const PERIOD_NS: u64 = 33_300_000;
/// How long the first player's frames take to decode on average, and by how much longer each
/// further player's do. All videos together want 2.6 times the CPU.
const FRAME_NS: u64 = 4_000_000;
const MORE_NS: u64 = 2_000_000;
/// One turn in twenty of the player that misbehaves is too long, by 10 ms at most. The document has
/// one in a hundred, and runs for minutes.
const MISBEHAVES: u64 = 20;
const DELAY_NS: u64 = 10_000_000;

/// What the figures show.
struct Seen {
    /// Jain's index of the CPU times of all players, and of their numbers of frames.
    cpu: f64,
    frames: f64,
    /// The players' part of the CPU.
    share: f64,
    /// How late the timers were, of the first player and of the others.
    first: Histogram,
    others: Histogram,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, frames, share, first, others } = self;
        let [first, others] = [first, others].map(p99_us);
        write!(
            f,
            "Jain's index of CPU times {cpu:.3}, of frames {frames:.3}; players have {share:.3}; \
             p99 {first} us late the first, {others} the others"
        )
    }
}

fn p99_us(late: &Histogram) -> u64 {
    late.percentile_ns(99_000) / 1_000
}

/// Figure 7: even shares of the CPU, by the kernel's scheduler and by ours. Figures 8 and 10: in
/// one group, even rates of frames, and uneven shares.
pub fn fairness() -> Result<String, Failure> {
    let eevdf = play(None, false, false)?;
    println!("figure fairness EEVDF: {eevdf}");
    let each = under(&["full"], |_| play(None, false, true))?;
    println!("figure fairness antiphon, each by itself: {each}");
    let one = under(&["full"], |_| play(Some(7), false, true))?;
    println!("figure fairness antiphon, one group: {one}");
    let told = format!(
        "CPU times {:.3} and {:.3}, in one group {:.3}; frames {:.3}, in one group {:.3}",
        eevdf.cpu, each.cpu, one.cpu, each.frames, one.frames
    );
    let ideal = PLAYERS as f64 / (PLAYERS + HOGS) as f64;
    let is_even = each.cpu >= 0.98 && one.frames >= 0.97;
    let is_fair = [&each, &one].iter().all(|seen| (seen.share - ideal).abs() <= 0.01);
    if is_even && is_fair && one.frames > each.frames && one.cpu < each.cpu {
        Ok(told)
    } else {
        Err(told.into())
    }
}

/// Figure 12: only the player is late that delays the end of its turns.
pub fn misbehaving() -> Result<String, Failure> {
    let seen = under(&["full"], |_| play(None, true, true))?;
    println!("figure misbehaving antiphon: {seen}");
    let [first, others] = [&seen.first, &seen.others].map(p99_us);
    let told = format!("p99 {first} us late the one that misbehaves, {others} us the others");
    if others * 5 <= first { Ok(told) } else { Err(told.into()) }
}

fn play(group: Option<u32>, misbehaves: bool, is_served: bool) -> Result<Seen, Failure> {
    let stop = &AtomicBool::new(false);
    scope(|threads| {
        let players: Vec<_> = (0..PLAYERS)
            .map(|number| {
                threads.spawn(move || player(number, group, misbehaves && number == 0, is_served))
            })
            .collect();
        let hogs: Vec<_> =
            (0..HOGS).map(|_| threads.spawn(|| become_of(FAIR).map(|()| hog(stop)))).collect();
        stop_after(TIME, stop);
        let panicked = "a thread panicked";
        let (mut late, mut ran, mut frames) = (Vec::new(), Vec::new(), Vec::new());
        for one in players {
            let (of_one, cpu_ns, decoded) = one.join().map_err(|_| panicked)??;
            late.push(of_one);
            ran.push(cpu_ns);
            frames.push(decoded);
        }
        let players: u64 = ran.iter().sum();
        let mut all = players;
        for one in hogs {
            all += one.join().map_err(|_| panicked)??;
        }
        let mut others = Histogram::default();
        for one in &late[1..] {
            others.merge(one);
        }
        Ok(Seen {
            cpu: jain(&ran),
            frames: jain(&frames),
            share: players as f64 / all as f64,
            first: late.swap_remove(0),
            others,
        })
    })
}

/// A player that decodes as much as it can; the less it has decoded, the more important it is.
/// Returns how late its timer was, its CPU time, and the number of frames that it has decoded.
fn player(
    number: u64,
    group: Option<u32>,
    misbehaves: bool,
    is_served: bool,
) -> std::io::Result<(Histogram, u64, u64)> {
    let decoded = Rc::new(Cell::new(0));
    let mut decoder = Decoder {
        frame_ns: FRAME_NS + MORE_NS * number,
        left_ns: 0,
        decoded: Rc::clone(&decoded),
        misbehaves,
        random: number + 1,
    };
    let goes_on = move |context: &mut Context<'_>| decoder.goes_on(context);
    let period_ns = PERIOD_NS + 260_000 * number;
    let (late, cpu_ns) = loops::play(period_ns, group, is_served, goes_on)?;
    Ok((late, cpu_ns, decoded.get()))
}

struct Decoder {
    frame_ns: u64,
    left_ns: u64,
    decoded: Rc<Cell<u64>>,
    misbehaves: bool,
    random: u64,
}

impl Decoder {
    /// Decodes until the turn is over. Returns the importance of what is left.
    fn goes_on(&mut self, context: &mut Context<'_>) -> u64 {
        const PIECE_NS: u64 = 20_000;
        while !context.is_over() {
            if self.left_ns == 0 {
                // Bursty: from half of the mean to one and a half.
                self.left_ns = self.frame_ns / 2 + self.up_to(self.frame_ns);
            }
            work(PIECE_NS);
            self.left_ns = self.left_ns.saturating_sub(PIECE_NS);
            if self.left_ns == 0 {
                self.decoded.set(self.decoded.get() + 1);
            }
        }
        if self.misbehaves && self.up_to(MISBEHAVES) == 0 {
            work(self.up_to(DELAY_NS));
        }
        self.decoded.get() + 1
    }

    /// A number below `most`, of a sequence of the player's own (Knuth's MMIX generator).
    fn up_to(&mut self, most: u64) -> u64 {
        const FACTOR: u64 = 6_364_136_223_846_793_005;
        self.random = self.random.wrapping_mul(FACTOR).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % most
    }
}
