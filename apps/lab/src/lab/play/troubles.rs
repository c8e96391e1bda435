//! The troubles that keep a program from being on time, as reported by its loop.

use antiphon_coop::event_loop::{Name, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use antiphon_report::table::duration;
use antiphon_report::words::several;

/// The worst trouble of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst<N = String> {
    /// The events that were to blame in the worst case.
    pub name: N,
    /// Extent of the worst case, in nanoseconds.
    pub ns: u64,
    /// Number of reports.
    pub times: u64,
}

/// All troubles of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Troubles<N = String> {
    /// Timers alone wanted more CPU time than there was; for how long.
    pub behind: Option<Worst<N>>,
    /// A callback took longer than a millisecond; how long.
    pub long: Option<Worst<N>>,
}

impl<N> Default for Troubles<N> {
    fn default() -> Self {
        Self { behind: None, long: None }
    }
}

impl Troubles<Name> {
    /// Records a report of the loop.
    pub fn note(&mut self, trouble: Trouble) {
        let (kind, name, ns) = match trouble {
            Trouble::Behind { name, for_ns, .. } => (&mut self.behind, name, for_ns),
            Trouble::Long { name, ran_ns } => (&mut self.long, name, ran_ns),
        };
        let worst = kind.get_or_insert(Worst { name, ns, times: 0 });
        worst.times += 1;
        if ns > worst.ns {
            (worst.name, worst.ns) = (name, ns);
        }
    }

    /// Returns the troubles for the program's report.
    pub fn told(&self) -> Troubles {
        let told = |of: &Option<Worst<Name>>| {
            let of = of.as_ref()?;
            Some(Worst { name: of.name.to_string(), ns: of.ns, times: of.times })
        };
        Troubles { behind: told(&self.behind), long: told(&self.long) }
    }
}

impl Troubles {
    /// Describes the troubles for people: one line for each player whose timers are behind, and one
    /// for callbacks that took long.
    pub fn said<'a>(of: impl Iterator<Item = (usize, &'a Self)> + Clone) -> String {
        let mut text = String::new();
        for (player, Self { behind, .. }) in of.clone() {
            if let Some(Worst { name, .. }) = behind {
                text += &format!(
                    "Player {player}: its timers alone want more than there is; the greediest is \
                     `{name}`.\n"
                );
            }
        }
        let long = of.filter_map(|(player, all)| Some((player, all.long.as_ref()?)));
        let calls = several(long.clone().map(|(_, long)| long.times).sum(), "callback");
        if let Some((player, Worst { name, ns, .. })) = long.max_by_key(|(_, long)| long.ns) {
            text += &format!(
                "{calls} took more than 1 ms by the clock, with what others took meanwhile; the \
                 longest is\n`{name}` of player {player}, {}.\n",
                duration(*ns as f64)
            );
        }
        text
    }

    /// Returns the object for scripts.
    pub fn json(&self) -> Value {
        let of = |worst: &Option<Worst>, key: &str| {
            let Worst { name, ns, times } = worst.as_ref()?;
            Some(json!({ "event": name, "times": times, key: ns }))
        };
        json!({ "behind": of(&self.behind, "for_ns"), "long": of(&self.long, "ran_ns") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_the_worst_is_named() {
        let mut troubles = Troubles::default();
        for (name, ran_ns) in [("draw", 2_000_000), ("load", 5_000_000), ("draw", 3_000_000)] {
            troubles.note(Trouble::Long { name: Name::Given(name), ran_ns });
        }
        let long = troubles.told();
        troubles.note(Trouble::Behind { name: Name::Given("frame"), ran_ns: 150, for_ns: 200 });
        troubles.note(Trouble::Long { name: Name::Given("draw"), ran_ns: 9_000_000 });
        let both = troubles.told();
        let all = [(2, &long), (3, &both), (4, &Troubles::default())];
        assert_eq!(
            Troubles::said(all.into_iter()),
            "Player 3: its timers alone want more than there is; the greediest is `frame`.\n\
             7 callbacks took more than 1 ms by the clock, with what others took meanwhile; the \
             longest is\n`draw` of player 3, 9.00 ms.\n"
        );
        assert_eq!(both.json()["behind"]["event"], "frame");
        assert_eq!(Troubles::said([(0, &Troubles::default())].into_iter()), "");
    }
}
