//! What became of the mutants of the table, for `antiphon lab check` to tell: that command is built
//! from this tree, but has no compiler to try mutants with.
//!
//! ```json
//! { "commit": "e73c657…", "mutants": [{ "name": "…", "fate": "killed", "by": "model_spin::…" }] }
//! ```

use serde_json::{Value, json};

use super::fate::Fate;
use super::mutant::Mutant;

/// The record, as the text of a file. `commit` is the last one below the tree that was tried; null
/// if git can't tell.
pub fn of(mutants: &[Mutant], fates: &[Fate]) -> String {
    let tried = mutants.iter().zip(fates).filter_map(|(mutant, fate)| entry(mutant, fate));
    let record = json!({ "commit": commit(), "mutants": tried.collect::<Vec<_>>() });
    format!("{record:#}\n")
}

/// `None` for an ordering, which has no name, and for what was not tried.
fn entry(mutant: &Mutant, fate: &Fate) -> Option<Value> {
    let (name, _) = mutant.entry.as_deref()?.rsplit_once(" [")?;
    let by = match fate {
        Fate::Killed(by) | Fate::Undecided(by) => Some(by),
        Fate::Survived | Fate::Unbuildable(_) => None,
        Fate::Skipped => return None,
    };
    Some(json!({ "name": name, "fate": fate.name(), "by": by }))
}

fn commit() -> Option<String> {
    let asked = std::process::Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
    let name = String::from_utf8(asked.stdout).ok()?;
    asked.status.success().then(|| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_mutants_that_were_tried_are_recorded_with_their_fate() {
        let mut named = Mutant::new("a.rs", "one two", 0..3, "1");
        named.entry = Some("a name [and] [INV-1]".to_owned());
        let unnamed = Mutant::new("a.rs", "one two", 4..7, "2");
        let fates = [Fate::Killed("model_a::b".to_owned()), Fate::Survived, Fate::Skipped];
        let mutants = [named.clone(), unnamed, named];
        let record: Value = serde_json::from_str(&of(&mutants, &fates)).expect("JSON");
        let expected = json!([{ "name": "a name [and]", "fate": "killed", "by": "model_a::b" }]);
        assert_eq!(record["mutants"], expected);
    }
}
