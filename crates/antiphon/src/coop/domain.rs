//! A CPU that threads share, and a thread's part in that.

use std::process;

use antiphon_linux::{Linux, pin};
use antiphon_platform::{CpuId, Platform as _, SharedWait as _, ThreadId};
use antiphon_runtime::coop::{
    Answer, Ask, Baton, Cooperate, Demotion, Domains, Group, Halves, Options, PLACES, Page, Pause,
    Standing,
};

use super::error::{JoinError, OpenError};
use super::memory::Memory;
use super::system::System;
use super::weighted::Weighted;

/// What a domain is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainOptions {
    /// Which CPU its members run on.
    pub cpu: u32,
    /// How it is scheduled. Whoever opens a domain that nobody uses decides that.
    pub schedule: Options,
}

impl DomainOptions {
    /// That CPU, scheduled as the document has it.
    #[must_use]
    pub fn on(cpu: u32) -> Self {
        Self { cpu, schedule: Options::default() }
    }
}

impl Default for DomainOptions {
    /// The CPU that the caller runs on now.
    fn default() -> Self {
        let CpuId(cpu) = Linux::cpu();
        Self::on(cpu)
    }
}

/// A CPU that threads share, of all processes of this user that have opened it under this name; or,
/// if it is [private](Self::private), of a process and of what that starts.
///
/// Not for as long as it lives only: memberships keep it open.
#[derive(Clone, Debug)]
pub struct Domain {
    memory: Memory,
    cpu: u32,
    process: u32,
    private: Option<u32>,
}

/// The name of a private domain, but for the number of its file.
const INHERITED: &str = "/proc/self/fd/";

/// A member, as a report shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// Whom it shares its part with.
    pub group: Group,
    /// Its part, beside others'.
    pub weight: u32,
    /// What it may expect.
    pub standing: Standing,
    /// How often it was demoted, for each of [`Demotion::ALL`].
    pub demotions: [u32; Demotion::ALL.len()],
}

impl Domain {
    /// Opens a domain; makes it where nobody uses it. Waits for a second at the most, for somebody
    /// who is just making it. The file of a name stays, for who comes next.
    ///
    /// Also takes the [name of a private domain](Self::private_name): its CPU is the one that is
    /// said here, which all are to say.
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

    /// Makes a domain of this process, and of those that it starts from now on: they inherit its
    /// file, which has no name, whoever's they are. Nothing is left of it when the last of them has
    /// ended, however that ends.
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

    /// What [`open`](Self::open) takes for a private domain, in the process that made it and in
    /// those that it starts, while they have that file. `None`: it is none.
    #[must_use]
    pub fn private_name(&self) -> Option<String> {
        self.private.map(|number| format!("{INHERITED}{number}"))
    }

    /// Whether a domain may have that name, to be told before it is opened.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(fine)
    }

    /// Opens, of the domains of that name on those CPUs, the one whose members weigh the least in
    /// all, the first of several: for a thread that may run on any of them, and is to be as well
    /// off as others are. It is to join soon, as who comes meanwhile finds the same. Each domain is
    /// made where nobody uses it, and waited for as by [`open`](Self::open).
    ///
    /// # Errors
    ///
    /// See [`OpenError`]: of the first that can't be opened.
    ///
    /// # Panics
    ///
    /// If there are no CPUs.
    pub fn open_lightest(name: &str, cpus: &[u32], schedule: Options) -> Result<Self, OpenError> {
        let open = |&cpu: &u32| Self::open(name, DomainOptions { cpu, schedule });
        let mut domains = cpus.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let lightest = Domains::of(domains.iter().map(Self::load).collect()).join(0);
        Ok(domains.swap_remove(lightest))
    }

    /// What its members weigh in all, those that have ended left out.
    fn load(&self) -> u64 {
        let members = self.members().into_iter();
        let living = members.filter(|member| !Linux::ended(ThreadId(member.thread)));
        living.map(|member| u64::from(member.weight)).sum()
    }

    /// The calling thread joins, with a weight ([`WEIGHT`](super::WEIGHT) is that of nice 0) of its
    /// own or of its group. It is pinned to the CPU of the domain, and stays so when it has left,
    /// or where there is no room. One membership a thread.
    ///
    /// # Errors
    ///
    /// See [`JoinError`].
    pub fn join(&self, group: Group, weight: u32) -> Result<Membership, JoinError> {
        let memory = self.admit()?;
        let baton = Baton::join(memory, System, group, weight)?;
        Ok(Membership { baton })
    }

    /// The calling thread is to run here.
    fn admit(&self) -> Result<Memory, JoinError> {
        if process::id() != self.process {
            return Err(JoinError::Forked);
        }
        pin(self.cpu).map_err(|_| JoinError::Cpu(self.cpu))?;
        Ok(self.memory.clone())
    }

    /// The calling thread joins by weights: it has no turns, but runs when the kernel likes, and
    /// weighs the more the more important its work is, among those of its group that have joined
    /// so. All of a group weigh what they would have together. It is told others' releases. For
    /// loops that are [boosted](super::Booster) when they are late.
    ///
    /// It is pinned to the CPU of the domain, and stays so when it has left. What weighs is its
    /// nice value, from 12 less than it was to 12 more; what it starts has that, too. `weight` is
    /// beside others of the group: for how much it counts among them. One membership a thread.
    ///
    /// # Errors
    ///
    /// See [`JoinError`]: [`Weight`](JoinError::Weight), if it shares a group and may not weigh
    /// more.
    pub fn weigh(&self, group: Group, weight: u32) -> Result<Weighted, JoinError> {
        Weighted::join(self.admit()?, group, weight)
    }

    /// Which CPU it is.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// How it is scheduled: as who made it had it.
    #[must_use]
    pub fn options(&self) -> Options {
        self.memory.header.options()
    }

    /// How often its members took turns, since it was made.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.memory.turns()
    }

    /// How many of its members were found dead, since it was made.
    #[must_use]
    pub fn died(&self) -> u64 {
        self.memory.died()
    }

    /// Its members, as they are seen from outside.
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

/// The number of the file of which that is the private name.
fn inherited(name: &str) -> Option<u32> {
    name.strip_prefix(INHERITED)?.parse().ok()
}

/// A thread's part in a domain: its `coop_poll`. It leaves when this is dropped. In another thread,
/// as in the child of a fork, it is [`Alone`](super::Alone).
#[derive(Debug)]
pub struct Membership {
    baton: Baton<Linux, Memory, System>,
}

impl Membership {
    /// The thread, as reports show it; `None` if its place was taken since, until it polls.
    #[must_use]
    pub fn status(&self) -> Option<MemberStatus> {
        status(self.baton.page(), self.baton.place())
            .filter(|status| status.thread == Linux::thread().0)
    }

    /// How the domain is scheduled.
    #[must_use]
    pub fn options(&self) -> Options {
        *self.baton.options()
    }
}

impl Cooperate for Membership {
    fn poll(&mut self, ask: Ask, wait: &mut dyn FnMut(Option<u64>)) -> Answer {
        self.baton.poll(ask, wait)
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
