//! A player of `bench loop`, as events of a loop: one timer for each frame, and chunks to decode.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use antiphon_report::stats::Random;
use antiphon_runtime::coop::Cooperate;
use antiphon_runtime::event_loop::{Callback, Context, Event, EventLoop, Options, Step};
use antiphon_sim::{now, work};

use super::bed::Bed;
use crate::bench::event_loop::player::{Player, Seen};
use crate::bench::event_loop::schemes::LATE_NS;
use crate::compete::work::SHOW_NS;

/// How a player plays.
pub struct Manner {
    /// Whether its user virtual time is the number of frames that it has shown.
    pub one_group: bool,
    /// Probability, from 0 to 1, that a chunk takes up to [`LATE_NS`] longer.
    pub misbehaves: f64,
    /// Random numbers that decide when, and by how much.
    pub random: Random,
}

/// The state that the player's events share.
struct Stage {
    player: RefCell<Player>,
    one_group: bool,
    misbehaves: f64,
    random: RefCell<Random>,
    /// Whether there is an event that decodes.
    decodes: Cell<bool>,
}

/// Plays to the end, giving the core away by this tier.
pub fn play(player: Player, manner: Manner, tier: Box<dyn Cooperate>) -> Seen {
    let Manner { one_group, misbehaves, random } = manner;
    let stage = Rc::new(Stage {
        player: RefCell::new(player),
        one_group,
        misbehaves,
        random: RefCell::new(random),
        decodes: Cell::new(false),
    });
    let mut events = EventLoop::new(Bed::new(), Options::default());
    events.cooperate_by(tier);
    if let Some(event) = decoder(&stage) {
        events.submit(event);
    }
    let first_ns = stage.player.borrow().release_ns();
    if let Some(first_ns) = first_ns {
        let of = stage.clone();
        events.submit(Event::timer_in_steps(first_ns, move |context| of.frame(context)));
        // The loop ends because it is stopped.
        let _ = events.run();
    }
    // The loop leaves the members that it shared the core with.
    drop(events);
    let stage = Rc::into_inner(stage).expect("its events are gone");
    stage.player.into_inner().into_seen()
}

/// Returns the event that decodes until nothing is left, if there is anything to decode.
fn decoder(stage: &Rc<Stage>) -> Option<Event<Bed, impl Callback<Bed> + use<>>> {
    let importance = stage.player.borrow().importance(stage.one_group)?;
    stage.decodes.set(true);
    let stage = stage.clone();
    Some(Event::best_effort_in_steps(importance, move |_| stage.chunk()))
}

impl Stage {
    /// Decodes a chunk of the most important frame.
    fn chunk(&self) -> Step {
        let best = self.player.borrow().best();
        if let Some(frame) = best {
            let chunk_ns = self.player.borrow().chunk_ns(frame);
            work(chunk_ns + self.late_ns());
            self.player.borrow_mut().decoded(frame, now());
        }
        let next = self.player.borrow().importance(self.one_group);
        self.decodes.set(next.is_some());
        next.map_or(Step::Done, Step::More)
    }

    fn late_ns(&self) -> u64 {
        let share = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let random = &mut *self.random.borrow_mut();
        let late = self.misbehaves > 0.0 && share(random.draw()) < self.misbehaves;
        if late { random.draw() % LATE_NS } else { 0 }
    }

    /// Runs the timer of a frame.
    fn frame(self: &Rc<Self>, context: &mut Context<'_, Bed>) -> Step {
        let release_ns = context.release_ns().unwrap_or_default();
        let now_ns = release_ns + context.tardiness_ns().unwrap_or_default();
        if self.player.borrow_mut().dispatch(now_ns) == Some(true) {
            work(SHOW_NS);
        }
        if !self.decodes.get()
            && let Some(event) = decoder(self)
        {
            context.submit(event);
        }
        let next_ns = self.player.borrow().release_ns();
        next_ns.map_or_else(
            || {
                context.stop();
                Step::Done
            },
            Step::At,
        )
    }
}
