//! The loop on a virtual clock, which advances only when a test says so.

mod lingers;
mod lots;
mod order;
mod others;
mod polls;
mod reports;
mod tasks;

use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Release};
use std::thread_local;

use antiphon_linux::Linux;

use super::{Context, EventLoop, Options, Ring, Wait};

thread_local! {
    pub(super) static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

/// Advances the time.
pub(super) fn pass(ns: u64) {
    NOW_NS.set(NOW_NS.get() + ns);
}

/// A clock, and sources that report scripted events when they are due.
#[derive(Default)]
pub(super) struct Virtual {
    rung: Arc<AtomicBool>,
    /// When it is due, its source, and the source's report.
    script: Rc<RefCell<Vec<(u64, u8, u8)>>>,
    /// The keys of sources.
    sources: Rc<RefCell<Vec<(u8, u64)>>>,
}

impl Virtual {
    fn say(&self, tell: &mut dyn FnMut(u64, u8)) -> bool {
        let mut said = false;
        self.script.borrow_mut().retain(|(at, source, ready)| {
            let due = *at <= NOW_NS.get();
            let sources = self.sources.borrow();
            let mut keys = sources.iter().filter(|(number, _)| number == source);
            if let (true, Some((_, key))) = (due, keys.next()) {
                tell(*key, *ready);
                said = true;
            }
            !due
        });
        said
    }
}

impl Wait for Virtual {
    type Platform = Linux;
    type Source = u8;
    type Ready = u8;
    type Error = &'static str;

    fn now_ns() -> u64 {
        NOW_NS.get()
    }

    fn wait(&mut self, until_ns: Option<u64>, tell: &mut dyn FnMut(u64, u8)) {
        // Acquire: the earlier posts; pairs with the release in `ring`.
        if self.say(tell) || self.rung.swap(false, Acquire) {
            return;
        }
        let said_ns = self.script.borrow().iter().map(|(at, ..)| *at).min();
        match until_ns.into_iter().chain(said_ns).min() {
            Some(at) => NOW_NS.set(NOW_NS.get().max(at)),
            None => {
                while !self.rung.swap(false, Acquire) {
                    std::thread::yield_now();
                }
            }
        }
        self.say(tell);
    }

    fn ring(&self) -> Ring {
        let rung = self.rung.clone();
        Arc::new(move || rung.store(true, Release))
    }

    fn add(&mut self, source: u8, key: u64) -> Result<(), &'static str> {
        if source == u8::MAX {
            return Err("no such source");
        }
        self.sources.borrow_mut().push((source, key));
        Ok(())
    }

    fn remove(&mut self, key: u64) {
        self.sources.borrow_mut().retain(|(_, known)| *known != key);
    }
}

pub(super) fn events() -> EventLoop<Virtual> {
    NOW_NS.set(0);
    EventLoop::new(Virtual::default(), Options::default())
}

/// The names of the called events, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    pub(super) fn note(&self, what: &'static str) {
        self.0.borrow_mut().push(what);
    }

    /// A callback that records `what`.
    pub(super) fn noting(
        &self,
        what: &'static str,
    ) -> impl FnOnce(&mut Context<'_, Virtual>) + use<> {
        let log = self.clone();
        move |_| log.note(what)
    }

    pub(super) fn taken(&self) -> Vec<&'static str> {
        self.0.take()
    }
}
