//! Models of RCL servers: a sleeping server leaves no client waiting, and servers come and go.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data};
use antiphon_platform::{Atomic, Atomics};
use antiphon_rivals::delegation::Rcl;

use super::{Delegated, LOTS, Sum, contend, section};
use crate::arena::arena;
use crate::bounds::{PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::program::Program;

/// The server sleeps when a round finds nothing, and each client sleeps at once.
type Served<const CPUS: usize> = Rcl<Sum, Check, CPUS, 0>;
type Watchful = Rcl<Sum, Check, 2, 2>;

pub fn entries() -> Vec<Entry> {
    let crowded = PLAIN.crowded(1).expiries(1);
    Subject("rcl").models([
        model("serves-1+1", serves::<Served<2>>(1, 1), PLAIN),
        model("serves-2+1", serves::<Served<4>>(2, 1), PLAIN).by_lot(LOTS),
        model("serves-3+1", serves::<Served<4>>(3, 2), PLAIN).by_lot(LOTS),
        // Two clients share one mailbox.
        model("shares-a-box-2+1", serves::<Served<1>>(2, 1), PLAIN).by_lot(5_000),
        model("reuses-1+1", reuses(), PLAIN),
        model("lends-3x1", lends(3), PLAIN).reaches(&["refused"]),
        model("stops-1+1", stops(), PLAIN),
        model("lets-go-1+1", lets_go(), PLAIN),
        model("succeeds-1+2", succeeds(), PLAIN),
        model("spurious-1+1", serves::<Served<2>>(1, 1), SPURIOUS),
        model("watches-1+1", serves::<Watchful>(1, 1), crowded),
    ])
}

/// `clients` clients, the last of which stops the server.
fn serves<L: Delegated + Serves>(clients: u32, rounds: u32) -> Program {
    Program::new(clients + 1, clients * rounds + 1, move |scope| {
        let lock = scope.share(L::new());
        contend(scope, lock, (clients, rounds), L::stop);
        scope.spawn(move || lock.serve());
    })
}

/// A box is empty when the server finds it, whatever the node was used for before.
fn reuses() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Served::<1>::new(Data::new(0)));
        let mine = scope.share(Data::new(0));
        scope.spawn(move || {
            let id = arena().take().expect("a node");
            let node = arena().resolve(id).expect("a node of this process");
            // Relaxed: no section has this name, and a server that takes it for one fails.
            node.queue.store(1, Relaxed);
            arena().give(id);
            section(lock, mine);
            Serves::stop(lock);
        });
        scope.spawn(move || lock.serve());
    })
}

/// RCL-1: of `threads` threads that want to serve, one does at a time. Must reach `refused`.
fn lends(threads: u32) -> Program {
    Program::new(threads, threads, move |scope| {
        let lock = scope.share(Served::<1>::new(Data::new(0)));
        let times = scope.share(Data::new(0));
        scope.spawn_each(0..threads, move |_| match lock.lend() {
            Some(server) => {
                times.set(times.get() + 1);
                drop(server);
            }
            None => antiphon_check::probe("refused"),
        });
    })
}

/// The next server serves the clients that a server leaves behind.
fn stops() -> Program {
    Program::new(2, 3, |scope| {
        let lock = scope.share(Served::<1>::new(Data::new(0)));
        contend(scope, lock, (1, 1), Serves::stop);
        scope.spawn(move || {
            let first = lock.lend().expect("nobody else serves");
            assert!(Rcl::stop(lock), "it is there");
            first.run();
            lock.serve();
        });
    })
}

/// A sleeping server is woken by a client that knows only that the server exists.
fn lets_go() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Served::<1>::new(Data::new(0)));
        let lent = scope.share(<Check as Atomics>::U32::ZERO);
        scope.spawn(move || {
            let server = lock.lend().expect("nobody else serves");
            // Release: that it is lent; pairs with the acquire below.
            lent.store(1, Release);
            server.run();
        });
        scope.spawn(move || {
            // Acquire: pairs with the release above.
            lent.wait_while(Acquire, |lent| lent == 0);
            assert!(Rcl::stop(lock), "it is there");
        });
    })
}

/// A thread that stops a sleeping server wakes that server, and not its predecessor.
fn succeeds() -> Program {
    Program::new(3, 3, |scope| {
        let lock = scope.share(Served::<1>::new(Data::new(0)));
        let lent = scope.share(<Check as Atomics>::U32::ZERO);
        scope.spawn(move || {
            let serve = |time| {
                let server = lock.lend().expect("nobody else serves");
                // Release: that it is lent; pairs with the acquires below.
                lent.store(time, Release);
                server.run();
            };
            serve(1);
            // The second server must not get the node on which the first has slept.
            let taken = arena().take().expect("a node");
            serve(2);
            arena().give(taken);
        });
        scope.spawn(move || {
            for time in 1..=2 {
                // Acquire: pairs with the release above.
                lent.wait_while(Acquire, |lent| lent < time);
                // The server may be gone: another thread may have stopped it.
                let _ = Rcl::stop(lock);
            }
        });
        scope.spawn(move || {
            // Stops whichever server is there, if any.
            let _ = Rcl::stop(lock);
        });
    })
}

/// A lock with a server.
trait Serves {
    fn serve(&self);
    fn stop(&self);
}

impl<const CPUS: usize, const SPIN: u32> Serves for Rcl<Sum, Check, CPUS, SPIN> {
    fn serve(&self) {
        self.lend().expect("nobody else serves").run();
    }

    fn stop(&self) {
        assert!(self.stop(), "who has served is there");
    }
}
