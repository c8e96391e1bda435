//! What keeps a program from being on time, as its loop says.

use antiphon::event_loop::{Name, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::output::table::duration;
use crate::output::words::several;

/// What was said of a kind of trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worst<N = String> {
    /// The events that are to blame, where it was worst.
    pub name: N,
    /// How bad that was, in nanoseconds.
    pub ns: u64,
    /// How often it was said.
    pub times: u64,
}

/// All of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Troubles<N = String> {
    /// Timers alone wanted more than there was; for how long.
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
    /// The loop has said so.
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

    /// For who is told of it.
    pub fn told(&self) -> Troubles {
        let told = |of: &Option<Worst<Name>>| {
            let of = of.as_ref()?;
            Some(Worst { name: of.name.to_string(), ns: of.ns, times: of.times })
        };
        Troubles { behind: told(&self.behind), long: told(&self.long) }
    }
}

impl Troubles {
    /// For people, a line for each kind.
    pub fn said(&self, of: &str) -> String {
        let mut text = String::new();
        if let Some(Worst { name, .. }) = &self.behind {
            text += &format!(
                "{of}: its timers alone want more than there is; the greediest is `{name}`.\n"
            );
        }
        if let Some(Worst { name, ns, times }) = &self.long {
            let (calls, longest) = (several(*times, "callback"), duration(*ns as f64));
            text += &format!(
                "{of}: {calls} took more than 1 ms by the clock; the longest is `{name}`, \
                 {longest}.\n"
            );
        }
        text
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        let of = |worst: &Worst| json!({ "event": worst.name, "times": worst.times });
        let with = |worst: &Option<Worst>, key: &str| {
            let worst = worst.as_ref()?;
            let mut object = of(worst);
            object[key] = json!(worst.ns);
            Some(object)
        };
        json!({ "behind": with(&self.behind, "for_ns"), "long": with(&self.long, "ran_ns") })
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
        assert_eq!(
            troubles.told().said("Player 3"),
            "Player 3: 3 callbacks took more than 1 ms by the clock; the longest is `load`, 5.00 \
             ms.\n"
        );
        troubles.note(Trouble::Behind { name: Name::Given("frame"), ran_ns: 150, for_ns: 200 });
        let told = troubles.told();
        assert!(told.said("Player 3").starts_with(
            "Player 3: its timers alone want more than there is; the greediest is `frame`.\n"
        ));
        assert_eq!(told.json()["behind"]["event"], "frame");
        assert_eq!(Troubles::default().said("Player 3"), "");
    }
}
