//! The locks of a report by class: those of one kind that have the same variable, or were
//! initialised by the same call.

use std::collections::BTreeMap;

use antiphon_record::{Histogram, Kind};
use antiphon_report::table::shortened;
use serde_json::{Value, json};

use super::home::Home;
use super::rows::LockRow;

/// The locks of one class.
#[derive(Clone, Debug)]
pub struct Class {
    /// The name of the class.
    pub name: String,
    /// What names its locks: of several, the first.
    pub home: Home,
    /// The noun of the kind; a readers-writer lock has one for both ways to take it.
    pub kind: &'static str,
    /// Number of locks.
    pub locks: usize,
    /// Number of acquisitions; without a profile, of those after a wait.
    pub acquisitions: u64,
    /// Number of waits.
    pub contended: u64,
    /// Histogram of the waits.
    pub wait: Histogram,
    /// Histogram of the holds; empty without a profile.
    pub hold: Histogram,
}

/// Letters of a class in a table.
const LETTERS: usize = 58;

impl Class {
    /// The name, for a row of a table.
    pub fn label(&self) -> String {
        shortened(&self.name, LETTERS)
    }

    fn json(&self, profile: bool) -> Value {
        json!({
            "name": self.name, "home": self.home.json(), "kind": self.kind, "locks": self.locks,
            "acquisitions": profile.then_some(self.acquisitions), "contended": self.contended,
            "wait_ns_sum": self.wait.sum_ns, "hold_ns_sum": profile.then_some(self.hold.sum_ns),
        })
    }
}

/// The process and the address of a lock.
type Lock = (u32, u64);

/// The classes of the locks of a report's rows, the longest waited for first.
pub fn classes(rows: &[LockRow]) -> Vec<Class> {
    let mut classes: BTreeMap<(String, &str), (Class, Vec<Lock>)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind != Kind::Condition.name() && row.address != 0) {
        let kind = match row.kind {
            "rdlock" | "wrlock" => "rwlock",
            kind => kind,
        };
        let name = row.home.class();
        let lock = (row.pid, row.address);
        let (class, locks) = classes.entry((name.clone(), kind)).or_insert_with(|| {
            let class = Class {
                name,
                home: row.home.clone(),
                kind,
                locks: 0,
                acquisitions: 0,
                contended: 0,
                wait: Histogram::default(),
                hold: Histogram::default(),
            };
            (class, Vec::new())
        });
        locks.push(lock);
        class.acquisitions += row.acquisitions;
        class.contended += row.contended;
        class.wait.add(&row.wait);
        class.hold.add(&row.hold);
    }
    let count = |(mut class, mut locks): (Class, Vec<_>)| {
        locks.sort_unstable();
        locks.dedup();
        class.locks = locks.len();
        class
    };
    let mut classes: Vec<_> = classes.into_values().map(count).collect();
    classes.sort_by_key(|class| std::cmp::Reverse((class.wait.sum_ns, class.acquisitions)));
    classes
}

/// The value of `classes` in a JSON report.
pub fn json(rows: &[LockRow], profile: bool) -> Value {
    classes(rows).iter().map(|class| class.json(profile)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::CallSite;

    fn row(home: Home, kind: &'static str, address: u64, waited_ns: u64) -> LockRow {
        let mut wait = Histogram::default();
        wait.count_one(waited_ns);
        LockRow {
            site: CallSite::named("put+0x1 (p)"),
            home,
            kind,
            address,
            pid: 1,
            locks: 1,
            acquisitions: 2,
            contended: 1,
            gave_up: 0,
            refused: 0,
            still_waiting: 0,
            wait,
            hold: Histogram::default(),
        }
    }

    #[test]
    fn elements_of_an_array_and_locks_of_one_constructor_are_one_class() {
        let made = || Home::Initialised(CallSite::named("make+0x1 (p)"));
        let element = |at: &str| Home::Variable(format!("locks{at}"));
        let rows = [
            row(element(""), "mutex", 64, 10),
            row(element("+0x28"), "mutex", 104, 10),
            row(made(), "mutex", 1 << 20, 1000),
            row(made(), "mutex", 1 << 21, 1000),
            // The same lock from another call site.
            row(made(), "mutex", 1 << 21, 1000),
            row(made(), "rdlock", 1 << 22, 1),
            row(made(), "wrlock", 1 << 22, 1),
        ];
        let classes = classes(&rows);
        let seen: Vec<_> =
            classes.iter().map(|it| (&*it.name, it.kind, it.locks, it.contended)).collect();
        let made = "initialised at make+0x1 (p)";
        let want = [(made, "mutex", 2, 3), ("locks", "mutex", 2, 2), (made, "rwlock", 1, 2)];
        assert_eq!(seen, want);
        assert_eq!(json(&rows, false)[0]["home"]["is"], "initialised");
    }
}
