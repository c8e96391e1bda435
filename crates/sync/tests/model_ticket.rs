//! The ticket lock, exhaustively.

mod common;

use antiphon_check::{Check, Model};
use antiphon_sync::lock::Ticket;
use common::model::exclusion;

#[test]
fn excludes() {
    for (threads, rounds) in [(2, 1), (2, 2), (3, 1)] {
        let name = format!("ticket, {threads} threads, {rounds} rounds");
        let report = exclusion::<Ticket<Check>>(&Model::new(&name), threads, rounds);
        println!("{}", report.assert_complete());
    }
}
