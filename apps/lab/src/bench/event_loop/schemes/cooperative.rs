//! One thread with one loop: it dispatches the timers that are due, then runs chunks of work, the
//! most important first, and gives the CPU away between them.

use antiphon_runtime::coop::{Ask, Cooperate};

use super::super::player::{Player, Seen};
use super::Seat;
use super::events::Events;
use crate::compete::work::now_ns;

/// Plays, and gives the CPU away when `others` asks for it.
///
/// # Errors
///
/// One line, if it can't wait.
pub fn play(
    mut player: Player,
    mut seat: Seat,
    others: &mut dyn Cooperate,
) -> Result<Seen, String> {
    let mut events = Events::new().map_err(|error| format!("a loop: {error}"))?;
    let mut poll_at_ns = 0;
    while player.release_ns().is_some() {
        let now_ns = now_ns();
        if let Some(shows) = player.dispatch(now_ns) {
            if shows {
                seat.show();
            }
            others.tell(player.release_ns());
            continue;
        }
        if now_ns >= poll_at_ns || player.best().is_none() {
            let ask = Ask {
                release_ns: player.release_ns(),
                importance: player.importance(seat.one_group),
            };
            let answer = others.poll(ask, &mut |until_ns| events.wait(until_ns));
            // Without such an answer, each chunk is followed by a poll.
            let until_ns = [answer.poll_at_ns, answer.release_ns].into_iter().flatten().min();
            poll_at_ns = until_ns.unwrap_or(0);
            if player.is_due(self::now_ns()) {
                continue;
            }
        }
        if let Some(frame) = player.best() {
            seat.decode(player.chunk_ns(frame));
            player.decoded(frame, self::now_ns());
        }
    }
    Ok(player.into_seen())
}

#[cfg(test)]
mod tests {
    use super::super::super::clip::Clip;
    use super::super::super::player::Window;
    use super::*;
    use crate::compete::work::Pace;
    use antiphon_report::schedule::Schedule;
    use antiphon_report::stats::Random;
    use antiphon_runtime::coop::Answer;

    /// A cooperative scheduler of the test: sets when to poll again, and keeps what it was asked.
    struct Other {
        ahead_ns: Option<u64>,
        asked: Vec<Ask>,
    }

    impl Cooperate for Other {
        fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
            self.asked.push(ask);
            wait(if ask.importance.is_some() { Some(0) } else { ask.release_ns });
            let poll_at_ns = self.ahead_ns.map(|ns| now_ns() + ns);
            Answer { poll_at_ns, ..Answer::default() }
        }
    }

    fn polls(ahead_ns: Option<u64>) -> (Seen, Vec<Ask>) {
        let pace = Pace::calibrate();
        let begin_ns = now_ns() + 50_000_000;
        let period_ns = 5_000_000;
        let end_ns = begin_ns + 20 * period_ns;
        let window = Window { begin_ns, period_ns, count_ns: begin_ns, end_ns };
        let player = Player::new(Clip::new(1, period_ns, 0.5, true), window);
        let seat = Seat {
            pace,
            one_group: true,
            domain: None,
            schedule: Schedule::default(),
            misbehaves: 0.0,
            random: Random(1),
        };
        let mut other = Other { ahead_ns, asked: Vec::new() };
        let seen = play(player, seat, &mut other).expect("descriptors");
        (seen, other.asked)
    }

    #[test]
    fn it_asks_with_its_next_timer_and_what_it_has_to_do() {
        let (seen, asked) = polls(None);
        assert_eq!(seen.tardiness_ns.len(), 20);
        assert!(asked.iter().all(|ask| ask.release_ns.is_some()));
        assert!(asked.is_sorted_by_key(|ask| ask.release_ns));
        assert!(asked.iter().any(|ask| ask.importance.is_some()));
        assert!(asked.len() as u64 >= seen.chunks, "one at least before each chunk");
    }

    #[test]
    fn it_polls_no_sooner_than_it_is_told() {
        let (seen, asked) = polls(Some(u64::MAX / 4));
        let busy = asked.iter().filter(|ask| ask.importance.is_some()).count();
        assert_eq!((seen.tardiness_ns.len(), busy), (20, 1));
    }
}
