//! The peer in Go, which is a program of its own.

use super::cases::Case;
use super::measure::Order;
use crate::bench::pools::figures::Figures;
use crate::bench::pools::go;
use crate::bench::rounds::Outcome;
use crate::named::Named as _;

/// Its name.
pub const NAME: &str = "go";
/// Source of the program.
pub const SOURCE: &str = include_str!("packets.go");

/// Runs the program for one repetition.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    let case = order.cell.case;
    if matches!(case, Case::Ramp | Case::Trace) {
        return Ok(Outcome::Missing(format!("the program in Go has no case {case}")));
    }
    let rate = if case == Case::Open { order.rate } else { 0.0 };
    let heavier_ns = if case == Case::Heavier { 500 } else { 0 };
    let heavy = order.cell.heavy.map_or_else(String::new, |heavy| heavy.name());
    let arguments = [
        format!("-packets={}", order.packets),
        format!("-spawners={}", case.spawners()),
        format!("-chain={}", case.chain()),
        format!("-heavier_ns={heavier_ns}"),
        format!("-heavy={heavy}"),
        format!("-rate={rate}"),
        format!("-form={}", order.cell.form.name()),
        format!("-copies={}", order.cell.copies.name()),
        format!("-seed={}", order.seed),
    ];
    go::measure(&order.go, order.cell.workers, &arguments)
}
