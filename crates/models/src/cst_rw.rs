//! Models of the CST readers-writer lock: readers share it, writers have it alone, and no thread
//! stays asleep.

use antiphon_check::{Check, Data, Scope};
use antiphon_platform::SocketId;
use antiphon_rivals::cst::{CstForm, CstRwLock};

use crate::bounds::{NUMA, PLAIN, SPURIOUS};
use crate::entry::{Entry, Subject, model};
use crate::program::{Program, finish, guarded, section, unlock};

/// All waiters sleep at once, and a batch is two.
struct Sleepy;

impl CstForm for Sleepy {
    const BATCH: u32 = 2;
    const PIECE_NS: u32 = 0;
    const MARGIN_NS: u32 = 0;
}

type Lock = CstRwLock<Check, Sleepy>;

pub fn entries() -> Vec<Entry> {
    const LOTS: u64 = 500;
    Subject("cst-rw").models([
        model("shares-1+1", sharing(1, 1, 1, 1), PLAIN).reaches(&["read", "written"]),
        model("shares-2+1", sharing(1, 2, 1, 1), PLAIN).by_lot(LOTS),
        model("shares-1+2", sharing(1, 1, 2, 1), PLAIN).by_lot(LOTS),
        model("shares-2+2", sharing(2, 2, 2, 1), NUMA).by_lot(LOTS),
        model("shares-3+2", sharing(1, 3, 2, 2), SPURIOUS).by_lot(LOTS),
        model("makes-1+1", sharing(0, 1, 1, 1), PLAIN).by_lot(LOTS),
        model("makes-2+1", sharing(0, 2, 1, 1), NUMA).by_lot(LOTS),
        // The second writer makes the structure that the reader finds, while the first has the
        // lock.
        model("makes-1+2", sharing(0, 1, 2, 1), NUMA).by_lot(LOTS),
        model("downgrades-1+1", downgrading(1), PLAIN).reaches(&["beside"]),
        model("downgrades-1+2", downgrading(2), NUMA).by_lot(LOTS),
        model("tries-1+1", trying(), PLAIN).reaches(&["busy", "had"]),
        model("exhausted-1+1", sharing(0, 1, 1, 1), PLAIN.nodes(2).mortal(1)).by_lot(LOTS),
    ])
}

/// Shares a lock with the structures of the first `reserved` sockets, and its guarded data.
fn shared<'scope>(
    scope: &'scope Scope<'scope, '_>,
    reserved: u32,
) -> (&'scope Lock, &'scope Data<u32>) {
    let (lock, data) = guarded::<Lock>(scope);
    assert!((0..reserved).all(|socket| lock.reserve(SocketId(socket))), "few nodes");
    (lock, data)
}

/// Readers read plain data, which writers change, `rounds` times each: a reader beside a writer is
/// a data race, and a thread that is not woken is a deadlock.
fn sharing(reserved: u32, readers: u32, writers: u32, rounds: u32) -> Program {
    Program::new(readers + writers, (readers + writers) * rounds, move |scope| {
        let (lock, data) = shared(scope, reserved);
        scope.spawn_each(0..readers, move |_| {
            for _ in 0..rounds {
                let seat = lock.read();
                let seen = data.get();
                antiphon_check::probe(if seen == 0 { "read" } else { "written" });
                // SAFETY: acquired above with this seat.
                unsafe { lock.unlock_read(seat) };
            }
        });
        scope.spawn_each(0..writers, move |_| (0..rounds).for_each(|_| section(lock, data)));
        scope.finally(move || assert_eq!(data.get(), writers * rounds));
    })
}

/// One thread writes, downgrades and reads; others write. No writer comes in between. Must reach
/// `beside`: another thread had to wait.
fn downgrading(others: u32) -> Program {
    Program::new(1 + others, 1 + others, move |scope| {
        let (lock, data) = shared(scope, 1);
        scope.spawn(move || {
            lock.write();
            data.set(data.get() + 10);
            let mine = data.get();
            // SAFETY: acquired above.
            let seat = unsafe { lock.downgrade() };
            assert_eq!(data.get(), mine, "a writer came in between");
            // SAFETY: downgraded above to this seat.
            unsafe { lock.unlock_read(seat) };
        });
        scope.spawn_each(0..others, move |_| {
            lock.write();
            if data.get() >= 10 {
                antiphon_check::probe("beside");
            }
            finish(lock, data);
        });
        scope.finally(move || assert_eq!(data.get(), 10 + others));
    })
}

/// Tries of both kinds: on a free lock they succeed, beside a reader only a try to read does.
fn trying() -> Program {
    Program::new(2, 2, |scope| {
        let (lock, data) = shared(scope, 1);
        scope.spawn(move || {
            lock.write();
            data.set(1);
            unlock(lock);
        });
        scope.spawn(move || match lock.try_read() {
            None => antiphon_check::probe("busy"),
            Some(seat) => {
                antiphon_check::probe("had");
                let _ = data.get();
                assert!(!lock.try_write(), "beside a reader");
                // SAFETY: acquired above with this seat.
                unsafe { lock.unlock_read(seat) };
            }
        });
        scope.finally(move || {
            assert!(lock.try_write(), "a free lock can be tried");
            assert!(lock.try_read().is_none(), "a held one can't");
            unlock(lock);
            let seat = lock.try_read().expect("a free lock can be tried");
            // SAFETY: acquired above with this seat.
            unsafe { lock.unlock_read(seat) };
        });
    })
}
