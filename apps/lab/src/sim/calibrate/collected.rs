//! The measurements: which of them are valid figures, and their values in a machine file.

use antiphon_report::stats::median;

use super::file::{Entry, IdleState};
use super::lines::Pair;
use super::system;
use crate::pinned::Figure;

/// The measurements so far.
#[derive(Default)]
pub struct Collected {
    pub entries: Vec<Entry>,
    pub idle: Vec<IdleState>,
    pub figures: Vec<(String, Figure)>,
    pub missing: Vec<Missing>,
}

/// A number that could not be measured; the file keeps the base machine's.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    pub name: String,
    pub why: &'static str,
}

/// Too few windows count for a figure.
const DISTURBED: &str = "its threads lost their CPUs";
/// No operation takes no time. Where the median is 0, the clock missed the operation: for example
/// if the waker is off its CPU when the woken thread reads the time.
const TIMELESS: &str = "no time passed in most windows";
/// The figure is a difference of two, one of which is missing.
const PARTLESS: &str = "a switch, which it has in it, was not measured";

impl Collected {
    fn enter(&mut self, key: &str, source: String, ns: f64) {
        // Each operation takes some time, and a file must not contain 0.
        self.entries.push(Entry { key: key.to_owned(), ns: ns.max(0.1), source });
    }

    /// Returns the figure if it is valid; otherwise records why it is not.
    fn checked(&mut self, name: &str, figure: Option<Figure>) -> Option<Figure> {
        let why = match figure {
            Some(figure) if figure.median > 0.0 => return Some(figure),
            Some(_) => TIMELESS,
            None => DISTURBED,
        };
        self.missing.push(Missing { name: name.to_owned(), why });
        None
    }

    pub fn single(&mut self, key: &str, what: &str, figure: Option<Figure>) {
        let Some(figure) = self.checked(key, figure) else { return };
        self.enter(key, agreement(what, &figure), figure.median);
        self.figures.push((key.to_owned(), figure));
    }

    pub fn transfers(&mut self, key: &str, class: usize, pairs: &[Pair]) {
        let of_class: Vec<_> = pairs.iter().filter(|pair| pair.class == class).collect();
        if of_class.is_empty() {
            return;
        }
        let seen: Vec<_> = of_class.iter().filter_map(|pair| pair.ns).collect();
        let Some(figure) = self.checked(key, together(&seen)) else { return };
        let what = format!("half a round trip by compare-and-swap, {} pairs", seen.len());
        self.enter(key, agreement(&what, &figure), figure.median);
        self.figures.push((key.to_owned(), figure));
    }

    pub fn system(&mut self, system: &system::System) {
        self.single("os.switch", "yields between two threads of a CPU", system.switch);
        self.single("os.yield", "yields of a thread alone on its CPU", system.lone_yield);
        self.single("os.slice", "gaps of two threads that compute on a CPU", system.slice);
        let fence = "a private expedited one, by running CPU";
        self.single("interrupt.membarrier", fence, system.membarrier);
        self.single("os.wake", "FUTEX_WAKE of one on another CPU", system.wake);
        self.park(system);
        self.idle(system);
    }

    /// A hand-over on one CPU is a wake, a sleep and a switch; the sleep alone can't be timed.
    fn park(&mut self, system: &system::System) {
        let Some(hand_over) = self.checked("os.park", system.hand_over) else { return };
        let Some(switch) = system.switch.filter(|switch| switch.median > 0.0) else {
            return self.missing.push(Missing { name: "os.park".to_owned(), why: PARTLESS });
        };
        let wake = system.wake.map_or(0.0, |wake| wake.median);
        let rest = hand_over.median - switch.median - wake;
        let least = system.refused.map_or(0.0, |refused| refused.median);
        let what = if rest > least {
            "a futex hand-over on one CPU, less a switch and a wake"
        } else {
            "a FUTEX_WAIT that is refused: a hand-over on one CPU is shorter than its parts"
        };
        self.enter("os.park", agreement(what, &hand_over), rest.max(least));
        self.figures.push(("a futex hand-over on one CPU".to_owned(), hand_over));
    }

