//! Waiting for the first of several events in a future, which leaves its waker instead of sleeping.
//!
//! - POLLED-SELECT: the waker is left after the wait was begun with all sources and they were
//!   tried, and is taken back before they are checked or left. So SELECT-1 and SELECT-2 hold
//!   whenever the future is polled, by any executor, and wherever it is dropped.

use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use antiphon_platform::{Deadline, Platform, PolledWait};
use antiphon_sync::nap;
use antiphon_sync::wait::Several;

use super::{Lot, Sources, Stand, first, sooner};

/// An alarm that wakes at a deadline, until it is dropped.
pub trait Alarm<P: Platform>: Sized + Send {
    /// Creates an alarm for that deadline.
    fn new(deadline: Deadline, waker: Waker) -> Self;
}

/// Like [`select`](super::select), as a future. It returns the sources, one of which has been
/// taken, and the number of that one. If it is dropped before it is ready, nothing is taken. Up to
/// `N` sources are waited for without an allocation, apart from those of wakers.
pub async fn select_polled<P, S, A, const N: usize>(sources: S, lot: Lot) -> (S, usize)
where
    P: PolledWait,
    S: Sources<P>,
    A: Alarm<P>,
{
    let count = sources.count();
    let (mut few, mut many) = ([0; N], Vec::new());
    let order = some_of(&mut few, &mut many, count, || 0);
    order.iter_mut().enumerate().for_each(|(number, at)| *at = number);
    if let Some(found) = first(order, &lot, |number| sources.source(number).try_take()) {
        return (sources, found);
    }
    let deadlines = (0..count).filter_map(|number| sources.source(number).deadline());
    let until = deadlines.fold(None, sooner::<P>);
    loop {
        let found = 'wait: {
            // No reference to a value that is not `Sync` is kept across an await.
            let several = Several::<P>::new();
            let (mut few, mut many) = ([const { None }; N], Vec::new());
            let stands = some_of(&mut few, &mut many, count, || None);
            let had = first(order, &lot, |number| {
                stands[number] = sources.source(number).stand(&several);
                stands[number].is_none()
            });
            let had = had.or_else(|| take(&sources, stands, order, &lot));
            if had.is_some() {
                break 'wait had;
            }
            while !stands.iter_mut().flatten().any(Stand::look) {
                let waker = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
                let timed = until.map(|until| (until, waker.clone()));
                let Some(left) = several.leave_waker(waker) else { continue };
                let _alarm = timed.map(|(until, waker)| A::new(until, waker));
                pending().await;
                // If no thread notifies the waiter, it checks by itself.
                if !left.is_told() || nap::passed::<P>(until) {
                    break;
                }
            }
            take(&sources, stands, order, &lot)
        };
        if let Some(found) = found {
            return (sources, found);
        }
    }
}

/// SELECT-2: takes a source that is ready, or that came with its notification.
fn take<P: Platform>(
    sources: &impl Sources<P>,
    stands: &mut [Option<Stand<'_, P>>],
    order: &mut [usize],
    lot: &Lot,
) -> Option<usize> {
    first(order, lot, |number| {
        let had = stands[number].as_mut().is_some_and(Stand::use_up);
        had || sources.source(number).try_take()
    })
}

/// Returns `count` elements of `few`, or of `many` if there are not enough.
fn some_of<'a, T>(
    few: &'a mut [T],
    many: &'a mut Vec<T>,
    count: usize,
    other: impl FnMut() -> T,
) -> &'a mut [T] {
    if count <= few.len() {
        return &mut few[..count];
    }
    many.resize_with(count, other);
    many
}

/// A future that is ready at its second poll.
async fn pending() {
    let mut polled = false;
    poll_fn(
        |_| if core::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}
