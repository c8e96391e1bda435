//! Models of colours on several loops: one event of a colour is called at a time, and no loop
//! sleeps while an event is left that no loop looks for.

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, AtomicInteger, Atomics, SharedWait};
use antiphon_runtime::event_loop::{Call, Palette};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type Word = <Check as Atomics>::U32;

pub fn entries() -> Vec<Entry> {
    Subject("colours").models([
        model("one-2+1", loops(2, &[0, 0]), PLAIN).by_lot(3_000),
        model("two-2+1", loops(2, &[0, 1]), PLAIN).by_lot(3_000),
        model("stolen-2+1", loops(2, &[0, 2]), PLAIN).by_lot(3_000),
        model("stolen-between-2+1", loops(2, &[0, 2, 0]), PLAIN).by_lot(2_000),
    ])
}

/// The state that loops share.
struct Crew {
    palette: Palette<Check, u32, usize>,
    /// The bell of each loop, on which it sleeps: how often it was rung.
    bells: [Word; 2],
    /// Number of calls of each colour: written without a lock (COLOUR-1).
    called: [Data<u32>; 3],
    /// Number of events that were called.
    done: Word,
    events: u32,
}

impl Crew {
    fn ring(&self, number: usize) {
        // Release: pairs with the acquire in `run`.
        self.bells[number].fetch_add(1, Release);
        Check::wake_shared(&raw const self.bells[number], 1);
    }

    /// Rings the loop of the call: the loops have nothing else to do, so no other loop need be
    /// woken.
    fn tell(&self, call: Option<Call<usize>>) {
        if let Some(Call { bell, .. }) = call {
            self.ring(bell);
        }
    }

    /// Runs a loop that ends when all events were called.
    fn run(&self, number: usize, all: usize) {
        loop {
            let heard = self.bells[number].load(Acquire);
            if self.done.load(Relaxed) == self.events {
                return;
            }
            let Some(taken) = self.palette.take(number) else {
                // COLOUR-3: only a thread that has submitted an event ends this wait.
                let _ = Check::wait_shared(&self.bells[number], heard, None);
                continue;
            };
            let called = &self.called[taken.colour as usize];
            called.set(called.get() + taken.event);
            let next = self.palette.done(number, taken.colour, None);
            self.tell(next.wake);
            if self.done.fetch_add(1, Relaxed) + 1 == self.events {
                (0..all).for_each(|other| self.ring(other));
            }
        }
    }
}

/// `count` loops, and a thread that submits an event of each of these colours.
fn loops(count: usize, colours: &'static [u64]) -> Program {
    let events = colours.len() as u32;
    Program::new(count as u32 + 1, 2 * events, move |scope| {
        let crew: &Crew = scope.share(Crew {
            palette: Palette::new(count),
            bells: [const { Word::ZERO }; 2],
            called: [const { Data::new(0) }; 3],
            done: Word::ZERO,
            events,
        });
        for number in 0..count {
            assert_eq!(crew.palette.join(number, number), None);
            scope.spawn(move || crew.run(number, count));
        }
        scope.spawn(move || {
            for &colour in colours {
                let call = crew.palette.put(colour, 0, 1);
                crew.tell(call);
            }
        });
        scope.finally(move || {
            let called: u32 = crew.called.iter().map(Data::get).sum();
            assert_eq!((called, crew.done.load(Relaxed)), (events, events));
        });
    })
}
