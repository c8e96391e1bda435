//! Models of readers that sleep in a row: RW-13.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_check::{Check, Data, probe};
use antiphon_platform::{Atomic, AtomicInteger, Atomics};

use super::lock::{Lock, assert_free, read, unlock_read};
use super::preferred::words;
use crate::forms::Backed;
use crate::program::{Program, unlock};

const READER: u64 = 1 << 40;
const WRITER: u64 = 1;

/// Readers wait in a row behind a writer. The last of them may come in before one of the others: it
/// was woken together with the head, or, if `awake`, together with the second, by the head, which
/// was awake. Must reach `before another`.
pub fn coming_together(readers: u32, awake: bool) -> Program {
    Program::new(readers + 1, readers + 1, move |scope| {
        let lock = scope.share(Lock::<Backed>::NEW);
        let data = scope.share(Data::new(()));
        let left = scope.share(<Check as Atomics>::U32::ZERO);
        let woken = scope.share(<Check as Atomics>::U8::ZERO);
        let words = words(lock);
        lock.write();
        scope.spawn(move || {
            words.tail.wait_while(Relaxed, |tail| tail as u16 != readers as u16);
            // The head is awake if it has not asked to be woken.
            let is_awake = words.state.compare_exchange(WRITER, 0, Release, Relaxed).is_ok();
            woken.store(u8::from(is_awake == awake), Relaxed);
            if !is_awake {
                unlock(lock);
            }
        });
        scope.spawn_each(0..readers, move |reader| {
            words.tail.wait_while(Relaxed, |tail| tail as u16 != reader as u16);
            read(lock);
            data.get();
            // Acquire: readers that have left, and are no longer counted, have set `left`
            // before.
            let inside = words.state.load(Acquire) / READER;
            let came = inside + u64::from(left.load(Relaxed));
            if reader + 1 == readers && came < readers.into() && woken.load(Relaxed) != 0 {
                probe("before another");
            }
            left.fetch_add(1, Relaxed);
            unlock_read(lock);
        });
        scope.finally(move || {
            assert_eq!(words.tail.load(Relaxed), 0, "nobody waits");
            assert_free(lock);
        });
    })
}