    /// The wake of a CPU that is not idle ends with the waker's call; the additional time of an
    /// idle CPU is that of its idle state.
    fn idle(&mut self, system: &system::System) {
        let seen: Vec<_> = system::IDLE_NS.iter().zip(&system.latency).collect();
        for (&idle_ns, latency) in seen {
            let what = format!("from a wake's return, after {} µs of sleep", idle_ns / 1e3);
            let Some(latency) = self.checked(&what, *latency) else { continue };
            let deeper = |state: &IdleState| latency.median > 1.2 * state.exit_ns;
            if self.idle.last().is_none_or(deeper) {
                // Shorter idle times were not measured: they count as the shortest that was.
                let after_ns = if self.idle.is_empty() { 0.0 } else { idle_ns };
                let source = agreement(&what, &latency);
                self.idle.push(IdleState { after_ns, exit_ns: latency.median.max(0.1), source });
            }
            self.figures.push((what, latency));
        }
        if !self.idle.is_empty() {
            let what = "on one CPU a woken thread is there when the wake returns";
            self.entries.push(Entry {
                key: "os.wake_latency".to_owned(),
                ns: 0.0,
                source: what.to_owned(),
            });
        }
    }
}

/// Combines the figures of several pairs; `None` without pairs.
fn together(seen: &[Figure]) -> Option<Figure> {
    let of_all = |of: fn(&Figure) -> f64| median(seen.iter().map(of).collect());
    let sum = |of: fn(&Figure) -> usize| seen.iter().map(of).sum();
    Some(Figure {
        median: of_all(|f| f.median)?,
        p25: of_all(|f| f.p25)?,
        p75: of_all(|f| f.p75)?,
        windows: sum(|f| f.windows),
        dropped: sum(|f| f.dropped),
    })
}

/// Returns `what`, and how far its windows agree.
fn agreement(what: &str, figure: &Figure) -> String {
    let Figure { p25, p75, windows, .. } = figure;
    format!("{what}, {windows} windows, quartiles {p25:.1} and {p75:.1} ns")
}

#[cfg(test)]
mod tests {
    use super::super::file::replaced;
    use super::*;
    use antiphon_report::machine::host;

    fn figure(median: f64) -> Option<Figure> {
        Some(Figure { median, p25: median, p75: median + 1.0, windows: 8, dropped: 0 })
    }

    #[test]
    fn what_took_no_time_or_was_disturbed_is_missing_and_not_in_the_file() {
        let pair = |class, ns| Pair { from: 0, to: 1, class, ns };
        let mut of = Collected::default();
        of.single("core.load", "loads", figure(0.0));
        of.single("core.atomic", "atomics", None);
        of.single("core.look", "looks", figure(2.0));
        let pairs = [pair(0, figure(0.0)), pair(1, None)];
        (0..3).for_each(|class| of.transfers(&format!("level.{class}.transfer"), class, &pairs));
        of.system(&system::System {
            switch: figure(0.0),
            hand_over: figure(9.0),
            latency: vec![figure(0.0), figure(3.0), figure(0.0), figure(5.0)],
            ..system::System::default()
        });
        let missing = |name: &str| {
            let of_name = of.missing.iter().filter(|missing| missing.name == name);
            of_name.map(|missing| missing.why).collect::<Vec<_>>()
        };
        let sleep = |us: u32| missing(&format!("from a wake's return, after {us} µs of sleep"));
        for timeless in [missing("core.load"), missing("level.0.transfer"), sleep(20), sleep(500)] {
            assert_eq!(timeless, [TIMELESS]);
        }
        for disturbed in [missing("core.atomic"), missing("level.1.transfer"), missing("os.wake")] {
            assert_eq!(disturbed, [DISTURBED]);
        }
        assert_eq!(missing("os.park"), [PARTLESS]);
        assert_eq!(of.figures.len(), 3, "{:?}", of.figures);
        assert!(of.figures.iter().all(|(_, figure)| figure.median > 0.0), "{:?}", of.figures);
        let keys: Vec<_> = of.entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["core.look", "os.wake_latency"]);
        let idle: Vec<_> = of.idle.iter().map(|state| (state.after_ns, state.exit_ns)).collect();
        assert_eq!(idle, [(0.0, 3.0), (2e6, 5.0)]);
        // The result must still be a valid machine.
        let Ok(base) = host::text() else { panic!("this machine has none") };
        assert!(host::described(&replaced(&base, &of.entries, &of.idle)).is_ok());
        assert!(host::described(&replaced(&base, &[], &[])).is_ok());
    }
}
