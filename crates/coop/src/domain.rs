//! Domains: a CPU that threads share, and a thread's membership.

use std::process;

use antiphon_linux::{Linux, pin};
use antiphon_platform::{CpuId, Platform as _, SharedWait as _, ThreadId, Topology as _};
use antiphon_runtime::coop::{
    Answer, Ask, Baton, Cooperate, Demotion, Domains, Group, Halves, Options, PLACES, Page, Pause,
    Standing,
};

use super::error::{JoinError, OpenError};
use super::memory::Memory;
use super::system::System;
use super::weighted::Weighted;

/// The options of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainOptions {
    /// The CPU on which its members run.
    pub cpu: u32,
    /// Its schedule, which the first process that opens a domain decides.
    pub schedule: Options,
}

impl DomainOptions {
    /// Returns the options for that CPU, with the documented default schedule.
    #[must_use]
    pub fn on(cpu: u32) -> Self {
        Self { cpu, schedule: Options::default() }
    }
}

impl Default for DomainOptions {
    /// Returns the options for the CPU that the caller runs on now.
    fn default() -> Self {
        let CpuId(cpu) = Linux::cpu();
        Self::on(cpu)
    }
}

/// A CPU that threads share: threads of all processes of this user that have opened it under this
/// name; or, if it is [private](Self::private), of a process and the processes that it starts.
///
/// Memberships keep the domain open after this value is dropped.
#[derive(Clone, Debug)]
pub struct Domain {
    memory: Memory,
    cpu: u32,
    process: u32,
    private: Option<u32>,
}

/// Prefix of the name of a private domain; the number of its file follows.
const INHERITED: &str = "/proc/self/fd/";

/// A member of a domain, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// Kernel's number of the thread.
    pub thread: u32,
    /// The group with which it shares CPU time.
    pub group: Group,
    /// Its weight, relative to other members or groups.
    pub weight: u32,
    /// Its standing: the service that it may expect.
    pub standing: Standing,
    /// Number of demotions, for each of [`Demotion::ALL`].
    pub demotions: [u32; Demotion::ALL.len()],
}

