//! Atomic words of the simulated machine.
//!
//! A word has its native size and holds its value in place, so that layout means what it means on
//! a real machine: two words in 64 bytes share a line. The simulator keeps all else by address.
//!
//! Each access is one step of simulated time, as [`line`](crate::line) prices it, and takes effect
//! at its end. Memory is sequentially consistent: a store waits for its line like any other write,
//! so the orderings of the seam cost and change nothing here. Finding missing ones is the model
//! checker's work.
//!
//! Outside a simulation (a test that reads a counter afterwards) accesses act at once, unpriced.

use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use antiphon_platform::{Atomic, AtomicInteger, Budget};

use crate::line::{Kind, LINE};
use crate::os::{Watch, Watched, watch};
use crate::step::access;
use crate::world::{simulated, with};

/// Defines the word of one size.
macro_rules! word {
    ($name:ident, $native:ident, $value:ty, $doc:literal) => {
        #[doc = $doc]
        #[repr(transparent)]
        #[derive(Debug)]
        pub struct $name(pub(crate) $native);

        impl $name {
            fn address(&self) -> usize {
                core::ptr::from_ref(self).addr()
            }

            /// One priced access, or an unpriced one outside a simulation. The native orderings
            /// are relaxed throughout: one host thread runs the whole simulation.
            fn apply<R>(&self, kind: Kind, effect: impl FnOnce(&$native) -> (R, bool)) -> R {
                if simulated() {
                    access(self.address(), kind, || effect(&self.0)).result
                } else {
                    effect(&self.0).0
                }
            }

            fn modify(&self, effect: impl FnOnce(&$native) -> $value) -> $value {
                self.apply(Kind::ReadModifyWrite, |word| (effect(word), true))
            }

            fn spin(
                &self,
                deadline_ns: Option<u64>,
                keep: impl Fn($value) -> bool,
            ) -> Result<$value, $value> {
                loop {
                    let seen = access(self.address(), Kind::Load, || (self.0.load(Relaxed), false));
                    if !keep(seen.result) {
                        return Ok(seen.result);
                    }
                    let watched = watch(Watch {
                        line: seen.line,
                        version: seen.version,
                        offset: (self.address() % LINE) as u8,
                        value: u64::from(seen.result),
                        deadline_ns,
                    });
                    if watched == Watched::Expired {
                        return Err(seen.result);
                    }
                }
            }
        }

        impl Atomic<$value> for $name {
            const ZERO: Self = Self($native::new(0));

            fn load(&self, _: Ordering) -> $value {
                self.apply(Kind::Load, |word| (word.load(Relaxed), false))
            }

            fn store(&self, value: $value, _: Ordering) {
                self.apply(Kind::Store, |word| (word.store(value, Relaxed), true));
            }

            fn swap(&self, value: $value, _: Ordering) -> $value {
                self.modify(|word| word.swap(value, Relaxed))
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                _: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                self.apply(Kind::ReadModifyWrite, |word| {
                    let result = word.compare_exchange(current, new, Relaxed, Relaxed);
                    (result, result.is_ok())
                })
            }

            fn wait_while(&self, _: Ordering, keep: impl Fn($value) -> bool) -> $value {
                if !simulated() {
                    let value = self.0.load(Relaxed);
                    assert!(!keep(value), "would wait for ever: no simulation runs here");
                    return value;
                }
                match self.spin(None, keep) {
                    Ok(value) | Err(value) => value,
                }
            }

            fn spin_while(
                &self,
                _: Ordering,
                budget: Budget,
                keep: impl Fn($value) -> bool,
            ) -> Result<$value, $value> {
                if !simulated() {
                    let value = self.0.load(Relaxed);
                    return if keep(value) { Err(value) } else { Ok(value) };
                }
                self.spin(Some(with(|world| world.now_ns) + u64::from(budget.ns)), keep)
            }
        }

        impl AtomicInteger<$value> for $name {
            fn fetch_add(&self, value: $value, _: Ordering) -> $value {
                self.modify(|word| word.fetch_add(value, Relaxed))
            }

            fn fetch_sub(&self, value: $value, _: Ordering) -> $value {
                self.modify(|word| word.fetch_sub(value, Relaxed))
            }

            fn fetch_or(&self, value: $value, _: Ordering) -> $value {
                self.modify(|word| word.fetch_or(value, Relaxed))
            }

            fn fetch_and(&self, value: $value, _: Ordering) -> $value {
                self.modify(|word| word.fetch_and(value, Relaxed))
            }
        }
    };
}

word!(SimU8, AtomicU8, u8, "A simulated atomic byte.");
word!(SimU16, AtomicU16, u16, "A simulated atomic half word.");
word!(SimU32, AtomicU32, u32, "A simulated atomic word.");
word!(SimU64, AtomicU64, u64, "A simulated atomic double word.");
