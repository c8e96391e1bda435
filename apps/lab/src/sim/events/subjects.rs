//! The mechanisms, and the machine that each needs.

use antiphon_report::failure::Failure;
use antiphon_sim::{Delivery, Machine, Model, OwnLine, Part, Paths, Sim, Stuck, Wakes as Kicks};
use antiphon_sync::lock::Standard;
use antiphon_sync::policy::Distance;
use antiphon_sync::wait::{Broadcast, Condvar, Event, Unpolled};

use super::bare_metal::{
    Active, ActiveLoop, ActiveWake, Batched, Direct, Interrupt, PerCpu, PerCpuWithMutex,
};
use super::cases::Case;
use super::experiment::{Figures, Setting, carry_out};
use super::interrupts::{Handler, Ipi, IpiLoop, Messages};
use super::paths::{LENGTHS, Lengths};
use super::wakes::{Counted, Polled, Wakes, WithMutex};
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
    /// Threads of this tree's bare-metal kernel, by the lengths of its paths; each wake is a kick.
    BareMetal,
    /// Threads of the same, each woken by an action of its own CPU.
    Unblocked,
    /// Threads of the same that its own condition variable wakes.
    Listed,
    /// The same, with a mutex, whose hand-offs are kicks. No path is too short: each wake has the
    /// sender's part of a kick, and the longer way until the thread runs.
    ListedWithMutex,
    /// Interrupt handlers of the same.
    Actions,
}

impl System {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Interrupts | Self::Kernel(_) => "kernel",
            Self::BareMetal
            | Self::Unblocked
            | Self::Listed
            | Self::ListedWithMutex
            | Self::Actions => "bare metal",
        }
    }

    /// Returns whether interrupts are a part of its mechanisms, so that they differ by delivery.
    pub const fn interrupts(self) -> bool {
        !matches!(self, Self::Linux | Self::Kernel(Kicks::Contained))
    }

    /// Returns the machine under this system; `None` if its file lacks the costs.
    fn on(self, machine: &Machine, delivery: Delivery) -> Option<Machine> {
        let machine = machine.delivering(delivery)?;
        match self {
            Self::Linux => Some(machine),
            Self::Interrupts => Some(machine.awake()),
            Self::Kernel(kicks) => machine.as_kernel(kicks),
            Self::BareMetal => machine.with_paths(&LENGTHS.wake)?.as_kernel(Kicks::All),
            Self::Unblocked => machine.with_paths(&LENGTHS.unblock)?.as_kernel(Kicks::All),
            Self::Listed => {
                let woken = Lengths::woken_there(LENGTHS.percpu.destination);
                machine.with_paths(&woken)?.as_kernel(Kicks::All)
            }
            Self::ListedWithMutex => {
                let run = LENGTHS.percpu.destination.max(LENGTHS.wake.run);
                machine.with_paths(&Paths { run, ..LENGTHS.wake })?.as_kernel(Kicks::All)
            }
            Self::Actions => machine.instructions_ns(1).map(|_| machine.awake()),
        }
    }

    /// The bare-metal kernel has no sleep on a word: its threads wait by their nodes.
    fn model(self) -> Model {
        let fibers = matches!(
            self,
            Self::BareMetal | Self::Unblocked | Self::Listed | Self::ListedWithMutex
        );
        Model { fibers, ..Model::default() }
    }
}

