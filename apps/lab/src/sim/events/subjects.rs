//! The mechanisms, and the machine that each needs.

use antiphon_report::failure::Failure;
use antiphon_sim::{Machine, OwnLine, Sim, Stuck, Wakes as Kicks};
use antiphon_sync::lock::Standard;
use antiphon_sync::policy::Distance;
use antiphon_sync::wait::{Broadcast, Condvar, Event, Unpolled};

use super::cases::Case;
use super::experiment::{Figures, Setting, carry_out};
use super::interrupts::{Ipi, IpiLoop, Messages};
use super::wakes::{Counted, Wakes, WithMutex};
use crate::sim::report::chosen;

/// The kind of system in which a mechanism runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// A program on Linux.
    Linux,
    /// Interrupt handlers of a program that is the kernel.
    Interrupts,
    /// Threads of such a program, by what makes a CPU check its run queue.
    Kernel(Kicks),
}

impl System {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Interrupts | Self::Kernel(_) => "kernel",
        }
    }

    /// Returns the machine under this system; `None` if its file lacks the costs.
    fn on(self, machine: &Machine) -> Option<Machine> {
        match self {
            Self::Linux => Some(machine.clone()),
            Self::Interrupts => Some(machine.awake()),
            Self::Kernel(kicks) => machine.as_kernel(kicks),
        }
    }
}

/// A mechanism.
pub struct Subject {
    pub name: &'static str,
    pub about: &'static str,
    pub system: System,
    /// Whether it is a broadcast only; to a single waiter it is the same as another subject.
    broadcasts_only: bool,
    carry_out: fn(&Setting<'_>, Machine, Case) -> Result<Figures, Stuck>,
}

const fn subject<W: Wakes>(name: &'static str, system: System, about: &'static str) -> Subject {
    Subject { name, about, system, broadcasts_only: false, carry_out: carry_out::<W> }
}

type Events<F> = Vec<OwnLine<Event<Sim, Distance, F>>>;

use System::{Interrupts, Kernel, Linux};

/// All subjects.
pub static SUBJECTS: [Subject; 14] = [
    subject::<WithMutex>("mutex-condvar", Linux, "condition variable, back with its mutex"),
    subject::<Condvar<Sim>>("condvar", Linux, "its list alone: the sender wakes all in a loop"),
    subject::<Counted>("event-count", Linux, "event count and a condition"),
    subject::<Events<Standard>>("event", Linux, "an event each, set one after the other"),
    subject::<Events<Unpolled>>("event-unpolled", Linux, "the same, whose waiters never spin"),
    subject::<Broadcast<Sim>>("broadcast", Linux, "those that are woken wake others"),
    subject::<Broadcast<Sim, Unpolled>>("broadcast-unpolled", Linux, "the same, never spinning"),
    subject::<Condvar<Sim>>("kernel-condvar", Kernel(Kicks::Contained), "condvar, no kicks"),
    subject::<Condvar<Sim>>("kernel-condvar-kick", Kernel(Kicks::All), "each wake is a kick"),
    subject::<WithMutex>("kernel-mutex-condvar-kick", Kernel(Kicks::All), "with its mutex"),
    subject::<Broadcast<Sim>>("kernel-broadcast-kick", Kernel(Kicks::All), "as broadcast"),
    subject::<Messages>("message", Interrupts, "active message, to when its action runs"),
    Subject {
        broadcasts_only: true,
        ..subject::<IpiLoop>("ipi-loop", Interrupts, "an interrupt to one after the other")
    },
    subject::<Ipi>("ipi", Interrupts, "an interrupt, to when its handler runs"),
];

impl Subject {
    /// Returns whether the subject has a row for this case.
    pub fn is_in(&self, case: Case) -> bool {
        !self.broadcasts_only || matches!(case, Case::Broadcast(_))
    }

    /// Runs rounds of the mechanism on its machine.
    ///
    /// # Errors
    ///
    /// If a waiter is not woken, which is a defect.
    ///
    /// # Panics
    ///
    /// If the machine's file lacks its costs: [`named`] returns only subjects whose costs it has.
    pub fn carry_out(&self, setting: &Setting<'_>, case: Case) -> Result<Figures, Stuck> {
        let machine = self.system.on(setting.machine).expect("a subject of that machine");
        (self.carry_out)(setting, machine, case)
    }
}

/// Returns the subjects of a list of names; for `all`, those that the machine's file has costs for.
///
/// # Errors
///
/// The unknown name and the known ones, or what the file lacks.
pub fn named(text: &str, machine: &Machine) -> Result<Vec<&'static Subject>, Failure> {
    let here = |subject: &&Subject| subject.system.on(machine).is_some();
    if text == "all" {
        return Ok(SUBJECTS.iter().filter(here).collect());
    }
    let subjects = chosen("subject", text, &SUBJECTS.each_ref(), (|one| one.name, true))?;
    match subjects.iter().find(|subject| !here(subject)) {
        None => Ok(subjects),
        Some(subject) => Err(Failure::arguments(format!(
            "no subject '{}' on {}: its file has no [kernel], the costs of a program that is the \
             kernel; opteron-64c and phi-228t have",
            subject.name, machine.name
        ))),
    }
}
