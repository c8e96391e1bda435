//! Models of the channel to the host: a request is answered once, an answer is that of its request,
//! and each side sees what the other did before.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_metal::channel::{DATA, Held, Operation, Request, Slot, Taken, Word};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

type U32 = <Check as Atomics>::U32;
type U64 = <Check as Atomics>::U64;

/// Length of a slot, in words: the head and one word of data.
const LENGTH: usize = 9;
/// The place of the state and of the count, and the states.
const STATE: usize = 0;
const COUNT: usize = 4;
const ASKED: u64 = 1;
const ANSWERED: u64 = 2;

pub fn entries() -> Vec<Entry> {
    Subject("metal-channel").models([
        model("answers-1+1", calling(1, 2), PLAIN),
        model("answers-2+1", calling(2, 1), PLAIN).reaches(&["waited"]),
        model("copies-1+1", overwriting(), PLAIN).reaches(&["before", "after"]),
        model("takes-2", taking(), PLAIN).reaches(&["both"]),
    ])
}

/// A word of the shared memory.
struct Shared(U64);

impl Word for Shared {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
    }
}

struct Memory {
    words: [Shared; LENGTH],
    taken: Taken<Check>,
    /// Changed when a slot is given back.
    returns: U32,
    /// Changed by the call that uses the slot: two at a time race.
    uses: Data<u32>,
}

impl Memory {
    const fn new() -> Self {
        Self {
            words: [const { Shared(U64::ZERO) }; LENGTH],
            taken: Taken::NEW,
            returns: U32::ZERO,
            uses: Data::new(0),
        }
    }

    fn slot(&self) -> Slot<'_, Shared> {
        Slot::of(&self.words).expect("a slot is long enough")
    }

    /// Waits until the slot has a state; the look at it comes later, and orders.
    fn wait_for(&self, state: u64) {
        self.words[STATE].0.wait_while(Relaxed, |now| now != state);
    }

    /// Takes the slot; waits while another call uses it.
    fn take(&self) -> Held<'_, Check> {
        loop {
            // Acquire, here and below: so `take` sees that the slot is free; pairs with `call`.
            let returns = self.returns.load(Acquire);
            if let Some(held) = self.taken.take::<1>() {
                assert_eq!(held.index(), 0, "there is one slot");
                return held;
            }
            probe("waited");
            self.returns.wait_while(Acquire, |now| now == returns);
        }
    }

    /// As a `Call` of the kernel: asks for the double of `number`.
    fn call(&self, number: u64) {
        let held = self.take();
        self.uses.with_mut(|uses| *uses += 1);
        let (operation, file) = (Operation::Write as u64, number);
        let request = Request { operation, file, offset: 7, count: 8 };
        self.slot().ask(&request, &number.to_le_bytes());
        self.wait_for(ANSWERED);
        assert!(self.slot().is_answered());
        let mut data = [0; 8];
        assert_eq!(self.slot().take(&mut data), Ok(2 * number), "the answer to another request");
        assert_eq!(u64::from_le_bytes(data), 3 * number, "the data of another answer");
        self.uses.with_mut(|uses| *uses += 1);
        // CHANNEL-3.
        drop(held);
        // Release: pairs with the acquires in `take`.
        self.returns.fetch_add(1, Release);
    }

    /// The host takes and answers a request.
    fn serve(&self, data: &mut [u8; DATA]) -> u64 {
        self.wait_for(ASKED);
        let request = self.slot().asked(data).expect("a request");
        assert_eq!((request.offset, request.count), (7, 8), "CHANNEL-1");
        let number = u64::from_le_bytes(*data.first_chunk().expect("eight bytes"));
        assert_eq!(number, request.file, "CHANNEL-1: the data of another request");
        number
    }
}

fn buffer() -> Box<[u8; DATA]> {
    Box::new([0; DATA])
}

/// Callers make `calls` calls each, by one slot. Each side sees what the other did before. Must
/// reach
/// `waited`, if there are several.
fn calling(callers: usize, calls: u64) -> Program {
    let count = callers as u64 * calls;
    Program::new(callers as u32 + 1, 2 * count as u32, move |scope| {
        let memory = scope.share(Memory::new());
        let asked = scope.share([const { Data::new(false) }; 3]);
        let answered = scope.share([const { Data::new(false) }; 3]);
        scope.spawn_each(0..callers as u64, move |caller| {
            for number in caller * calls + 1..=(caller + 1) * calls {
                asked[number as usize].set(true);
                memory.call(number);
                assert!(answered[number as usize].get(), "what the host did before");
            }
        });
        scope.spawn(move || {
            let mut data = buffer();
            for _ in 0..count {
                let number = memory.serve(&mut data);
                assert!(asked[number as usize].get(), "what the image did before");
                answered[number as usize].set(true);
                memory.slot().answer(Ok(2 * number), &(3 * number).to_le_bytes());
            }
        });
    })
}

/// An image that breaks the rules changes its request while the host takes it: what the host has
/// copied agrees with the length that it returns. Must reach `before` and `after`.
fn overwriting() -> Program {
    Program::new(2, 2, |scope| {
        let memory = scope.share(Memory::new());
        scope.spawn(|| {
            let request =
                Request { operation: Operation::Write as u64, file: 1, offset: 7, count: 8 };
            memory.slot().ask(&request, &1_u64.to_le_bytes());
            memory.words[COUNT].store(0, Relaxed);
        });
        scope.spawn(|| {
            let mut data = buffer();
            memory.wait_for(ASKED);
            let request = memory.slot().asked(&mut data).expect("a request");
            probe(if request.count == 8 { "before" } else { "after" });
            assert_eq!(u64::from(data[0]), request.count / 8, "CHANNEL-2: looked at twice");
        });
    })
}

/// Two calls take a slot each, of two. Must reach `both`.
fn taking() -> Program {
    Program::new(2, 2, |scope| {
        let taken = scope.share(Taken::<Check>::NEW);
        let uses = scope.share([const { Data::new(0) }; 2]);
        scope.spawn_each(0..2, move |_| {
            let held = taken.take::<2>().expect("there are two");
            uses[held.index()].with_mut(|uses| *uses += 1);
            if held.index() == 1 {
                probe("both");
            }
            drop(held);
        });
        scope.finally(|| assert_eq!(uses[0].get() + uses[1].get(), 2));
    })
}
