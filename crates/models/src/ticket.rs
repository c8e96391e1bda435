//! The ticket lock, exhaustively.

use antiphon_check::Check;
use antiphon_sync::lock::Ticket;

use crate::bounds::Bounds;
use crate::entry::Entry;
use crate::program::exclusion;

type Lock = Ticket<Check>;

pub fn entries() -> Vec<Entry> {
    let any = Bounds::PLAIN.spurious(1).timeouts(1).expiries(1).crowded(1);
    vec![
        Entry::new("ticket/excludes-2x1", exclusion::<Lock>(2, 1), any),
        Entry::new("ticket/excludes-2x2", exclusion::<Lock>(2, 2), any),
        Entry::new("ticket/excludes-3x1", exclusion::<Lock>(3, 1), any),
    ]
}
