//! The host's scheduler: which virtual CPU has a CPU ([`guests`](crate::guests)).
//!
//! ```text
//!   has a thread ──► queue ──switch──► on its CPU ──► has none: halted
//!                      ▲                  │  │
//!                      └── slice over ────┘  └── section: put off, at most by the grace
//!                      └── spins in vain ─┘
//! ```
//!
//! Each CPU has one queue, in order of arrival. Virtual CPUs stay on their CPUs. A halted one that
//! gets a thread waits for the end of the slice of the one that is on the CPU.

use std::mem::{replace, take};

use crate::events::Event;
use crate::guests::{Cpu, Hosting};
use crate::os::Core;
use crate::outcome::Steals;
use crate::thread::State;
use crate::world::World;
use crate::{Owns, SimU32};

impl World {
    /// The host, and the CPU and guest of a thread; `None` without guests.
    fn host_of(&self, thread: usize) -> Option<(&Hosting<Core>, u32, u32)> {
        let host = self.hosting.as_ref()?;
        Some((host, self.threads[thread].core, self.threads[thread].guest))
    }

    /// The virtual CPU of a thread; without guests, its core.
    fn virtual_cpu(&self, thread: usize) -> &Core {
        match self.host_of(thread) {
            Some((host, core, guest)) if host.cpus[core as usize].guest != guest => {
                &host.cpus[core as usize].off[guest as usize]
            }
            _ => &self.cores[self.threads[thread].core as usize],
        }
    }

    /// Returns whether a thread has its core, as far as its system can tell: without a hint, it
    /// takes a virtual CPU for a CPU.
    pub(crate) fn seems_to_run(&self, thread: usize) -> bool {
        match &self.hosting {
            Some(host) if !host.guests.preempted => {
                self.virtual_cpu(thread).current == Some(thread)
            }
            _ => self.has_its_core(thread),
        }
    }

