//! Models of priority boosts: loops that are raised while they are late, the helper that raises
//! them, and the helper's sleep.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, U32, probe};
use antiphon_platform::{Atomic, ThreadId};
use antiphon_runtime::coop::Options;
use antiphon_runtime::coop::boost::{Boosts, Helper, NEVER, Raise, Vigil};

use crate::bounds::{PLAIN, SPURIOUS, TIMED};
use crate::entry::{Entry, Subject, all_of, model};
use crate::program::Program;

/// Due at once, because clocks start at 1 here.
const DUE: u64 = 1;
/// Endless, because the end of a slack would lower a loop that nothing else lowers.
const ENDLESS: u64 = u64::MAX;

pub fn entries() -> Vec<Entry> {
    let raised = &["raised"];
    all_of([
        Subject("vigil").models([
            model("tells-1+1", telling(1), SPURIOUS),
            model("tells-1+2", telling(2), PLAIN),
        ]),
        Subject("boost").models([
            model("leaves-1+1", leaving(ENDLESS), PLAIN).by_lot(3_000).reaches(raised),
            model("dispatches-1+1", dispatching(), PLAIN).by_lot(3_000).reaches(raised),
            model("overruns-1+1", leaving(0), TIMED)
                .by_lot(3_000)
                .reaches(&["raised", "raised again"]),
            model("passes-on-1+1", passing_on(), PLAIN).by_lot(3_000).reaches(raised),
        ]),
    ])
}

/// VIGIL-1, VIGIL-2: a thread that sleeps for long is woken by each thread that has news.
fn telling(tellers: u32) -> Program {
    Program::new(1 + tellers, 1 + tellers, move |scope| {
        let vigil = scope.share(Vigil::<Check>::NEW);
        let news = scope.share(U32::ZERO);
        scope.spawn(move || {
            // Each teller counts up by one.
            while news.load(Acquire) < tellers {
                vigil.sleep_by(|| if news.load(Acquire) < tellers { NEVER } else { 0 });
            }
        });
        scope.spawn_each(0..tellers, move |_| {
            let mut seen = news.load(Relaxed);
            while let Err(now) = news.compare_exchange(seen, seen + 1, Release, Relaxed) {
                seen = now;
            }
            vigil.tell(DUE);
        });
    })
}

/// A system of two threads, at most one of which is a loop.
struct System<'a> {
    raised: &'a U32,
    /// Thread that may be raised; 0 for none.
    seated: &'a U32,
    /// Whether the system has raised a thread.
    has_raised: bool,
}

impl Raise for System<'_> {
    type Before = ();

    fn raise(&mut self, thread: ThreadId, behind: bool) -> Option<((), u64)> {
        probe(if self.has_raised { "raised again" } else { "raised" });
        assert!(self.has_raised || !behind, "BOOST-6: it has had no slack yet");
        self.has_raised = true;
        assert_eq!(self.seated.load(Acquire), thread.0, "BOOST-3: it has no seat");
        assert_eq!(self.raised.swap(1, Acquire), 0, "raised twice");
        Some(((), 0))
    }

    fn lower(&mut self, _: ThreadId, (): ()) -> Option<u64> {
        assert_eq!(self.raised.swap(0, Release), 1, "lowered twice");
        Some(0)
    }

    fn ran_ns(&mut self, _: ThreadId) -> Option<u64> {
        Some(0)
    }
}

/// A helper with this slack, and a loop that runs `body` and then stops the helper.
fn with(
    slack_ns: u64,
    body: impl Fn(&Boosts<Check>, &U32, &U32) + Copy + Send + Sync + 'static,
    operations: u32,
) -> Program {
    Program::new(2, operations, move |scope| {
        let boosts = scope.share(Boosts::<Check>::new(1));
        let (raised, seated) = (scope.share(U32::ZERO), scope.share(U32::ZERO));
        scope.spawn(move || {
            let options = Options { slack_ns, ..Options::default() };
            Helper::new(boosts, options, System { raised, seated, has_raised: false }).run();
        });
        scope.spawn(move || {
            body(boosts, raised, seated);
            boosts.stop();
        });
        scope.finally(move || assert_eq!(raised.load(Relaxed), 0, "BOOST-5"));
    })
}

/// BOOST-3: a loop that has left is not raised and will not be; without a slack it has overrun
/// before (BOOST-6), and may have been raised again.
fn leaving(slack_ns: u64) -> Program {
    let body = |boosts: &Boosts<Check>, raised: &U32, seated: &U32| {
        seated.store(1, Relaxed);
        let Some(place) = boosts.sit(ThreadId(1)) else { panic!("there is room") };
        boosts.publish(&place, Some(DUE), 0);
        boosts.leave(place);
        assert_eq!(raised.load(Relaxed), 0);
        seated.store(0, Relaxed);
    };
    with(slack_ns, body, 3)
}

/// BOOST-1: a loop that has dispatched is lowered, without another poll.
fn dispatching() -> Program {
    let body = |boosts: &Boosts<Check>, raised: &U32, seated: &U32| {
        seated.store(1, Relaxed);
        let Some(place) = boosts.sit(ThreadId(1)) else { panic!("there is room") };
        boosts.publish(&place, Some(DUE), 0);
        boosts.publish(&place, None, 0);
        // A deadlock if the helper does not lower it.
        raised.wait_while(Acquire, |raised| raised == 1);
        boosts.leave(place);
        seated.store(0, Relaxed);
    };
    with(ENDLESS, body, 4)
}

/// BOOST-3: a seat that another loop has taken over is raised for that loop.
fn passing_on() -> Program {
    let body = |boosts: &Boosts<Check>, _: &U32, seated: &U32| {
        for thread in [1, 2] {
            seated.store(thread, Relaxed);
            let Some(place) = boosts.sit(ThreadId(thread)) else { panic!("there is room") };
            boosts.publish(&place, Some(DUE), 0);
            boosts.leave(place);
        }
    };
    with(ENDLESS, body, 6)
}
