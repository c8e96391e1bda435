//! The peer in Go, which is a program of its own.

use super::cases::{Case, Depths};
use super::measure::Order;
use crate::bench::pools::figures::Figures;
use crate::bench::pools::go;
use crate::bench::rounds::Outcome;
use crate::named::Named as _;

/// Its name.
pub const NAME: &str = "go";
/// Source of the program.
pub const SOURCE: &str = include_str!("options.go");

/// Runs the program for one repetition.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let Depths { short, long, long_share } = order.cell.depths;
    let rate = if order.cell.case == Case::Open { order.rate } else { 0.0 };
    let arguments = [
        format!("-chains={}", order.chains),
        format!("-spawners={}", order.cell.spawners),
        format!("-kernel={}", order.cell.kernel.name()),
        format!("-depth={short}"),
        format!("-long_depth={long}"),
        format!("-long_share={long_share}"),
        format!("-strike={}", order.strike),
        format!("-rate={rate}"),
        format!("-seed={}", order.seed),
    ];
    go::measure(&order.go, order.cell.workers, &arguments)
}