/// Runs rounds of a mechanism on a machine under a model's assumptions.
type CarryOut = fn(&Setting<'_>, (Machine, Model), Case) -> Result<Figures, Stuck>;

/// A mechanism.
pub struct Subject {
    pub name: &'static str,
    pub about: &'static str,
    pub system: System,
    /// Whether it is a broadcast only; to a single waiter it is the same as another subject.
    broadcasts_only: bool,
    carry_out: CarryOut,
}

const fn subject<W: Wakes>(name: &'static str, system: System, about: &'static str) -> Subject {
    Subject { name, about, system, broadcasts_only: false, carry_out: carry_out::<W> }
}

const fn broadcast<W: Wakes>(name: &'static str, system: System, about: &'static str) -> Subject {
    Subject { broadcasts_only: true, ..subject::<W>(name, system, about) }
}

type Events<F> = Vec<OwnLine<Event<Sim, Distance, F>>>;

use System::{Actions, BareMetal, Interrupts, Kernel, Linux, Listed, ListedWithMutex, Unblocked};

/// All subjects.
pub static SUBJECTS: [Subject; 26] = [
    subject::<WithMutex>("mutex-condvar", Linux, "condition variable, back with its mutex"),
    subject::<Condvar<Sim>>("condvar", Linux, "its list alone: the sender wakes all in a loop"),
    subject::<Counted>("event-count", Linux, "event count and a condition"),
    subject::<Events<Standard>>("event", Linux, "an event each, set one after the other"),
    subject::<Events<Unpolled>>("event-unpolled", Linux, "the same, whose waiters never spin"),
    subject::<Broadcast<Sim>>("broadcast", Linux, "those that are woken wake others"),
    subject::<Broadcast<Sim, Unpolled>>("broadcast-unpolled", Linux, "the same, never spinning"),
    subject::<Polled>("spin", Linux, "a word that all poll"),
    subject::<Condvar<Sim>>("kernel-condvar", Kernel(Kicks::Contained), "condvar, no kicks"),
    subject::<Condvar<Sim>>("kernel-condvar-kick", Kernel(Kicks::All), "each wake is a kick"),
    subject::<WithMutex>("kernel-mutex-condvar-kick", Kernel(Kicks::All), "with its mutex"),
    subject::<Broadcast<Sim>>("kernel-broadcast-kick", Kernel(Kicks::All), "as broadcast"),
    subject::<Condvar<Sim>>("metal-condvar", BareMetal, "condvar, each wake is a kick"),
    broadcast::<Batched>("metal-condvar-batched", BareMetal, "condvar, one kick for all"),
    subject::<WithMutex>("metal-mutex-condvar", BareMetal, "with its mutex, kicks"),
    subject::<Broadcast<Sim>>("metal-broadcast", BareMetal, "as broadcast, kicks"),
    subject::<PerCpu>("metal-condvar-percpu", Listed, "condvar, each CPU wakes its own"),
    subject::<PerCpuWithMutex>("metal-mutex-condvar-percpu", ListedWithMutex, "with its mutex"),
    subject::<ActiveWake>("metal-message-wake", Unblocked, "a message that wakes a thread there"),
    subject::<Direct>("metal-direct", Actions, "an action with a vector of its own"),
    subject::<Active>("metal-message", Actions, "active message; to many, one interrupt to all"),
    broadcast::<ActiveLoop>("metal-message-loop", Actions, "to one after the other"),
    subject::<Messages<Interrupt>>("metal-mailbox", Actions, "message with a payload"),
    subject::<Messages<Handler>>("message", Interrupts, "the same, without the kernel's paths"),
    broadcast::<IpiLoop>("ipi-loop", Interrupts, "an interrupt to one after the other"),
    subject::<Ipi>("ipi", Interrupts, "an interrupt, to when its handler runs"),
];

impl Subject {
    /// Returns whether the subject has a row for this case.
    pub fn is_in(&self, case: Case) -> bool {
        !self.broadcasts_only || matches!(case, Case::Broadcast(_))
    }

    /// Runs rounds of the mechanism on its machine, or on the same without a part of the costs.
    ///
    /// # Errors
    ///
    /// If a waiter is not woken, which is a defect.
    ///
    /// # Panics
    ///
    /// If the machine's file lacks its costs: [`named`] returns only subjects whose costs it has.
    pub fn carry_out(
        &self,
        setting: &Setting<'_>,
        case: Case,
        delivery: Delivery,
        without: Option<Part>,
    ) -> Result<Figures, Stuck> {
        let machine = self.system.on(setting.machine, delivery).expect("a subject of that machine");
        let machine = without.map_or_else(|| machine.clone(), |part| machine.without(part));
        (self.carry_out)(setting, (machine, self.system.model()), case)
    }
}

/// Returns the subjects of a list of names; for `all`, those that the machine's file has costs for.
///
/// # Errors
///
/// The unknown name and the known ones, or what the file lacks.
pub fn named(text: &str, machine: &Machine) -> Result<Vec<&'static Subject>, Failure> {
    let here = |subject: &&Subject| subject.system.on(machine, Delivery::Kernel).is_some();
    if text == "all" {
        return Ok(SUBJECTS.iter().filter(here).collect());
    }
    let subjects = chosen("subject", text, &SUBJECTS.each_ref(), (|one| one.name, true))?;
    match subjects.iter().find(|subject| !here(subject)) {
        None => Ok(subjects),
        Some(subject) => Err(Failure::arguments(format!(
            "no subject '{}' on {}: its file has no costs of a program that is the kernel, which \
             are [kernel] and, of bare metal, `instruction` of [core]; nemo-64c and nemo-228t have \
             both",
            subject.name, machine.name
        ))),
    }
}

/// Returns the delivery modes of a list of names, the machine's own first.
///
/// # Errors
///
/// The unknown name and the known ones, or what the file lacks.
pub fn deliveries(text: &str, machine: &Machine) -> Result<Vec<Delivery>, Failure> {
    let here = |delivery: &Delivery| machine.delivering(*delivery).is_some();
    if text == "all" {
        return Ok(Delivery::ALL.into_iter().filter(here).collect());
    }
    let deliveries = chosen("delivery", text, &Delivery::ALL, (Delivery::name, true))?;
    match deliveries.iter().find(|delivery| !here(delivery)) {
        None => Ok(deliveries),
        Some(delivery) => Err(Failure::arguments(format!(
            "no delivery '{0}' on {1}: its file has no [delivery.{0}]; nemo-64c and nemo-228t have",
            delivery.name(),
            machine.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use antiphon_sim::known;

    use super::*;

    #[test]
    fn what_a_machine_has_no_costs_for_is_not_simulated() {
        let machine = |name: &str| &known(name).expect("a preset").machine;
        let names = |name: &str| {
            let subjects = named("all", machine(name)).expect("there are some");
            subjects.iter().map(|one| one.name).collect::<Vec<_>>()
        };
        let metal = |name: &str| names(name).iter().any(|one| one.starts_with("metal-"));
        assert!(metal("nemo-228t") && !metal("opteron-64c"));
        assert!(names("opteron-64c").contains(&"kernel-condvar"));
        assert!(!names("8s-192c").contains(&"kernel-condvar"));
        let count = |text: &str, name: &str| deliveries(text, machine(name)).map(|all| all.len());
        assert_eq!(count("all", "nemo-64c").ok(), Some(5));
        assert_eq!(count("all", "opteron-64c").ok(), Some(1));
        assert_eq!(count("signal,kernel", "nemo-64c").ok(), Some(2));
        assert!(count("fred", "opteron-64c").is_err() && count("nmi", "nemo-64c").is_err());
    }
}
