//! Models of a head that was signalled and does not come, and of the thread that overtakes it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};

use super::lock::{Lock, assert_free, look, read, unlock_read, visit};
use super::preferred::words;
use crate::arena::arena;
use crate::forms::Overtaken;
use crate::program::{Program, unlock};

const FAIR: u64 = 1 << 2;
const WAITING: u64 = 1 << 3;
const NAME_SHIFT: u32 = 8;

/// A reader overtakes a writer, behind which another reader sleeps: that reader may also come in,
/// and leaves its place, which may have become the head's. Must reach `beside`.
pub fn beside_late_head() -> Program {
    Program::new(3, 3, |scope| {
        let lock = scope.share(Lock::<Overtaken>::NEW);
        let data = scope.share(Data::new(0_u32));
        let written = scope.share(<Check as Atomics>::U8::ZERO);
        let words = words(lock);
        lock.write();
        scope.spawn(move || {
            // The second existing node: the reader waits behind the writer.
            words.tail.wait_while(Relaxed, |tail| tail as u16 != 2);
            unlock(lock);
            visit(lock, data);
        });
        scope.spawn(move || {
            lock.write();
            data.set(data.get() + 1);
            written.store(1, Relaxed);
            unlock(lock);
        });
        scope.spawn(move || {
            words.state.wait_while(Relaxed, |state| (state >> NAME_SHIFT) as u16 == 0);
            read(lock);
            // Relaxed: the lock orders us after a writer that was in before us.
            if written.load(Relaxed) == 0 {
                probe("beside");
            }
            look(lock, data);
        });
        scope.finally(move || {
            assert_eq!(words.tail.load(Relaxed), 0, "nobody waits");
            assert_free(lock);
        });
    })
}

/// A reader overtakes a writer that is due: the lock is reserved, and a thread that comes then gets
/// it after the writer. Must reach `kept`.
pub fn keeping_for_late_head() -> Program {
    Program::new(2, 2, |scope| {
        let lock = scope.share(Lock::<Overtaken>::NEW);
        let written = scope.share(Data::new(false));
        let words = words(lock);
        lock.write();
        scope.spawn(move || {
            let name = |state| (state >> NAME_SHIFT) as u16;
            // Acquire: its node, as it was when it was named.
            let named = name(words.state.wait_while(Acquire, |state| name(state) == 0));
            // The clock of a model hardly moves, so pretend that the head was signalled long ago,
            // and is due.
            let head = arena().resolve_index(named.into()).expect("a node that is in use");
            head.called.store(u32::MAX / 2, Relaxed);
            head.due.store(1, Relaxed);
            unlock(lock);
            read(lock);
            let state = words.state.load(Relaxed);
            let kept = state & FAIR != 0;
            let overtaken = name(state) != 0 && state & WAITING == 0;
            assert!(kept || !overtaken, "who is due is overtaken, and nothing is kept for it");
            unlock_read(lock);
            if kept {
                probe("kept");
                read(lock);
                assert!(written.get(), "a lock that was kept for a writer is another one's");
                unlock_read(lock);
            }
        });
        scope.spawn(move || {
            lock.write();
            written.set(true);
            unlock(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}
