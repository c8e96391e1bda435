//! A machine file whose numbers are replaced by measured ones.

use std::fmt::Write as _;

/// A number of a machine file.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Key of the entry: `core.load`, `level.socket.transfer`.
    pub key: String,
    /// Value in nanoseconds.
    pub ns: f64,
    /// How it was measured.
    pub source: String,
}

/// An idle state.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleState {
    /// Time after which an idle CPU is in this state, in nanoseconds.
    pub after_ns: f64,
    /// Time to leave the state, in nanoseconds.
    pub exit_ns: f64,
    /// How it was measured.
    pub source: String,
}

/// Returns `text` with the numbers of `entries`, and with these idle states, if there are any,
/// instead of its own. Optional keys that the file lacks are inserted at the head of their section.
pub fn replaced(text: &str, entries: &[Entry], idle: &[IdleState]) -> String {
    let mut out = String::new();
    let (mut section, mut is_level) = (String::new(), false);
    let mut missing = missing(text, entries);
    for line in text.lines() {
        if line.starts_with('[') {
            section = line.trim_matches(['[', ']']).to_owned();
            is_level = line == "[[level]]";
            if line == "[os]" {
                states(&mut out, idle);
            }
        } else if let (true, Some(name)) = (is_level, value(line, "name")) {
            section = format!("level.{}", name.trim_matches('"'));
        }
        if section == "idle" && !idle.is_empty() {
            continue;
        }
        let known = entries.iter().find(|entry| {
            let key = entry.key.strip_prefix(&section).and_then(|key| key.strip_prefix('.'));
            key.is_some_and(|key| value(line, key).is_some())
        });
        match known {
            Some(entry) => put(&mut out, entry),
            // Writing to a string does not fail.
            None => _ = writeln!(out, "{line}"),
        }
        if line.starts_with('[') {
            let here = |entry: &mut &Entry| {
                entry.key.rsplit_once('.').is_some_and(|(at, _)| at == section)
            };
            missing.extract_if(.., here).for_each(|entry| put(&mut out, entry));
        }
    }
    out
}

/// Returns the entries whose keys are missing in their section of `text`.
fn missing<'a>(text: &str, entries: &'a [Entry]) -> Vec<&'a Entry> {
    let stands = |entry: &&Entry| {
        let Some((section, key)) = entry.key.rsplit_once('.') else { return true };
        // The sections of levels are always complete.
        let Some(start) = text.find(&format!("\n[{section}]\n")) else { return true };
        let lines = text[start + 1..].lines().skip(1).take_while(|line| !line.starts_with('['));
        lines.into_iter().any(|line| value(line, key).is_some())
    };
    entries.iter().filter(|entry| !stands(entry)).collect()
}

fn put(out: &mut String, Entry { key, ns, source }: &Entry) {
    let key = key.rsplit('.').next().unwrap_or(key);
    let _ = writeln!(out, "{key} = {}", number(*ns, source));
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.trim_start().strip_prefix('=').map(str::trim)
}

fn states(out: &mut String, idle: &[IdleState]) {
    for IdleState { after_ns, exit_ns, source } in idle {
        let (after, exit) = (number(*after_ns, source), number(*exit_ns, source));
        let _ = write!(out, "[[idle]]\nafter = {after}\nexit = {exit}\n\n");
    }
}

fn number(ns: f64, source: &str) -> String {
    format!("{{ ns = {ns:.1}, measured = {source:?} }}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_sim::{Description, Kind, PRESETS};

    fn entry(key: &str, ns: f64) -> Entry {
        Entry { key: key.to_owned(), ns, source: "2026-11-21, a test".to_owned() }
    }

    #[test]
    fn what_was_measured_stands_in_the_file_and_the_rest_stays() {
        let preset = PRESETS.iter().find(|preset| preset.name == "milan-2s").expect("it is one");
        let entries = [
            entry("core.load", 1.4),
            entry("core.look", 42.0),
            entry("level.ccx.transfer", 33.0),
            entry("os.wake", 1234.0),
            entry("os.yield", 290.0),
        ];
        let source = "2026-11-21, a test".to_owned();
        let idle = [IdleState { after_ns: 0.0, exit_ns: 30_000.0, source }];
        let text = replaced(preset.text, &entries, &idle);
        let described = Description::parse(&text).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let before = Description::parse(preset.text).expect("it is right");
        let measured = |described: &Description| -> Vec<(String, f64)> {
            let of = described.numbers.iter().filter(|number| number.source.contains("a test"));
            of.map(|number| (number.name.clone(), number.value)).collect()
        };
        let mut seen = measured(&described);
        seen.sort_by(|one, other| one.0.cmp(&other.0));
        let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
        let [after, exit] = ["idle[0].after", "idle[0].exit"];
        let transfer = "level.ccx.transfer";
        let all = ["core.load", "core.look", after, exit, transfer, "os.wake", "os.yield"];
        assert_eq!(names, all);
        assert_eq!((described.machine.look_ns, described.machine.yield_ns), (42, 290));
        assert_eq!((before.machine.look_ns, before.machine.yield_ns), (0, 0));
        assert_eq!(described.machine.idle.len(), 1);
        assert_eq!(described.machine.wake_ns, 1234);
        assert_eq!(described.machine.transfer_ns(0, 2), 33);
        assert_eq!(described.machine.park_ns, before.machine.park_ns);
        assert!(described.count(Kind::Measured) > before.count(Kind::Measured));
    }

    #[test]
    fn without_idle_states_those_of_the_file_stay() {
        let preset = PRESETS.iter().find(|preset| preset.name == "milan-2s").expect("it is one");
        assert_eq!(replaced(preset.text, &[], &[]), preset.text);
    }
}
