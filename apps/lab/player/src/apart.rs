//! Pictures that are shown by a different thread from the one that decodes.
//!
//! For loops whose timers run in a separate thread: a decoded picture is handed over, and comes
//! back after it was shown.
//!
//! ```text
//!   the loop's thread      decoded ──► keep            kept ──► counted, freed
//!                                       │                ▲
//!   the timers' thread                  └─ due ► show ───┘
//! ```

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::picture::{Kept, Picture, Screen};

/// Runs closures at given times, in a separate thread.
pub trait Aside {
    /// Calls `run` at `release_ns`, in nanoseconds of the loop's clock, with the tardiness of the
    /// call. Calls come in the order of their times. Does not block.
    fn submit(&self, release_ns: u64, run: Box<dyn FnOnce(u64) + Send>);
}

/// A screen on which another thread shows pictures.
pub struct Apart<S> {
    /// Only the other thread holds it while pictures are shown, so no thread waits for the mutex.
    screen: Arc<Mutex<S>>,
    aside: Box<dyn Aside>,
    tell: Sender<Kept>,
    told: Receiver<Kept>,
}

/// A picture that is returned even if its screen panics.
struct Returns {
    tell: Sender<Kept>,
    kept: Option<Kept>,
}

impl<S: Screen + Send + 'static> Apart<S> {
    /// A screen on which `aside` shows the pictures.
    pub fn new(screen: S, aside: Box<dyn Aside>) -> Self {
        let (tell, told) = channel();
        Self { screen: Arc::new(Mutex::new(screen)), aside, tell, told }
    }

    /// The screen, unless the other thread is using it now.
    fn look(&self) -> Option<MutexGuard<'_, S>> {
        match self.screen.try_lock() {
            Ok(screen) => Some(screen),
            Err(TryLockError::Poisoned(screen)) => Some(screen.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<S: Screen + Send + 'static> Screen for Apart<S> {
    fn show(&mut self, picture: &Picture, number: usize) {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner).show(picture, number);
    }

    fn is_closed(&self) -> bool {
        self.look().is_some_and(|screen| screen.is_closed())
    }

    fn fault(&self) -> Option<String> {
        self.look()?.fault()
    }

    fn keep(&mut self, id: u64, picture: Picture, number: usize, due_ns: u64) -> Option<Picture> {
        let (screen, tell) = (Arc::clone(&self.screen), self.tell.clone());
        let show = move |late_ns| {
            let returns = Returns { tell, kept: Some(Kept { id, late_ns, picture }) };
            if let Some(kept) = &returns.kept {
                let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
                screen.show(&kept.picture, number);
            }
        };
        self.aside.submit(due_ns, Box::new(show));
        None
    }

    fn kept(&mut self) -> Option<Kept> {
        self.told.try_recv().ok()
    }
}

impl Drop for Returns {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            // A failure means that the player has gone, and needs no picture.
            let _ = self.tell.send(kept);
        }
    }
}
