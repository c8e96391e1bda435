//! Atomic words of the checker.
//!
//! A word stores no value: only its size and address matter, and the execution holds its history.
//! So a `static` lock works, and nothing of one execution remains in the next. A word must not move
//! between its first use in an execution and its drop.

use std::sync::atomic::Ordering;

use antiphon_platform::{Atomic, AtomicInteger, Budget};

use crate::context;
use crate::op::Op;
use crate::platform;

fn new_value(address: usize, order: Ordering, new: &dyn Fn(u64) -> u64) -> u64 {
    modify(address, order, Ordering::Relaxed, &|old| Some(new(old))).unwrap_or_else(|old| old)
}

fn modify(
    address: usize,
    success: Ordering,
    failure: Ordering,
    new: &dyn Fn(u64) -> Option<u64>,
) -> Result<u64, u64> {
    allowed(success);
    allowed(failure);
    if platform::is_private(address) {
        return context::with(|execution| {
            let word = execution.private.entry(address).or_default();
            let old = *word;
            new(old).map(|new| *word = new).map(|()| old).ok_or(old)
        });
    }
    let outcome = context::perform(&Op::Modify { address, success, failure, new });
    if outcome.ok { Ok(outcome.value) } else { Err(outcome.value) }
}

fn allowed(order: Ordering) {
    assert!(
        order != Ordering::SeqCst,
        "sequentially consistent accesses are not part of the platform: use a fence"
    );
}

macro_rules! word {
    ($name:ident, $int:ty, $storage:ty) => {
        /// An atomic word whose accesses are enumerated.
        #[repr(transparent)]
        #[derive(Debug)]
        pub struct $name {
            // Interior mutability, so that each word has a different address. Never read or
            // written.
            _storage: $storage,
        }

        impl $name {
            fn address(&self) -> usize {
                std::ptr::from_ref(self).addr()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                let address = self.address();
                // Outside a model there is nothing to forget.
                let _ = context::try_with(|execution| {
                    execution.locations.forget(address);
                    execution.private.remove(&address);
                });
            }
        }

        impl Atomic<$int> for $name {
            #[allow(clippy::declare_interior_mutable_const)]
            const ZERO: Self = Self { _storage: <$storage>::new(0) };

            fn load(&self, order: Ordering) -> $int {
                allowed(order);
                let address = self.address();
                if platform::is_private(address) {
                    return context::with(|execution| {
                        execution.private.get(&address).copied().unwrap_or(0)
                    }) as $int;
                }
                context::perform(&Op::Load { address, order }).value as $int
            }

            fn store(&self, value: $int, order: Ordering) {
                allowed(order);
                let (address, value) = (self.address(), u64::from(value));
                if platform::is_private(address) {
                    context::with(|execution| execution.private.insert(address, value));
                    return;
                }
                context::perform(&Op::Store { address, value, order });
            }

            fn swap(&self, value: $int, order: Ordering) -> $int {
                new_value(self.address(), order, &|_| u64::from(value)) as $int
            }

            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                let (current, new) = (u64::from(current), u64::from(new));
                let new = |old| (old == current).then_some(new);
                modify(self.address(), success, failure, &new)
                    .map(|old| old as $int)
                    .map_err(|old| old as $int)
            }

            fn wait_while(&self, order: Ordering, keep: impl Fn($int) -> bool) -> $int {
                allowed(order);
                let keep = |value| keep(value as $int);
                let op = Op::Await { address: self.address(), order, keep: &keep };
                context::perform(&op).value as $int
            }

            fn spin_while(
                &self,
                order: Ordering,
                budget: Budget,
                keep: impl Fn($int) -> bool,
            ) -> Result<$int, $int> {
                allowed(order);
                let keep = |value| keep(value as $int);
                let op =
                    Op::Spin { address: self.address(), order, budget_ns: budget.ns, keep: &keep };
                let outcome = context::perform(&op);
                let value = outcome.value as $int;
                if outcome.ok { Ok(value) } else { Err(value) }
            }
        }

        impl AtomicInteger<$int> for $name {
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                let add = |old| u64::from((old as $int).wrapping_add(value));
                new_value(self.address(), order, &add) as $int
            }

            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                let sub = |old| u64::from((old as $int).wrapping_sub(value));
                new_value(self.address(), order, &sub) as $int
            }

            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                new_value(self.address(), order, &|old| old | u64::from(value)) as $int
            }

            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                new_value(self.address(), order, &|old| old & u64::from(value)) as $int
            }
        }
    };
}

word!(U8, u8, std::sync::atomic::AtomicU8);
word!(U16, u16, std::sync::atomic::AtomicU16);
word!(U32, u32, std::sync::atomic::AtomicU32);
word!(U64, u64, std::sync::atomic::AtomicU64);
