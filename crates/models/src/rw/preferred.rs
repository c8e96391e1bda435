//! Models of the order in which threads are let in.

use std::sync::atomic::Ordering::Relaxed;

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, Atomics};
use antiphon_sync::lock::{Recursive, Refused, RwForm};

use super::lock::{Lock, assert_free, look, read, unlock_read};
use crate::forms::{Backed, Insistent, Sleepy};
use crate::program::{Program, guarded, section, soon, unlock};

/// Layout of the words of a [`Lock`].
#[repr(C)]
pub struct Words {
    pub state: <Check as Atomics>::U64,
    pub tail: <Check as Atomics>::U32,
    policy: <Check as Atomics>::U8,
    pub rest: <Check as Atomics>::U8,
    pub lines: <Check as Atomics>::U16,
}

const _: () = assert!(size_of::<Words>() == size_of::<Lock>());

pub fn words<F: RwForm>(lock: &Lock<F>) -> &Words {
    // SAFETY: `Words` has the layout that the lock's file defines; the lock lives as long as the
    // borrow.
    unsafe { &*std::ptr::from_ref(lock).cast() }
}

const WAITING: u64 = 1 << 3;
const NAME_SHIFT: u32 = 8;

/// RW-4 (readers that come and go for ever starve no writer): with a reader in and a writer
/// waiting, an arriving reader gets the lock after the writer.
pub fn writer_first() -> Program {
    Program::new(3, 4, |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let written = scope.share(Data::new(false));
        let words = words(lock);
        read(lock);
        // Stays in until the other reader waits behind the writer.
        scope.spawn(move || {
            let name = |state| (state >> NAME_SHIFT) as u16;
            let writer = name(words.state.wait_while(Relaxed, |state| name(state) == 0));
            // Zero is the value before the writer came.
            words.tail.wait_while(Relaxed, |tail| tail == 0 || tail as u16 == writer);
            unlock_read(lock);
        });
        scope.spawn(move || {
            lock.write();
            written.set(true);
            unlock(lock);
        });
        scope.spawn(move || {
            words.state.wait_while(Relaxed, |state| state & WAITING == 0);
            assert_eq!(lock.try_read(), Err(Refused::Busy));
            read(lock);
            assert!(written.get(), "a reader that came later was let in before");
            unlock_read(lock);
        });
    })
}

/// RW-4 of a writer that asks again: it was signalled, a reader overtakes it, and it has asked
/// again before that reader has settled. No other reader comes in beside the first, so the writer's
/// request remains, or returns, while that reader is in.
pub fn asking_again() -> Program {
    Program::new(2, 3, |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        let written = scope.share(<Check as Atomics>::U8::ZERO);
        let state = &words(lock).state;
        read(lock);
        scope.spawn(move || {
            state.wait_while(Relaxed, |state| (state >> NAME_SHIFT) as u16 == 0);
            unlock_read(lock);
            read(lock);
            overtaking(state, written);
            unlock_read(lock);
        });
        scope.spawn(move || {
            lock.write();
            written.store(1, Relaxed);
            unlock(lock);
        });
    })
}

/// [`asking_again`] in which a reader overtakes, by its backstop, a writer that seems not to run.
pub fn asking_the_excused() -> Program {
    Program::new(3, 3, |scope| {
        let lock = scope.share(Lock::<Sleepy>::NEW);
        // The writer's form has no backstop, by which it would eventually notice.
        let backed = lock.in_form::<Backed>();
        let written = scope.share(<Check as Atomics>::U8::ZERO);
        let Words { state, tail, .. } = words(lock);
        read(lock);
        scope.spawn(move || {
            // The second existing node: the reader waits behind the writer.
            tail.wait_while(Relaxed, |tail| tail as u16 != 2);
            unlock_read(lock);
        });
        scope.spawn(move || {
            lock.write();
            written.store(1, Relaxed);
            unlock(lock);
        });
        scope.spawn(move || {
            state.wait_while(Relaxed, |state| (state >> NAME_SHIFT) as u16 == 0);
            read(backed);
            overtaking(state, written);
            unlock_read(lock);
        });
    })
}

/// Run by a reader that may have overtaken a writer. The reader stays until the writer has
/// announced that it waits: so, if that announcement were lost, the model would deadlock.
fn overtaking(state: &<Check as Atomics>::U64, written: &<Check as Atomics>::U8) {
    // Relaxed: if a writer was in before us, the lock's own ordering shows it to us.
    if written.load(Relaxed) == 0 {
        probe("overtook");
        state.wait_while(Relaxed, |state| state & WAITING == 0);
    }
}

/// RW-5: a reader can read-lock again although a writer waits. Must reach that case.
pub fn recursion<F: RwForm>(writers: u32, explicit: bool) -> Program {
    Program::new(writers + 1, writers + 2, move |scope| {
        let (lock, data) = guarded::<Lock<F>>(scope);
        scope.spawn(move || {
            read(lock);
            let again = if explicit { lock.read_recursive() } else { lock.read() };
            assert_eq!(again, Ok(()));
            assert_eq!(lock.try_read_recursive(), Ok(()));
            unlock_read(lock);
            if words(lock).state.load(Relaxed) & WAITING != 0 {
                probe("held twice beside a waiting writer");
            }
            look(lock, data);
            look(lock, data);
        });
        scope.spawn_each(0..writers, move |_| section(lock, data));
        scope.finally(move || assert_free(lock));
    })
}

/// [`recursion`] with a writer that requests a hand-off, and with tries and deadlines.
pub fn fair_recursion() -> Program {
    Program::new(2, 6, |scope| {
        let (lock, data) = guarded::<Lock<Recursive<Insistent>>>(scope);
        scope.spawn(move || {
            // Signals the writer and overtakes it.
            read(lock);
            unlock_read(lock);
            read(lock);
            assert_eq!(lock.try_read(), Ok(()));
            assert_eq!(lock.read_until(soon()), Ok(()));
            if words(lock).state.load(Relaxed) & WAITING != 0 {
                probe("held twice beside a waiting writer");
            }
            let _ = data.get();
            for _ in 0..3 {
                unlock_read(lock);
            }
        });
        scope.spawn(move || {
            lock.write();
            data.set(1);
            unlock(lock);
        });
        scope.finally(move || assert_free(lock));
    })
}