    /// The number of announced spinners of the running thread's system.
    pub(crate) fn spinners(&self) -> &'static SimU32 {
        match self.host_of(self.me()) {
            Some((_, _, guest)) => &self.spinners[guest as usize].0,
            None => &self.process.spinners.0,
        }
    }

    /// Returns whether the system of a CPU has been told that another virtual CPU wants it.
    pub(crate) fn knows_rivals(&self, number: u32) -> bool {
        let told = self.hosting.as_ref().filter(|host| host.guests.preempted);
        told.is_some_and(|host| !host.cpus[number as usize].queue.is_empty())
    }

    /// The time for which the running thread's virtual CPU keeps its CPU, as far as its system has
    /// been told.
    pub(crate) fn host_slice_left_ns(&self) -> u32 {
        let core = self.my_core();
        match &self.hosting {
            Some(host) if self.knows_rivals(core) => {
                let left_ns = host.cpus[core as usize].ends_ns.saturating_sub(self.now_ns);
                u32::try_from(left_ns).unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        }
    }

    /// Queues a thread whose virtual CPU does not have its CPU. Returns `false`, and does nothing,
    /// if it has.
    pub(crate) fn arrives_off(&mut self, thread: usize) -> bool {
        let (number, guest) = (self.threads[thread].core, self.threads[thread].guest);
        let begins = self.threads[thread].turn == 0;
        let due = take(&mut self.threads[thread].due);
        let Some(host) = &mut self.hosting else { return false };
        let cpu = &mut host.cpus[number as usize];
        if cpu.guest == guest {
            return false;
        }
        if !begins {
            host.counts.of_woken += 1;
            self.threads[thread].woken_off = true;
        }
        let core = &mut cpu.off[guest as usize];
        let halted = core.current.is_none() && core.queue.is_empty();
        core.queue.push_back(thread);
        if halted {
            self.wants_cpu(number, guest, due);
        }
        true
    }

    /// Queues a virtual CPU that has a thread again; one that `due` says slept until now may get
    /// the CPU at once, or after the section of the thread that is on it.
    fn wants_cpu(&mut self, number: u32, guest: u32, due: bool) {
        let here = &self.cores[number as usize];
        let (is_idle, turn_ns) = (here.current.is_none(), self.now_ns.saturating_sub(here.back_ns));
        let Some(host) = &mut self.hosting else { return };
        let cpu = &mut host.cpus[number as usize];
        // GUEST-5.
        let had_ns = cpu.had_ns[cpu.guest as usize] + turn_ns;
        if due && host.guests.releases && cpu.had_ns[guest as usize] <= had_ns {
            host.counts.released += 1;
            cpu.queue.push_front(guest);
            if !cpu.put_off {
                cpu.ends_ns = self.now_ns;
                // Voids the foreseen end of the slice.
                cpu.slice = cpu.slice.wrapping_add(1);
                cpu.foreseen = false;
            }
        } else {
            cpu.queue.push_back(guest);
        }
        if is_idle {
            self.switch_guest(number);
        } else {
            self.foresee_host(number);
            self.foresee_yield(number);
        }
    }

    /// The cost to a thread of telling the host when its sleep ends.
    pub(crate) fn tell_release_ns(&self, deadline_ns: Option<u64>) -> u64 {
        let told = self.hosting.as_ref().is_some_and(|host| host.guests.releases);
        if told && deadline_ns.is_some() { self.machine.hit_ns } else { 0 }
    }

    /// Called when a thread that was woken gets its core.
    pub(crate) fn came_on(&mut self, thread: usize, waited_ns: u64) {
        if take(&mut self.threads[thread].woken_off)
            && let Some(host) = &mut self.hosting
        {
            host.counts.woken_ns += waited_ns;
        }
    }

    /// Gives the CPU of a virtual CPU that has halted to another, if one wants it.
    pub(crate) fn halts(&mut self, number: u32) {
        let host = self.hosting.as_ref();
        if host.is_some_and(|host| !host.cpus[number as usize].queue.is_empty()) {
            self.switch_guest(number);
        }
    }

    fn foresee_host(&mut self, number: u32) {
        let Some(host) = &mut self.hosting else { return };
        let cpu = &mut host.cpus[number as usize];
        if cpu.queue.is_empty() || replace(&mut cpu.foreseen, true) {
            return;
        }
        let at_ns = self.now_ns.max(cpu.ends_ns);
        self.events.push(at_ns, Event::Host { core: number, slice: cpu.slice });
    }

    /// Handles the end of a virtual CPU's slice, if it is still this slice. Returns `false` if all
    /// threads wait for ever.
    #[must_use]
    pub(crate) fn host_slice_over(&mut self, number: u32, slice: u32) -> bool {
        let is_this = |host: &Hosting<Core>| host.cpus[number as usize].slice == slice;
        if !self.hosting.as_ref().is_some_and(is_this) {
            return true;
        }
        if self.waits_for_ever() {
            return false;
        }
        let current = self.cores[number as usize].current;
        let in_section = current.is_some_and(|thread| self.threads[thread].sections > 0);
        let Some(host) = &mut self.hosting else { return true };
        let (guests, cpu) = (host.guests, &mut host.cpus[number as usize]);
        cpu.foreseen = false;
        if cpu.queue.is_empty() || cpu.due {
            return true;
        }
        if guests.sections && in_section {
            // GUEST-4.
            if !replace(&mut cpu.put_off, true) {
                host.counts.put_off += 1;
                let at_ns = self.now_ns + guests.grace_ns;
                self.events.push(at_ns, Event::Host { core: number, slice });
                return true;
            }
            host.counts.overrun += 1;
        }
        self.evict(number);
        true
    }

    /// Ends the slice of a virtual CPU: now, or after the step of its thread.
    fn evict(&mut self, number: u32) {
        if let Some(host) = &mut self.hosting {
            // GUEST-3: `slice_over` waits for a step.
            host.cpus[number as usize].due = true;
        }
        match self.cores[number as usize].current {
            Some(_) => self.slice_over(number),
            None => self.switch_guest(number),
        }
    }

    /// Called when the running thread has released its lock, in no section any more: gives a CPU
    /// back that it has only because of the section.
    pub(crate) fn gives_back(&mut self) {
        let number = self.my_core();
        let put_off = |host: &Hosting<Core>| host.cpus[number as usize].put_off;
        if self.hosting.as_ref().is_some_and(put_off) && self.threads[self.me()].sections == 0 {
            self.evict(number);
        }
    }

    /// Called when `thread`, which has lost its core, is stopped: takes the CPU from its virtual
    /// CPU, if it is the host that does so. Otherwise returns `false`.
    pub(crate) fn loses_cpu(&mut self, thread: usize) -> bool {
        let number = self.threads[thread].core;
        let Some(host) = &mut self.hosting else { return false };
        let cpu = &mut host.cpus[number as usize];
        if !take(&mut cpu.due) {
            return false;
        }
        cpu.debts_ns[cpu.guest as usize] += self.now_ns.saturating_sub(cpu.ends_ns);
        host.counts.preemptions += 1;
        host.counts.of_owners += u64::from(self.threads[thread].owns != Owns::No);
        self.switch_guest(number);
        true
    }

    /// Gives the virtual CPU of a spinner away, if another wants the CPU and no thread that the
    /// spinner may wait for is on one. Otherwise lets it spin on. Returns whether it did.
    pub(crate) fn yields_cpu(&mut self, thread: usize) -> bool {
        let number = self.threads[thread].core;
        if !self.knows_rivals(number) {
            return false;
        }
        if self.spins_for_none(thread) {
            let spinner = &mut self.threads[thread];
            spinner.turn = spinner.turn.wrapping_add(1);
            self.counts.yields += 1;
            if let Some(host) = &mut self.hosting {
                host.counts.yields += 1;
            }
            self.switch_guest(number);
            return true;
        }
        self.spins_on(thread);
        self.foresee_yield(number);
        false
    }

    /// Returns whether no thread of the spinner's guest is in a section and on a CPU, and none was
    /// for as long as a spinner is patient.
    fn spins_for_none(&self, thread: usize) -> bool {
        let State::Watching(watch) = self.threads[thread].state else { return false };
        let Some((host, _, guest)) = self.host_of(thread) else { return false };
        let owner = |(cpu, core): (&Cpu<Core>, &Core)| {
            let current = core.current.filter(|_| cpu.guest == guest);
            current.is_some_and(|current| self.threads[current].owns != Owns::No)
        };
        !self.has_changed(watch)
            && host.seen[guest as usize].stalls(self.now_ns)
            && !host.cpus.iter().zip(&self.cores).any(owner)
    }

    /// Gives a CPU to the next virtual CPU in its queue. The thread that has it, if any, is
    /// stopped.
    fn switch_guest(&mut self, number: u32) {
        self.charge(number);
        if let Some(thread) = self.cores[number as usize].current {
            self.is_left(thread);
        }
        let now_ns = self.now_ns;
        let Some(host) = &mut self.hosting else { return };
        let (guests, cpu) = (host.guests, &mut host.cpus[number as usize]);
        let Some(next) = cpu.queue.pop_front() else { return };
        let back_ns = now_ns + guests.switch_ns;
        let left = replace(&mut cpu.guest, next);
        let turn_ns = now_ns.saturating_sub(self.cores[number as usize].back_ns);
        cpu.had_ns[left as usize] += turn_ns;
        let mut core = take(&mut cpu.off[next as usize]);
        core.comes_back(&self.cores[number as usize], now_ns, back_ns);
        let core = replace(&mut self.cores[number as usize], core);
        let wants = core.current.is_some() || !core.queue.is_empty();
        cpu.off[left as usize] = core;
        if wants {
            cpu.queue.push_back(left);
        }
        // The first slice of a CPU has a random end.
        if wants || cpu.slice > 0 {
            let debt_ns = take(&mut cpu.debts_ns[next as usize]).min(guests.slice_ns / 2);
            cpu.ends_ns = back_ns + guests.slice_ns - debt_ns;
        }
        cpu.slice = cpu.slice.wrapping_add(1);
        (cpu.foreseen, cpu.due, cpu.put_off) = (false, false, false);
        match self.cores[number as usize].current {
            Some(thread) => self.goes_on(thread, number, back_ns),
            None => self.dispatch(number),
        }
        self.foresee_host(number);
    }

    /// Called when the virtual CPU of a thread loses its CPU, which the thread does not notice.
    fn is_left(&mut self, thread: usize) {
        let now_ns = self.now_ns;
        let left = &mut self.threads[thread];
        // A spinner that is back goes on to spin.
        left.yielded = true;
        left.spun_off_ns = left.state.spins().then_some(now_ns);
        let guest = u64::from(left.guest);
        self.record(thread, 15, guest);
    }

    /// Called when the running thread begins or ends to own a lock.
    pub(crate) fn owner_changes(&mut self, owns: Owns) {
        let (me, now_ns) = (self.me(), self.now_ns);
        let (core, guest) = (self.threads[me].core, self.threads[me].guest);
        let back_ns = self.cores[core as usize].back_ns;
        let Some(host) = &mut self.hosting else { return };
        let seen = &mut host.seen[guest as usize];
        if owns == Owns::Yes
            && let Some(off_ns) = self.threads[me].spun_off_ns.take()
            && (off_ns..=back_ns).contains(&seen.released_ns)
        {
            host.counts.of_next += 1;
        }
        seen.moves(owns == Owns::GivesBack, now_ns);
    }

    /// Returns whether the locks are to tell their sections.
    pub(crate) fn heeds_sections(&self) -> bool {
        self.hosting.as_ref().is_some_and(|host| host.guests.sections)
    }

    /// The counts of the host.
    pub(crate) fn steals(&mut self) -> Steals {
        self.hosting.as_mut().map_or_else(Steals::default, |host| take(&mut host.counts))
    }
}
