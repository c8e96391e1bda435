//! Selects as futures.

use std::future::Future;

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;
use antiphon_runtime::select::{self, Lot, Source, Sources};

use super::Select;
use super::cases::{Cases, sealed};
use crate::alarm::Alarm;

/// Up to this number of cases, a wait allocates only its waker. The number is the same for threads.
const FEW: usize = 8;

impl<R, C: Cases<R>> Select<'_, R, C> {
    /// Waits like [`wait`](Self::wait), as a future: its waker stands in the same queues as threads
    /// and fibers. If it is dropped before it is ready, it has taken nothing, and passes on a
    /// signal that it has received. It can be sent to other threads if all its closures can.
    ///
    /// ```
    /// use antiphon::{Event, channel, fiber, select::Select};
    ///
    /// let (sender, receiver) = channel::bounded(1);
    /// let stop = Event::new();
    /// let next = async || {
    ///     Select::new().recv(&receiver, Result::ok).event(&stop, || None).wait_async().await
    /// };
    /// sender.send(7).unwrap();
    /// assert_eq!(fiber::block_on(next()), Some(7));
    /// stop.set();
    /// assert_eq!(fiber::block_on(next()), None);
    /// ```
    ///
    /// A future that was signalled but is not polled keeps the signal from other waiters: poll it,
    /// or drop it. Its waker is called within the call that sends, sets or cancels; the waker must
    /// neither poll nor drop the future there (executors do not).
    ///
    /// # Panics
    ///
    /// If there is nothing to wait for.
    pub fn wait_async(self) -> impl Future<Output = R> + use<R, C> {
        assert!(self.cases.count() > 0, "a select of nothing waits for ever");
        let lot = self.lot.map_or_else(|| Lot::new(Linux::random().into()), Lot::split);
        let cases = Owned(self.cases, std::marker::PhantomData);
        async move {
            let (cases, number) = select::select_polled::<Linux, _, Alarm, FEW>(cases, lot).await;
            cases.0.end(number)
        }
    }
}

/// The cases of a future, by number.
struct Owned<R, C>(C, std::marker::PhantomData<fn() -> R>);

impl<R, C: sealed::Cases<R>> Sources<Linux> for Owned<R, C> {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn source(&self, number: usize) -> &dyn Source<Linux> {
        self.0.source(number)
    }
}

/// Waits for one source, and returns it when it was taken.
pub(crate) async fn polled<S: Source<Linux>>(source: S) -> S {
    let lot = Lot::new(0);
    select::select_polled::<Linux, _, Alarm, 1>(One(source), lot).await.0.0
}

struct One<S>(S);

impl<S: Source<Linux>> Sources<Linux> for One<S> {
    fn count(&self) -> usize {
        1
    }

    fn source(&self, _: usize) -> &dyn Source<Linux> {
        &self.0
    }
}
