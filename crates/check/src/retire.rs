//! Memory that is declared dead, and the names of words in reports about it.

use crate::execution::Execution;
use crate::model::FailureKind;
use crate::platform;

impl Execution {
    /// Declares memory dead: all its accesses must happen before this, and none may come after.
    pub(crate) fn retire(&mut self, from: usize, to: usize) {
        let by = self.current;
        let known = self.threads[by].before;
        if let Some(stamp) = self.locations.retire((from, to), by, |id| known.covers(id)) {
            let event = &self.graph.events[stamp as usize];
            let what = format!(
                "thread {by} retires memory while thread {} may still be at {}",
                event.id.thread,
                self.label(event.location),
            );
            self.fail(FailureKind::UseAfterRetire, what);
        }
    }

    /// The name of a location.
    pub(crate) fn label(&self, location: u16) -> String {
        let state = &self.locations[location];
        match state.name {
            Some(name) => name.to_owned(),
            None => platform::describe(state.address).unwrap_or_else(|| format!("word{location}")),
        }
    }
}
