//! The old value of a word that a thread has stored to, which others still see.
//!
//! The word in memory holds what the thread stored, from the moment at which the store is posted.
//! Until its line has come, all other threads are shown the *shadow*: what was there before. So no
//! address is ever written to behind the back of a thread that may move or free it, and a store
//! that is under way needs no pointer.
//!
//! - SHADOW-1: only one thread at a time has stores to a word under way. Another one's store to it
//!   waits for its line, as it would on a machine without buffers; in the meantime what it and all
//!   others write is written to the shadow.
//! - SHADOW-2: the last of the thread's stores to the word removes the shadow, and all threads then
//!   see what is in memory.

/// One word of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shadow {
    /// Where in the line the word is.
    pub(crate) offset: u8,
    /// The thread that has stored to it.
    pub(crate) by: u32,
    /// How many of its stores are under way.
    pub(crate) stores: u32,
    /// The value that all others see.
    pub(crate) visible: u64,
}

/// The value of the word at `offset` that `thread` sees, if it differs from memory.
pub(crate) fn seen(shadows: &mut [Shadow], offset: u8, thread: usize) -> Option<&mut u64> {
    let of_another = |shadow: &&mut Shadow| shadow.offset == offset && shadow.by != thread as u32;
    shadows.iter_mut().find(of_another).map(|shadow| &mut shadow.visible)
}

/// Whether `thread` has stores to the word at `offset` under way.
pub(crate) fn is_of(shadows: &[Shadow], offset: u8, thread: usize) -> bool {
    shadows.iter().any(|shadow| shadow.offset == offset && shadow.by == thread as u32)
}

/// `thread` has posted a store to the word at `offset`, which held `before`.
pub(crate) fn post(shadows: &mut Vec<Shadow>, offset: u8, thread: usize, before: u64) {
    match shadows.iter_mut().find(|shadow| shadow.offset == offset) {
        Some(shadow) => {
            assert_eq!(shadow.by, thread as u32, "SHADOW-1");
            shadow.stores += 1;
        }
        None => {
            let by = thread as u32;
            shadows.push(Shadow { offset, by, stores: 1, visible: before });
        }
    }
}

/// A store of `value` to the word at `offset` is done.
pub(crate) fn commit(shadows: &mut Vec<Shadow>, offset: u8, value: u64) {
    let place = shadows.iter().position(|shadow| shadow.offset == offset);
    let place = place.expect("SHADOW-2: posted, and not done before");
    let shadow = &mut shadows[place];
    shadow.visible = value;
    shadow.stores -= 1;
    if shadow.stores == 0 {
        shadows.swap_remove(place);
    }
}