impl Domain {
    /// Opens a domain, and makes it if no process uses it. Waits for up to a second for a process
    /// that is just making it. The file of the name stays, for later openers.
    ///
    /// Also takes the [name of a private domain](Self::private_name); its CPU is the one in
    /// `options`, which must be the same in all processes.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(name: &str, options: DomainOptions) -> Result<Self, OpenError> {
        if let Some(number) = inherited(name) {
            let memory = Memory::inherited(number, &options.schedule)?;
            return Ok(Self::of(memory, options.cpu, Some(number)));
        }
        if !Self::is_name(name) {
            return Err(OpenError::Name);
        }
        let cpu = options.cpu;
        let memory = Memory::open(&format!("{name}.{cpu}"), &options.schedule)?;
        Ok(Self::of(memory, cpu, None))
    }

    /// Makes a domain for this process and the processes that it starts from now on: they inherit
    /// its file, which has no name, under any user. Nothing is left of it when the last of them has
    /// ended, even by a crash.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn private(options: DomainOptions) -> Result<Self, OpenError> {
        let (memory, number) = Memory::private(&options.schedule)?;
        Ok(Self::of(memory, options.cpu, Some(number)))
    }

    fn of(memory: Memory, cpu: u32, private: Option<u32>) -> Self {
        Self { memory, cpu, process: process::id(), private }
    }

    /// Returns the name by which [`open`](Self::open) finds a private domain, in the process that
    /// made it and in those that it starts, while they have that file open; `None` if the domain is
    /// not private.
    #[must_use]
    pub fn private_name(&self) -> Option<String> {
        self.private.map(|number| format!("{INHERITED}{number}"))
    }

    /// Returns whether `name` is a valid name of a domain; check it before you open one.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(fine)
    }

    /// Opens the domain whose members have the lowest total weight, of the domains of that name on
    /// those CPUs (the first, if several are equal). This is for a thread that may run on any of
    /// the CPUs, and should be served as well as others. Join soon, because other callers find the
    /// same domain meanwhile. Each domain is made if no process uses it, and waited for as by
    /// [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// See [`OpenError`]: the error of the first domain that cannot be opened.
    ///
    /// # Panics
    ///
    /// If `cpus` is empty.
    pub fn open_lightest(name: &str, cpus: &[u32], schedule: Options) -> Result<Self, OpenError> {
        let open = |&cpu: &u32| Self::open(name, DomainOptions { cpu, schedule });
        let mut domains = cpus.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let lightest = Domains::of(domains.iter().map(Self::load).collect()).join(0);
        Ok(domains.swap_remove(lightest))
    }

    /// Returns the total weight of its members, without those that have ended.
    fn load(&self) -> u64 {
        let members = self.members().into_iter();
        let living = members.filter(|member| !Linux::ended(ThreadId(member.thread)));
        living.map(|member| u64::from(member.weight)).sum()
    }

    /// Joins the calling thread, with its own weight or that of its group
    /// ([`WEIGHT`](super::WEIGHT) is that of nice 0). The thread is pinned to the CPU of the
    /// domain, and stays pinned when it has left, or if there is no room. A thread can have one
    /// membership.
    ///
    /// # Errors
    ///
    /// See [`JoinError`].
    pub fn join(&self, group: Group, weight: u32) -> Result<Membership, JoinError> {
        let memory = self.admit()?;
        let baton = Baton::join(memory, System, group, weight)?;
        Ok(Membership { baton })
    }

    /// Pins the calling thread to this domain's CPU, and returns the domain's memory.
    fn admit(&self) -> Result<Memory, JoinError> {
        if process::id() != self.process {
            return Err(JoinError::Forked);
        }
        pin(self.cpu).map_err(|_| JoinError::Cpu(self.cpu))?;
        Ok(self.memory.clone())
    }

    /// Joins the calling thread by weight: it takes no turns, but runs when the kernel chooses, and
    /// its weight grows with the importance of its work among the members of its group that have
    /// joined in this way. The total weight of a group stays the same. It learns the releases of
    /// others. This is for loops that are [boosted](super::Booster) when they are late.
    ///
    /// The thread is pinned to the CPU of the domain, and stays pinned when it has left. Its weight
    /// is its nice value, from 12 below the earlier one to 12 above; threads and processes that it
    /// starts inherit it. `weight` is its share among the members of its group. A thread can have
    /// one membership.
    ///
    /// # Errors
    ///
    /// See [`JoinError`]: [`Weight`](JoinError::Weight), if the thread shares a group and may not
    /// raise its weight.
    pub fn weigh(&self, group: Group, weight: u32) -> Result<Weighted, JoinError> {
        Weighted::join(self.admit()?, group, weight)
    }

    /// Returns the CPU of the domain.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Returns the schedule, as set by the process that made the domain.
    #[must_use]
    pub fn options(&self) -> Options {
        self.memory.header.options()
    }

    /// Returns the number of turns that its members have taken since it was made.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.memory.turns()
    }

    /// Returns the number of its members that were found dead since it was made.
    #[must_use]
    pub fn died(&self) -> u64 {
        self.memory.died()
    }

    /// Returns its members, as seen from outside.
    #[must_use]
    pub fn members(&self) -> Vec<MemberStatus> {
        (0..PLACES).filter_map(|place| status(&self.memory, place)).collect()
    }
}

fn status(page: &Page<Linux>, place: usize) -> Option<MemberStatus> {
    let (thread, member) = (page.thread(place)?, page.member(place)?);
    Some(MemberStatus {
        thread: thread.0,
        group: member.group,
        weight: member.weight,
        standing: member.standing,
        demotions: Demotion::ALL.map(|demotion| page.demotions(place, demotion)),
    })
}

/// Returns the file descriptor that the private name `name` denotes.
fn inherited(name: &str) -> Option<u32> {
    name.strip_prefix(INHERITED)?.parse().ok()
}

/// The membership of a thread in a domain: its `coop_poll`. The thread leaves when this is dropped.
/// In another thread, and in the child of a fork, it acts as [`Alone`](super::Alone).
#[derive(Debug)]
pub struct Membership {
    baton: Baton<Linux, Memory, System>,
}

impl Membership {
    /// Returns the member, for reports; `None` if its place has been taken, until it polls.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        status(self.baton.page(), self.baton.place())
            .filter(|status| status.thread == Linux::thread().0)
    }

    /// Returns the schedule of the domain.
    #[must_use]
    pub fn options(&self) -> Options {
        *self.baton.options()
    }
}

impl Cooperate for Membership {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.baton.poll(ask, wait)
    }

    fn rest(&mut self) {
        self.baton.rest();
    }
}

impl Halves for Membership {
    fn before(&mut self, ask: Ask) -> Pause {
        self.baton.before(ask)
    }

    fn after(&mut self, pause: Pause) -> Answer {
        self.baton.after(pause)
    }
}
