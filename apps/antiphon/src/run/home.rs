//! Where a lock lives: what names it beside the places where it is taken.
//!
//! | lock | is named by |
//! |---|---|
//! | in a global variable | the variable |
//! | initialised by a call | the call: `pthread_mutex_init`, `pthread_rwlock_init` |
//! | others, such as `std::mutex` | where it was seen first: in a profile, its first acquisition |
//!
//! Locks of the same kind and name are a class. Elements of an array, and members of the objects
//! that a function creates, are one class each.

use antiphon_record::Snapshot;
use serde_json::{Value, json};

use super::names::{self, Variables};
use crate::symbols::{CallSite, Symbols};

/// What names a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    /// The global variable that is or contains it.
    Variable(String),
    /// The call that initialised it.
    Initialised(CallSite),
    /// The call site at which it was seen first.
    FirstSeen(CallSite),
}

impl Home {
    /// The home of a lock of the recording.
    pub fn of(
        snapshot: &Snapshot,
        lock: usize,
        variables: &Variables,
        symbols: &mut Symbols,
    ) -> Self {
        let known = &snapshot.locks[lock];
        if let Some(variable) = variables.name(known.process, known.address, symbols) {
            return Self::Variable(variable);
        }
        if known.made_site.is_some() {
            return Self::Initialised(names::site(snapshot, known.made_site, symbols));
        }
        Self::FirstSeen(names::site(snapshot, known.first_site, symbols))
    }

    /// The name of the lock's class.
    pub fn class(&self) -> String {
        match self {
            // An element of an array, or a member of an object, has an offset.
            Self::Variable(name) => name.split("+0x").next().unwrap_or(name).to_owned(),
            Self::Initialised(site) => format!("initialised at {}", site.label()),
            Self::FirstSeen(site) => format!("first taken at {}", site.label()),
        }
    }

    /// The global variable, if that names the lock.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Variable(name) => Some(name),
            Self::Initialised(_) | Self::FirstSeen(_) => None,
        }
    }

    /// Where the lock was initialised, for a sentence; `None` if it is not known.
    pub fn initialised(&self) -> Option<String> {
        match self {
            Self::Initialised(_) => Some(self.class()),
            Self::Variable(_) | Self::FirstSeen(_) => None,
        }
    }

    /// The lock in a sentence: its variable, or where it was initialised; `None` if neither is
    /// known.
    pub fn in_a_sentence(&self) -> Option<String> {
        match self {
            Self::Variable(name) => Some(name.clone()),
            Self::Initialised(_) => Some(format!("a lock {}", self.class())),
            Self::FirstSeen(_) => None,
        }
    }

    /// The value of `home` in a JSON report.
    pub fn json(&self) -> Value {
        match self {
            Self::Variable(name) => json!({ "is": "variable", "name": name }),
            Self::Initialised(site) => json!({
                "is": "initialised", "name": site.label(), "at": site.json(),
            }),
            Self::FirstSeen(site) => json!({
                "is": "first_taken", "name": site.label(), "at": site.json(),
            }),
        }
    }
}
