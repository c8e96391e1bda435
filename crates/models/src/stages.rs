//! Models of stages: each item is served once, in order if there is one server, and the stage ends
//! once, when all items are served. An item that no server was asked to serve is a deadlock.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};
use antiphon_runtime::stage::{self, Next};

use crate::bounds::PLAIN;
use crate::entry::{Entry, Subject, model};
use crate::ledger::Ledger;
use crate::program::Program;

type U32 = <Check as Atomics>::U32;

pub fn entries() -> Vec<Entry> {
    Subject("stage").models([
        model("served-1+1", served(1, 1, 1, 1, 1), PLAIN),
        model("served-again-1+1", served(1, 1, 1, 2, 2), PLAIN).by_lot(5_000),
        model("served-full-1+1", served(1, 1, 1, 3, 1), PLAIN).by_lot(2_000),
        model("served-2+1", served(2, 1, 1, 1, 2), PLAIN).by_lot(5_000),
        model("served-2+2", served(2, 2, 2, 2, 2), PLAIN).by_lot(2_000),
        model("narrow-1+2", served(1, 2, 1, 3, 4), PLAIN).by_lot(10_000),
    ])
}

/// A stage, and the number of requests for a server that none has answered yet.
struct Served {
    stage: stage::Stage<Check, usize>,
    asked: U32,
    /// Number of threads that still send.
    senders: U32,
    ledger: Ledger,
    /// Number of servers that are serving an item now.
    serving: U32,
    width: usize,
    /// Written before the stage is closed.
    closing: Data<bool>,
    /// Written when the stage has ended.
    over: Data<bool>,
}

/// Added to `asked` when the stage has ended.
const OVER: u32 = 1 << 16;

impl Served {
    fn send(&self, number: usize) {
        self.ledger.make(number);
        if self.stage.send(number, None).expect("it is open") {
            self.asked.fetch_add(1, Relaxed);
        }
    }

    fn sent_all(&self) {
        // Release, Acquire: what others have sent; pairs with this operation of other threads.
        if self.senders.fetch_sub(1, AcqRel) == 1 {
            self.closing.set(true);
            if self.stage.close() {
                self.end();
            }
        }
    }

    /// STAGE-2: no server is left.
    fn end(&self) {
        assert!(self.closing.get(), "it was closed before");
        self.over.set(true);
        // Release: pairs with the acquire in `serve`.
        self.asked.fetch_add(OVER, Release);
    }

    /// Serves when a server is asked for, until the stage has ended.
    fn serve(&self) {
        loop {
            let asked = self.asked.wait_while(Acquire, |asked| asked == 0);
            if asked >= OVER {
                assert_eq!(asked, OVER, "over, and somebody was asked to serve");
                return;
            }
            if self.asked.compare_exchange(asked, asked - 1, Relaxed, Relaxed).is_err() {
                continue;
            }
            loop {
                match self.stage.next() {
                    Next::Item(number) => {
                        // STAGE-3. Relaxed: what a server does is not ordered after what others
                        // did before it.
                        assert!(self.serving.fetch_add(1, Relaxed) < self.width as u32);
                        self.ledger.take_number(number);
                        assert!(!self.over.get(), "STAGE-2");
                        self.serving.fetch_sub(1, Relaxed);
                    }
                    Next::Left => break,
                    Next::Over => break self.end(),
                }
            }
        }
    }
}

/// `senders` threads send `each` items each, and `threads` serve them, at most `width` at a time.
fn served(senders: usize, threads: usize, width: usize, each: usize, room: usize) -> Program {
    let all = senders * each;
    Program::new((senders + threads) as u32, (2 * all) as u32, move |scope| {
        let served = scope.share(Served {
            stage: stage::Stage::new(room, width),
            asked: U32::ZERO,
            senders: U32::ZERO,
            ledger: Ledger::new(all),
            serving: U32::ZERO,
            width,
            closing: Data::new(false),
            over: Data::new(false),
        });
        served.senders.store(senders as u32, Relaxed);
        scope.spawn_each(0..senders, move |sender| {
            (0..each).for_each(|turn| served.send(sender * each + turn));
            served.sent_all();
        });
        scope.spawn_each(0..threads, move |_| served.serve());
        scope.finally(move || {
            served.ledger.assert_all_taken();
            assert!(served.over.get());
        });
    })
}
