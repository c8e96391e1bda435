//! `antiphon_coop_member_t`: the caller's own loop as a member of a domain; and the available
//! tiers.
//!
//! | file | content |
//! |---|---|
//! | `seat` | a caller's options for a tier, and the tier of one of our loops |

pub(crate) mod seat;

use core::cell::RefCell;
use core::ffi::{c_char, c_int};
use core::time::Duration;
use std::thread;

use antiphon_coop::event_loop::now_ns;
use antiphon_coop::{Answer, Ask, Cooperate as _, Halves as _, Membership, Pause, Tier, available};
use antiphon_linux::{Linux, set_timer_slack};
use antiphon_platform::{Platform as _, SharedWait as _, ThreadId};
use libc::{EINVAL, EPERM};

use crate::cancel::uncancelled;
use crate::export::exports;
use seat::{ALONE, BATON, BOOST, CoopStatus, KERNEL, Part, RT_SPLIT, SPLIT, Wish};

/// `antiphon_coop_member_t`.
pub struct Member {
    thread: ThreadId,
    /// The epoch of the process.
    epoch: u32,
    /// Used only by that thread.
    turns: RefCell<Turns>,
}

struct Turns {
    seat: Membership,
    /// Set between the halves of a poll.
    pause: Option<Pause>,
}

/// `antiphon_coop_answer_t`.
#[repr(C)]
pub struct CoopAnswer {
    release_ns: u64,
    importance: u64,
    until_ns: u64,
}

/// `ANTIPHON_COOP_NEVER`.
const NEVER: u64 = u64::MAX;

impl Member {
    /// Runs `does` on the turns, for the member's thread; `EPERM` for others.
    fn with(&self, does: impl FnOnce(&mut Turns) -> c_int) -> c_int {
        // The forked child's thread has another number.
        if self.thread != Linux::thread() {
            return EPERM;
        }
        uncancelled(|| does(&mut self.turns.borrow_mut()))
    }
}

impl From<Answer> for CoopAnswer {
    fn from(answer: Answer) -> Self {
        let [release_ns, importance, until_ns] =
            [answer.release_ns, answer.importance, answer.poll_at_ns]
                .map(|told| told.unwrap_or(NEVER));
        Self { release_ns, importance, until_ns }
    }
}

fn ask(release_ns: u64, importance: u64) -> Ask {
    let told = |number| (number != NEVER).then_some(number);
    Ask { release_ns: told(release_ns), importance: told(importance) }
}

fn sleep_until(until_ns: Option<u64>) {
    // Without a wake-up time, no member sleeps here.
    let left_ns = until_ns.map_or(0, |at| at.saturating_sub(now_ns()));
    if left_ns > 0 {
        thread::sleep(Duration::from_nanos(left_ns));
    }
}

exports! {
    /// Writes which tiers are available, and why the others are not.
    fn antiphon_coop_available(report: *mut c_char, bytes: usize) -> c_int {
        let here = uncancelled(available);
        if !report.is_null() && bytes > 0 {
            let text = here.to_string();
            let cut = text.floor_char_boundary(bytes - 1);
            // SAFETY: the caller's memory for `bytes` bytes, of which at most all but one are
            // written.
            unsafe {
                report.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), cut);
                report.add(cut).write(0);
            }
        }
        let tiers = [
            (Tier::None, ALONE),
            (Tier::Baton, BATON),
            (Tier::Boost, BOOST),
            (Tier::Split, SPLIT),
            (Tier::RealTimeSplit, RT_SPLIT),
            (Tier::Kernel, KERNEL),
        ];
        let there = tiers.into_iter().filter(|(tier, _)| here.tier(*tier).is_ok());
        there.fold(0, |bits, (_, bit)| bits | bit)
    }

    /// Joins the calling thread to a domain.
    fn antiphon_coop_join(member: &mut *mut Member, part: Option<&Part>) -> c_int {
        // SAFETY: the caller passes a name or null.
        let wish = unsafe { Wish::of(part) };
        match uncancelled(|| wish.and_then(|wish| wish.join(|| ()))) {
            Ok(seat) => {
                // If that is refused, the member is as late as all other threads.
                let _ = set_timer_slack(1);
                *member = Box::into_raw(Box::new(Member {
                    thread: Linux::thread(),
                    epoch: Linux::epoch(),
                    turns: RefCell::new(Turns { seat, pause: None }),
                }));
                0
            }
            Err(code) => code,
        }
    }

    /// Polls: lets other members run.
    fn antiphon_coop_poll(
        member: &Member,
        release_ns: u64,
        importance: u64,
        answer: &mut CoopAnswer,
    ) -> c_int {
        member.with(|turns| {
            let ask = ask(release_ns, importance);
            if turns.pause.is_some() || ask == Ask::default() {
                return EINVAL;
            }
            *answer = turns.seat.poll(ask, &mut sleep_until).into();
            0
        })
    }

    /// First half of a poll, before the caller's wait.
    fn antiphon_coop_before(
        member: &Member,
        release_ns: u64,
        importance: u64,
        until_ns: &mut u64,
    ) -> c_int {
        member.with(|turns| {
            if turns.pause.is_some() {
                return EINVAL;
            }
            let pause = turns.seat.before(ask(release_ns, importance));
            *until_ns = pause.until_ns.unwrap_or(NEVER);
            turns.pause = Some(pause);
            0
        })
    }

    /// Second half of a poll, after the caller's wait.
    fn antiphon_coop_after(member: &Member, answer: &mut CoopAnswer) -> c_int {
        member.with(|turns| {
            let Some(pause) = turns.pause.take() else { return EINVAL };
            *answer = turns.seat.after(pause).into();
            0
        })
    }

    /// Writes the state of the member, and its counts.
    fn antiphon_coop_status(member: &Member, status: &mut CoopStatus) -> c_int {
        member.with(|turns| {
            *status = CoopStatus::of_member(&turns.seat);
            0
        })
    }

    /// Leaves the domain, and frees the member.
    fn antiphon_coop_leave(member: *mut Member) -> c_int {
        // SAFETY: created by this library, and still alive.
        let Member { thread, epoch, .. } = *unsafe { &*member };
        if thread != Linux::thread() && epoch == Linux::epoch() && !Linux::ended(thread) {
            return EPERM;
        }
        // SAFETY: the member belongs to the caller, or to a thread that no longer uses it; it is
        // not used after this call.
        let member = unsafe { Box::from_raw(member) };
        uncancelled(|| drop(member));
        0
    }
}
