//! Shadows: old values of words with pending stores, which other threads still see.
//!
//! The word in memory holds the new value from the moment at which the store is posted. Until its
//! line has arrived, all other threads see the *shadow*: the old value. So memory is never written
//! later, when a thread may have moved or freed it, and a pending store needs no pointer.
//!
//! - SHADOW-1: only one thread at a time has pending stores to a word. A store of another thread to
//!   it waits for its line, as on a machine without buffers; until then all other threads write to
//!   the shadow.
//! - SHADOW-2: the last of the thread's stores to the word removes the shadow, and all threads then
//!   see the value in memory.

/// One word of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shadow {
    /// The offset of the word in the line.
    pub(crate) offset: u8,
    /// The thread with pending stores to it.
    pub(crate) by: u32,
    /// Number of its pending stores.
    pub(crate) stores: u32,
    /// The value that all other threads see.
    pub(crate) visible: u64,
}

/// The value of the word at `offset` that `thread` sees, if it differs from memory.
pub(crate) fn seen(shadows: &mut [Shadow], offset: u8, thread: usize) -> Option<&mut u64> {
    let of_another = |shadow: &&mut Shadow| shadow.offset == offset && shadow.by != thread as u32;
    shadows.iter_mut().find(of_another).map(|shadow| &mut shadow.visible)
}

/// Returns whether `thread` has pending stores to the word at `offset`.
pub(crate) fn is_of(shadows: &[Shadow], offset: u8, thread: usize) -> bool {
    shadows.iter().any(|shadow| shadow.offset == offset && shadow.by == thread as u32)
}

/// Notes that `thread` has posted a store to the word at `offset`, which held `before`.
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

/// Completes a store of `value` to the word at `offset`.
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
