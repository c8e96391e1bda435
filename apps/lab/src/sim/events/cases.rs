//! The cases: which threads are notified, and how.

use std::fmt;
use std::str::FromStr;

use antiphon_sim::Machine;

/// What the sender does in a round, with the number of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Each waiter has an event, and they are notified one by one.
    Unicast(usize),
    /// All wait for one event.
    Broadcast(usize),
}

impl Case {
    /// Returns the number of waiters.
    pub const fn waiters(self) -> usize {
        match self {
            Self::Unicast(waiters) | Self::Broadcast(waiters) => waiters,
        }
    }
}

impl fmt::Display for Case {
    /// Formats as in `unicast` or `broadcast-63`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unicast(_) => f.write_str("unicast"),
            Self::Broadcast(waiters) => write!(f, "broadcast-{waiters}"),
        }
    }
}

/// A case as requested on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Unicast,
    Broadcast(Option<usize>),
}

/// A list of cases: `unicast,broadcast,broadcast-8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases(Vec<Wanted>);

impl Cases {
    /// Returns the cases for these numbers of threads, one of which notifies the others; each once.
    ///
    /// # Errors
    ///
    /// If a case needs more CPUs than there are.
    pub fn on(&self, machine: &Machine, threads: &[usize]) -> Result<Vec<Case>, String> {
        let most = machine.cores() as usize - 1;
        let mut cases = Vec::new();
        for wanted in &self.0 {
            let of: Vec<_> = match *wanted {
                Wanted::Unicast => threads.iter().map(|all| Case::Unicast(all - 1)).collect(),
                Wanted::Broadcast(None) => {
                    threads.iter().map(|all| Case::Broadcast(all - 1)).collect()
                }
                Wanted::Broadcast(Some(waiters)) => vec![Case::Broadcast(waiters)],
            };
            if let Some(case) = of.iter().find(|case| case.waiters() > most) {
                let name = &machine.name;
                return Err(format!(
                    "no case '{case}' on {name}: beside the sender's it has {most} CPUs"
                ));
            }
            cases.extend(of);
        }
        let mut once = Vec::new();
        cases.retain(|case| !once.contains(case) && (once.push(*case), true).1);
        Ok(cases)
    }
}

impl FromStr for Cases {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = |name: &str| match name {
            "unicast" => Some(Wanted::Unicast),
            "broadcast" => Some(Wanted::Broadcast(None)),
            _ => {
                let waiters = name.strip_prefix("broadcast-")?.parse().ok()?;
                (waiters > 0).then_some(Wanted::Broadcast(Some(waiters)))
            }
        };
        let named = |name: &str| {
            wanted(name).ok_or_else(|| {
                format!("no case '{name}'; there are: unicast, broadcast, broadcast-N from 1")
            })
        };
        text.split(',').map(str::trim).map(named).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_for_each_number_of_threads_unless_it_says_its_own() {
        let machine = Machine::two_sockets();
        let on = |text: &str, threads: &[usize]| {
            let cases = text.parse::<Cases>().and_then(|cases| cases.on(&machine, threads));
            cases.map(|cases| cases.iter().map(|case| (case.to_string(), case.waiters())).collect())
        };
        let expected: Result<Vec<_>, String> = Ok([
            ("unicast", 1),
            ("unicast", 27),
            ("broadcast-1", 1),
            ("broadcast-27", 27),
            ("broadcast-8", 8),
        ]
        .map(|(name, waiters)| (name.to_owned(), waiters))
        .into());
        assert_eq!(on("unicast,broadcast,broadcast-8,broadcast-27", &[2, 28]), expected);
        for wrong in ["", "unicast,", "broadcast-0", "broadcast-x", "multicast"] {
            assert!(on(wrong, &[2]).is_err_and(|why| why.contains("broadcast-N")), "{wrong}");
        }
        assert!(on("broadcast-28", &[2]).is_err_and(|why| why.contains("27 CPUs")));
    }
}
