//! The call of one callback, and of the posts before it.

use super::agenda::Taken;
use super::context::{Context, Current};
use super::inbox::Post;
use super::stats::{Ran, Trouble};
use super::step::Step;
use super::{EventLoop, Wait};

impl<W: Wait> EventLoop<W> {
    /// Calls an event, and puts it back where it is called next.
    pub(super) fn call(&mut self, taken: Taken<W>) {
        let Taken { id, mut entry, release_ns } = taken;
        self.goes_on_with(Some(id));
        let (kind, begun_ns) = (entry.kind, self.now_ns);
        self.current = Some(Current {
            id,
            release_ns,
            importance: entry.importance,
            begun_ns,
            cancelled: false,
            woken: false,
            has_source: entry.has_source,
        });
        let behind =
            release_ns.and_then(|at_ns| self.kinds.begins(kind, at_ns, begun_ns, &self.options));
        self.shared.sight.begin(kind, begun_ns);
        let ready = core::mem::take(&mut entry.ready);
        let step = entry.callback.call(&mut Context { events: self, ready });
        self.now_ns = W::now_ns();
        self.shared.sight.end();
        let ran =
            Ran { kind, ns: self.now_ns.saturating_sub(begun_ns), is_timer: release_ns.is_some() };
        let long = self.kinds.ends(ran, &self.options);
        [behind, long].into_iter().flatten().for_each(|trouble| self.tell(trouble));
        let Some(current) = self.current.take() else { return };
        entry.importance = current.importance;
        if step == Step::Done || current.cancelled && entry.callback.cancel() {
            if entry.has_source {
                self.end_source(id);
            }
            self.publish();
            // Last: the drop may run any code.
            drop(entry);
            return;
        }
        self.agenda.put_back(id, entry, step);
        if current.woken {
            self.agenda.wake(id, None);
        }
        self.publish();
    }

    #[cold]
    fn tell(&mut self, trouble: Trouble) {
        if let Some(tell) = &mut self.trouble {
            tell(trouble);
        }
    }

    /// Processes the posts of other threads.
    #[inline]
    pub(super) fn take_in(&mut self) {
        if self.shared.any() || !self.posts.is_empty() {
            self.take_posts();
        }
    }

    #[cold]
    fn take_posts(&mut self) {
        if self.posts.is_empty() {
            self.shared.take(&mut self.posts);
            self.posts.reverse();
        }
        // One by one: a drop may panic, and the remaining posts are then kept for the next call.
        while let Some(post) = self.posts.pop() {
            match post {
                Post::Submit { id, due, name, entry } => self.put_in(id, due, name, entry),
                Post::Cancel(id) => match &mut self.current {
                    Some(current) if current.id == id => current.cancelled = true,
                    _ => drop(self.forget(id)),
                },
                Post::Wake { id, importance } => match &mut self.current {
                    // The importance is set by its callback, which has not returned yet.
                    Some(current) if current.id == id => current.woken = true,
                    _ => _ = self.agenda.wake(id, importance),
                },
                Post::Stop => self.stopped = true,
            }
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn first_importance(&self) -> Option<u64> {
        self.agenda.importance()
    }

    pub(super) fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// Sets the importance with which the present event is woken next.
    pub(super) fn set_importance(&mut self, importance: u64) {
        if let Some(current) = &mut self.current {
            current.importance = importance;
        }
    }
}
