//! The requests to servers, and the conditions.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::bench::neighbours::Load;
use crate::bench::rounds;
use crate::named::Named as _;

/// What clients request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Case {
    /// Send the client's bytes back.
    Echo,
    /// Send a page by HTTP/1.1, over a kept connection.
    Http,
}

/// The program that sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loader {
    /// The benchmark's own client.
    Own,
    /// The program wrk: only for http, for whole seconds, and without a rate.
    Wrk,
}

/// Requests per second, over all connections; `None` for as many as possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates(pub Vec<Option<u32>>);

/// Maximal rate; no machine sends more.
const MOST_RATE: u32 = 10_000_000;

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = |word: &str| match word.trim().parse() {
            Ok(0) => Ok(None),
            Ok(rate) if rate <= MOST_RATE => Ok(Some(rate)),
            _ => Err(format!(
                "'{word}' is not a number of requests a second from 0 to {MOST_RATE}; write 0,50000"
            )),
        };
        text.split(',').map(rate).collect::<Result<_, _>>().map(Self)
    }
}

/// A case with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The case.
    pub case: Case,
    /// Requests per second, over all connections; `None`: each connection sends when it has its
    /// answer.
    pub rate: Option<u32>,
    /// Number of connections.
    pub connections: usize,
    /// Number of threads that serve.
    pub workers: usize,
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    /// Formats as in `idle echo, 100 connections, 20000/s, 2 workers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let Self { load, case, rate, connections, workers } = *self;
        write!(f, "{} {}, ", load.name(), case.name())?;
        write!(f, "{connections} connection{}, ", plural(connections))?;
        if let Some(rate) = rate {
            write!(f, "{rate}/s, ")?;
        }
        write!(f, "{workers} worker{}", plural(workers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_names() {
        let cell = |rate, connections, workers| {
            Cell { load: Load::Idle, case: Case::Http, rate, connections, workers }.to_string()
        };
        assert_eq!(cell(None, 1, 2), "idle http, 1 connection, 2 workers");
        assert_eq!(cell(Some(500), 8, 1), "idle http, 8 connections, 500/s, 1 worker");
    }

    #[test]
    fn unknown_rates_are_refused() {
        assert_eq!("0,500".parse(), Ok(Rates(vec![None, Some(500)])));
        for wrong in ["", "-1", "0.5", "10000001"] {
            assert!(wrong.parse::<Rates>().is_err_and(|why| why.contains("a second")), "{wrong}");
        }
    }
}
