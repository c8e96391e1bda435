//! Policies by name, for settings and for bindings to other languages.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use antiphon_platform::Platform;

use super::boxed::BoxedPolicy;
use super::order::{Adaptive, Fifo, Lifo, Order, Reverse, Stochastic, Switch};
use super::scheme::{InBlocks, Scheme};
use super::slot::LifoSlot;
use super::spread::{Neighbours, Share, Spread, Steal};

/// The error for a name that no policy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPolicy(String);

/// The age from which on the adaptive order does not pass over a task, in nanoseconds.
const AGE_NS: u64 = 1_000_000;

/// The policy named `order/spread`, or `order/spread/blocks`; without `/spread` it is `steal-half`.
///
/// | order | |
/// |---|---|
/// | `fifo`, `lifo` | [`Fifo`], [`Lifo`] |
/// | `stochastic-N` | [`Stochastic`]: the first in `N` of 256 cases; without `-N`, in 64 |
/// | `switch-N`, `reverse-N` | [`Switch`], [`Reverse`] at each `N` tasks; without `-N`, 16 and 8 |
/// | `adaptive` | [`Adaptive`]: `lifo` until some have waited for a millisecond |
/// | `lifo-slot` | [`LifoSlot`] |
///
/// | spread | |
/// |---|---|
/// | `steal-half`, `steal-one` | [`Steal`] |
/// | `neighbours-N` | [`Neighbours`] of the range `N`, half |
///
/// With `/blocks`, a worker's queue is [`InBlocks`], and otherwise a deque; `lifo-slot` has no such
/// variant.
impl<P: Platform> FromStr for BoxedPolicy<P> {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let (scheme, queues) = match name.strip_suffix("/blocks") {
            Some(scheme) => (scheme, Some(InBlocks::<16>::default())),
            None => (name, None),
        };
        let (order, spread) = scheme.split_once('/').unwrap_or((scheme, "steal-half"));
        let found = match spread {
            "steal-half" => of(order, Steal { share: Share::Half }, queues),
            "steal-one" => of(order, Steal { share: Share::One }, queues),
            _ => range(spread)
                .and_then(|range| of(order, Neighbours { range, share: Share::Half }, queues)),
        };
        found.ok_or_else(|| UnknownPolicy(name.to_string()))
    }
}

fn range(spread: &str) -> Option<usize> {
    positive(spread.strip_prefix("neighbours-")?)
}

/// Parses a dash and a number from 1 on; returns `usual` if there is neither.
fn number<N: FromStr + Default + PartialEq>(rest: &str, usual: N) -> Option<N> {
    if rest.is_empty() { Some(usual) } else { positive(rest.strip_prefix('-')?) }
}

/// Parses a number from 1 on, of digits only.
fn positive<N: FromStr + Default + PartialEq>(digits: &str) -> Option<N> {
    let digits = Some(digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok().filter(|number| *number != N::default())
}

fn of<P, S>(order: &str, spread: S, queues: Option<InBlocks>) -> Option<BoxedPolicy<P>>
where
    P: Platform,
    S: Spread + 'static,
{
    let rest = |name| order.strip_prefix(name);
    Some(match order {
        "fifo" => scheme(Fifo, spread, queues),
        "lifo" => scheme(Lifo, spread, queues),
        "adaptive" => scheme(Adaptive { age_ns: AGE_NS }, spread, queues),
        "lifo-slot" if queues.is_none() => BoxedPolicy::new(LifoSlot::new(spread)),
        _ => {
            if let Some(rest) = rest("stochastic") {
                scheme(Stochastic { first: number(rest, 64)? }, spread, queues)
            } else if let Some(rest) = rest("switch") {
                scheme(Switch { every: number(rest, 16)? }, spread, queues)
            } else {
                scheme(Reverse { every: number(rest("reverse")?, 8)? }, spread, queues)
            }
        }
    })
}

fn scheme<P: Platform, O, S>(order: O, spread: S, queues: Option<InBlocks>) -> BoxedPolicy<P>
where
    O: Order + 'static,
    S: Spread + 'static,
{
    let scheme = Scheme::new(order, spread);
    match queues {
        Some(blocks) => BoxedPolicy::new(scheme.queues(blocks)),
        None => BoxedPolicy::new(scheme),
    }
}

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no policy {:?}: an order (fifo, lifo, lifo-slot, adaptive, stochastic, \
             switch, reverse), after a / perhaps a spread (steal-half, steal-one, neighbours-13), \
             and after another perhaps blocks, but of lifo-slot",
            self.0
        )
    }
}

impl core::error::Error for UnknownPolicy {}

#[cfg(test)]
mod tests {
    use antiphon_linux::Linux;

    use super::*;

    #[test]
    fn each_order_goes_with_each_spread() {
        let plain = ["fifo", "lifo", "adaptive", "lifo-slot", "stochastic", "switch", "reverse"];
        let numbered = ["stochastic-64", "switch-16", "reverse-8"];
        for order in plain.into_iter().chain(numbered) {
            assert!(order.parse::<BoxedPolicy<Linux>>().is_ok());
            for spread in ["steal-half", "steal-one", "neighbours-13"] {
                let name = alloc::format!("{order}/{spread}");
                assert!(name.parse::<BoxedPolicy<Linux>>().is_ok());
                let blocks = (name + "/blocks").parse::<BoxedPolicy<Linux>>();
                assert_eq!(blocks.is_ok(), order != "lifo-slot", "{order}");
            }
        }
    }

    #[test]
    fn an_unknown_name_says_what_would_be_right() {
        let orders = ["", "filo", "fifo-2", "reverses"];
        let numbers = ["switch-0", "switch-x", "switch-+5", "switch--5", "stochastic-256"];
        let spreads = ["/", "fifo/", "fifo/steal", "lifo/fifo/x", "/blocks"];
        let ranges = ["fifo/neighbours-0", "fifo/neighbours-+5", "fifo/neighbours-"];
        let names = orders.into_iter().chain(numbers).chain(spreads).chain(ranges);
        for name in names {
            let told = name.parse::<BoxedPolicy<Linux>>().map(drop).unwrap_err().to_string();
            assert!(told.contains(name) && told.contains("steal-half"), "{told}");
        }
    }
}
