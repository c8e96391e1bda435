//! The records that the loader and the kernel's part share, written once for both languages.

/// Defines records of numbers for Rust, and the same for C.
macro_rules! records {
    ($($(#[$about:meta])* $name:ident, $c:literal {
        $($(#[$doc:meta])* $field:ident: $kind:ident,)*
    })*) => {
        $($(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(C)]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
        })*

        /// Returns the records as a header for C.
        #[must_use]
        pub fn c_header() -> String {
            let mut text = String::from("/* Generated from src/shared.rs. */\n#pragma once\n");
            for (name, number) in LIMITS {
                text += &format!("#define {name} {number}\n");
            }
            $(text += concat!("struct ", $c, " {\n");
            $(text += &format!("\t__{} {};\n", stringify!($kind), stringify!($field));)*
            text += "};\n";)*
            text
        }
    };
}

/// The most CPUs.
pub const MAX_CPUS: u32 = 1024;
/// The most last-level caches. A power of 2.
pub const MAX_LLCS: u32 = 64;
/// The most registered threads of all processes.
pub const MAX_THREADS: u32 = 512;
/// The most processes with registered threads.
pub const MAX_PROCESSES: u32 = 1024;

/// The events that are kept.
pub const MAX_EVENTS: u32 = 8192;

/// How many processes of one user may have a page. Root is not limited.
pub const PROCESSES_PER_USER: usize = 64;
/// How many processes may have one.
pub const PROCESSES: usize = 512;
/// How many threads of one user may be registered.
pub const THREADS_PER_USER: u64 = 128;

const LIMITS: [(&str, u32); 5] = [
    ("MAX_CPUS", MAX_CPUS),
    ("MAX_LLCS", MAX_LLCS),
    ("MAX_THREADS", MAX_THREADS),
    ("MAX_PROCESSES", MAX_PROCESSES),
    ("MAX_EVENTS", MAX_EVENTS),
];

records! {
    /// The scheduler's parameters; those in nanoseconds end in `_ns`.
    Parameters, "parameters" {
        /// Each ready thread has a turn within it.
        period_ns: u64,
        /// The shortest turn.
        min_slice_ns: u64,
        /// A cooperative thread is preempted and demoted so long after the end of its slice.
        slack_ns: u64,
        /// How far ahead of its share a thread may be that is served on time.
        threshold_ns: u64,
        /// How long a preemption is put off for a critical section.
        grace_ns: u64,
        /// How far a release may be from the present.
        horizon_ns: u64,
        /// The average time between two kicks for one thread, at least.
        kick_ns: u64,
        /// Turns that are shorter are ended by a timer, as the kernel looks at its ticks only.
        tick_ns: u64,
        /// For how long threads count as spinning after they were last seen to, and give their CPU
        /// to one that waits; 0: they do not.
        spun_ns: u64,
        /// How late a due thread is, or how far another one is behind in virtual time, when CPUs
        /// of another last-level cache take it.
        lag_ns: u64,
        /// How many last-level caches there are: each has its own queues. When it is loaded, 1
        /// stands for one of all CPUs, and any other number for those of the machine.
        llcs: u64,
        /// How many threads a user may register.
        per_user: u64,
        /// For how many steps a thread stops while it joins or leaves a group. For tests.
        hesitation: u64,
        /// 0: no thread is demoted for its share. For measurements.
        police: u32,
        /// 0: no CPU is kicked for a thread that is due. For measurements.
        kick: u32,
        /// Not 0: no thread is run, so that the kernel unloads the scheduler. For tests.
        stall: u32,
        /// Not 0: the first [`MAX_EVENTS`] events are kept, to be compared with another policy.
        trace: u32,
    }

    /// What the scheduler has decided since it was started.
    Counters, "counters" {
        /// Turns by release.
        timely: u64,
        /// Turns by virtual time.
        fair: u64,
        /// CPUs that were kicked for a thread that was due.
        kicks: u64,
        /// Kicks that were not sent because their thread had had too many.
        kicks_refused: u64,
        /// CPUs that threads gave to one for which they spun.
        spun_for: u64,
        /// Preemptions that were put off for a critical section.
        graces: u64,
        /// Demotions of threads that ran beyond their slice.
        overrun: u64,
        /// Demotions of threads that slept without a poll.
        slept: u64,
        /// Demotions of threads that had more than their share.
        share: u64,
        /// Charges of members whose group was gone, and groups whose key was. There are none,
        /// unless a lock is missing.
        strays: u64,
        /// Threads that are registered.
        registered: u64,
        /// Registrations that were refused.
        refused: u64,
        /// Events that there were, if they are kept.
        events: u64,
        /// Places of threads below this one are or were in use.
        high: u64,
        /// Why the kernel has unloaded the scheduler; 0: it has not.
        ended: u64,
    }

    /// An event: what the policy was told, or has decided.
    Event, "event" {
        /// When, in nanoseconds of `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Of a turn: 1 if it is by the release. Of a charge: the CPU time. Of a poll: the release.
        value: u64,
        /// Of a poll: the importance of the thread's work.
        importance: u64,
        /// The thread's number.
        pid: u32,
        /// 1: a turn begins. 2: a thread is charged. 3: a poll is seen. 4: a thread goes on that
        /// had the CPU before one of a higher class.
        kind: u32,
    }

    /// A registered thread.
    Record, "thread" {
        /// Its release; 0: it has told none, or is not cooperative.
        release_ns: u64,
        /// The CPU time that it has had.
        ran_ns: u64,
        /// Its turns by release.
        timely: u64,
        /// How late these turns began, in total.
        late_ns: u64,
        /// How late the latest of them began.
        latest_ns: u64,
        /// When it was registered, in nanoseconds of `CLOCK_MONOTONIC`.
        begun_ns: u64,
        /// Its number; 0: a free place.
        pid: u32,
        /// The number of its process.
        tgid: u32,
        /// An `antiphon_hints::Standing`.
        standing: u32,
        /// Its demotions for running beyond its slice.
        overrun: u32,
        /// Its demotions for sleeping without a poll.
        slept: u32,
        /// Its demotions for having more than its share.
        share: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_states_the_limits() {
        let manual = include_str!("../../../docs/man/antiphon-sched.8");
        let slots = antiphon_hints::SLOTS - 1;
        assert!(manual.contains(&format!(
            "A process has {slots} slots, a user {PROCESSES_PER_USER} processes (root is not \
             limited) and {THREADS_PER_USER} registered threads."
        )));
        assert_eq!(PROCESSES, MAX_THREADS as usize);
        assert!(manual.contains(&format!("There are {PROCESSES} of each in all")));
        for path in [antiphon_hints::SOCKET, antiphon_hints::STATUS] {
            assert!(manual.contains(path), "{path}");
        }
    }

    #[test]
    fn the_unit_has_the_privileges_that_the_manual_names() {
        let manual = include_str!("../../../docs/man/antiphon-sched.8");
        let unit = include_str!("../systemd/antiphon-sched.service");
        let line = unit.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
        let all: Vec<_> = line.expect("privileges").split(' ').collect();
        assert_eq!(all, ["CAP_BPF", "CAP_PERFMON", "CAP_CHOWN"]);
        assert!(
            manual.contains("takes CAP_BPF and CAP_PERFMON, and CAP_CHOWN with\n.BR \\-\\-group")
        );
    }

    #[test]
    fn the_records_are_the_same_in_c() {
        let header = c_header();
        for name in ["parameters", "counters", "event", "thread"] {
            assert!(header.contains(&format!("struct {name} {{\n")), "{header}");
        }
        let fields = |kind| header.matches(&format!("\t__{kind} ")).count();
        let bytes = size_of::<Parameters>() + size_of::<Counters>() + size_of::<Record>();
        let bytes = bytes + size_of::<Event>();
        assert_eq!(8 * fields("u64") + 4 * fields("u32"), bytes, "{header}");
    }
}
