//! Readable traces of executions.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::execution::Execution;
use crate::graph::{Event, Kind, What};

/// The largest number of lines of a trace.
const LINES: usize = 400;

impl Execution {
    /// A hash of each event's kind, source and predecessors, independent of the order of the run.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut events = self.graph.events.clone();
        events.sort_unstable_by_key(|event| event.id);
        let mut hasher = DefaultHasher::new();
        for event in &events {
            (event.id, event.from, event.forced).hash(&mut hasher);
            match event.kind {
                // Words are numbered in the order of their first access, so they are named by the
                // thread that accessed them first.
                Kind::Read | Kind::Write => {
                    let same =
                        |other: &&Event| other.is_access() && other.location == event.location;
                    let earlier = |other: &&Event| other.is_write() && other.rank < event.rank;
                    events.iter().find(same).map(|first| first.id).hash(&mut hasher);
                    events.iter().filter(same).filter(earlier).count().hash(&mut hasher);
                }
                _ => event.value.hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// One line per step, in an order in which the events can have taken place.
    pub(crate) fn trace(&self) -> String {
        let mut rows =
            vec![["event", "operation", "word", "value", "order", "notes"].map(str::to_owned)];
        let (first, last) = (LINES / 4, LINES - LINES / 4);
        for (step, &stamp) in self.order.iter().enumerate() {
            if self.order.len() <= LINES || step < first || step + last >= self.order.len() {
                rows.push(self.row(&self.graph.events[stamp as usize]));
            } else if step == first {
                let left_out = format!("... {} more ...", self.order.len() - LINES);
                rows.push(["", &left_out, "", "", "", ""].map(str::to_owned));
            }
        }
        let mut widths = [0; 6];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.len());
            }
        }
        let mut text = String::new();
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                // Writing to a string can't fail.
                let _ = write!(line, "{cell:width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn row(&self, event: &Event) -> [String; 6] {
        let id = event.id.to_string();
        let order = format!("{:?}", event.order).to_lowercase();
        let plain = |what: &str| {
            [
                id.clone(),
                what.to_owned(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]
        };
        match event.kind {
            Kind::Start => plain("setup done"),
            Kind::Timeout => plain("timed out (nothing else could happen)"),
            Kind::Heavy => plain("heavy fence"),
            Kind::Light => plain("light fence"),
            Kind::Fence => {
                let mut row = plain("fence");
                row[4] = order;
                row
            }
            Kind::Choice(what) => {
                let mut row = plain(match what {
                    What::Park => "park: wait / wake for no reason / time out",
                    What::Crowded => "crowded?",
                    What::Move => "socket moves by",
                    What::Heavy => "heavy fence refused?",
                    What::Ahead => "counter ahead by",
                    What::Wake => "wakes one, of those left",
                    What::Model => "choice",
                });
                row[3] = event.value.to_string();
                row
            }
            Kind::Read | Kind::Write => {
                let label = self.label(event.location);
                let value = format!("{:#x}", event.value);
                let (what, notes) = if event.is_read() {
                    ("read", self.notes(event))
                } else if self.latest(event.location) == event.id {
                    ("write", "latest".to_owned())
                } else {
                    ("write", format!("number {}", event.rank))
                };
                let what = match (event.section, event.exclusive) {
                    (true, _) => format!("{what} (store_unless)"),
                    (_, true) => format!("{what} (rmw)"),
                    _ => what.to_owned(),
                };
                [id, what, label, value, order, notes]
            }
        }
    }

    fn notes(&self, read: &Event) -> String {
        let mut notes = match read.from {
            crate::clock::Id::INIT => "initial".to_owned(),
            from => format!("from {from}"),
        };
        if read.forced {
            notes.push_str(", gave up (nothing else could happen)");
        }
        notes
    }
}
