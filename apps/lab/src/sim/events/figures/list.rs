//! The figures: what each compares, and the values that the document's text has of it. Its pictures
//! have more, which the text does not.
//!
//! Published times are cycles at 2.1 GHz (x64) and 1.1 GHz (phi): an interrupt takes 1,150 and 740,
//! and other times are multiples of that, as the text says.

use antiphon_sim::Delivery;

/// A line of a figure: a mechanism and how its interrupts are delivered.
pub type Line = (&'static str, Delivery);

/// A figure of the document.
pub struct Figure {
    pub number: u32,
    pub about: &'static str,
    pub machine: &'static str,
    /// Whether all waiters are notified at once.
    pub broadcast: bool,
    /// Whether it shows how far apart the waiters of a round are, instead of when each is notified.
    pub sigma: bool,
    pub lines: &'static [Line],
    /// Times that the text has, in nanoseconds.
    pub published: &'static [(&'static str, f64)],
    pub compared: &'static [Compared],
}

/// A statement of the document and the same of this model.
pub struct Compared {
    pub what: &'static str,
    pub document: &'static str,
    pub here: Here,
}

/// How a figure of the model is computed.
#[derive(Clone, Copy)]
pub enum Here {
    /// The mean of the first by the mean of the second.
    Mean(Line, Line),
    Median(Line, Line),
    Sigma(Line, Line),
    /// The mean of the first less that of the second, in cycles of x64.
    Cycles(Line, Line),
}

/// The clock of x64, in cycles a nanosecond.
pub const X64_GHZ: f64 = 2.1;

const X64: &str = "nemo-64c";
const PHI: &str = "nemo-228t";

const fn line(subject: &'static str) -> Line {
    (subject, Delivery::Kernel)
}

const IPI: Line = line("ipi");
const USER: Line = line("mutex-condvar");
const FUTEX: Line = line("event-unpolled");
const QUEUED: Line = line("kernel-condvar");
const KICK: Line = line("metal-condvar");
const BATCH: Line = line("metal-condvar-batched");
const TREE: Line = line("metal-broadcast");
const PERCPU: Line = line("metal-condvar-percpu");
const WAKE: Line = line("metal-message-wake");
const MESSAGE: Line = line("metal-message");
const DIRECT: Line = line("metal-direct");
const SPIN: Line = line("spin");
const REMOTE: Line = ("ipi", Delivery::RemoteSyscall);
const REMOTE_MESSAGE: Line = ("metal-message", Delivery::RemoteSyscall);

const USERS: &[Line] = &[USER, FUTEX, IPI];
const ONE: &[Line] = &[USER, FUTEX, QUEUED, KICK, PERCPU, WAKE, IPI];
const MANY: &[Line] = &[USER, FUTEX, QUEUED, KICK, BATCH, TREE, PERCPU, WAKE, IPI];
const MESSAGES: &[Line] = &[MESSAGE, DIRECT, IPI];

const fn compared(what: &'static str, document: &'static str, here: Here) -> Compared {
    Compared { what, document, here }
}

use Here::{Cycles, Mean, Median, Sigma};

/// How many times as long as an interrupt a condition variable and a futex take, by the document.
const fn to_interrupts(condvar: &'static str, futex: &'static str) -> [Compared; 2] {
    [
        compared("condition variable, to an interrupt", condvar, Mean(USER, IPI)),
        compared("futex, to an interrupt", futex, Mean(FUTEX, IPI)),
    ]
}

/// The wake-ups of a kernel, which has the same factors on both machines.
const WAKES: &[Compared] = &[
    compared("user level, to a kernel's: median", "2 times", Median(USER, QUEUED)),
    compared("user level, to a kick", "over 4 times", Mean(USER, KICK)),
    compared("user level, to a wake by its own CPU", "", Mean(USER, PERCPU)),
    compared("user level, to a message that wakes", "", Mean(USER, WAKE)),
];

/// How many times as long as kicks one by one a broadcast at user level takes, by the document; and
/// the same of the ways that the document does not have.
const fn broadcasts(kicks: &'static str) -> [Compared; 5] {
    [
        compared("user level, to kicks one by one", kicks, Mean(USER, KICK)),
        compared("user level, to one kick for all", "", Mean(USER, BATCH)),
        compared("user level, to a tree of kicks", "", Mean(USER, TREE)),
        compared("user level, to wakes by their CPUs", "", Mean(USER, PERCPU)),
        compared("user level, to a message that wakes", "", Mean(USER, WAKE)),
    ]
}

/// A figure of wake-ups of one waiter on x64.
const UNICAST: Figure = Figure {
    number: 0,
    about: "",
    machine: X64,
    broadcast: false,
    sigma: false,
    lines: &[],
    published: &[],
    compared: &[],
};
const BROADCAST: Figure = Figure { broadcast: true, ..UNICAST };

/// The figures, in the document's order. Figures 1, 2, 14 and 19 are diagrams or a table.
pub static FIGURES: [Figure; 17] = [
    Figure {
        number: 3,
        about: "wake-ups of one waiter at user level, and interrupts",
        lines: USERS,
        published: &[("condition variable, futex", 8_762.0), ("interrupt", 548.0)],
        compared: &to_interrupts("16 times", "16 times"),
        ..UNICAST
    },
    Figure {
        number: 3,
        about: "the same on phi",
        machine: PHI,
        lines: USERS,
        published: &[("condition variable", 21_527.0), ("futex", 10_764.0), ("interrupt", 673.0)],
        compared: &to_interrupts("32 times", "16 times"),
        ..UNICAST
    },
    Figure {
        number: 4,
        about: "broadcasts at user level, and interrupts",
        lines: USERS,
        published: &[("condition variable", 42_714.0), ("futex", 16_429.0), ("interrupt", 548.0)],
        compared: &to_interrupts("78 times", "30 times"),
        ..BROADCAST
    },
    Figure {
        number: 4,
        about: "the same on phi",
        machine: PHI,
        lines: USERS,
        published: &[
            ("condition variable", 2_690_909.0),
            ("futex", 1_345_455.0),
            ("interrupt", 673.0),
        ],
        compared: &to_interrupts("4,000 times", "2,000 times"),
        ..BROADCAST
    },
    Figure {
        number: 7,
        about: "interrupts from the first CPU to all others",
        lines: &[IPI],
        published: &[("interrupt, the least", 548.0)],
        ..UNICAST
    },
    Figure {
        number: 8,
        about: "a kernel's wake-ups of one waiter",
        lines: ONE,
        published: &[("condition variable with kick", 2_190.0)],
        compared: WAKES,
        ..UNICAST
    },
    Figure {
        number: 9,
        about: "the same on phi",
        machine: PHI,
        lines: ONE,
        published: &[("condition variable with kick", 5_382.0)],
        compared: WAKES,
        ..UNICAST
    },
    Figure {
        number: 10,
        about: "a kernel's broadcasts",
        lines: MANY,
        published: &[("condition variable with kicks", 4_271.0)],
        compared: &broadcasts("10 times"),
        ..BROADCAST
    },
    Figure {
        number: 11,
        about: "the same on phi",
        machine: PHI,
        lines: MANY,
        published: &[("condition variable with kicks", 168_182.0)],
        compared: &broadcasts("16 times"),
        ..BROADCAST
    },
    Figure {
        number: 12,
        about: "the spread of a broadcast; figure 5 has the first two and the interrupt",
        sigma: true,
        lines: MANY,
        compared: &[
            compared("condition variable, to an interrupt", "3 orders", Sigma(USER, IPI)),
            compared("user level, to kicks one by one", "10 times", Sigma(USER, KICK)),
            compared("user level, to one kick for all", "", Sigma(USER, BATCH)),
            compared("user level, to a tree of kicks", "", Sigma(USER, TREE)),
            compared("user level, to wakes by their CPUs", "", Sigma(USER, PERCPU)),
            compared("user level, to a message that wakes", "", Sigma(USER, WAKE)),
        ],
        ..BROADCAST
    },
    Figure {
        number: 13,
        about: "the same on phi, as in figure 6; an interrupt has no spread in the model",
        machine: PHI,
        sigma: true,
        lines: MANY,
        compared: &[
            compared("user level, to kicks one by one", "10 times", Sigma(USER, KICK)),
            compared("user level, to one kick for all", "", Sigma(USER, BATCH)),
            compared("user level, to a tree of kicks", "", Sigma(USER, TREE)),
            compared("user level, to wakes by their CPUs", "", Sigma(USER, PERCPU)),
            compared("user level, to a message that wakes", "", Sigma(USER, WAKE)),
        ],
        ..BROADCAST
    },
    Figure {
        number: 15,
        about: "active messages to one CPU",
        lines: MESSAGES,
        published: &[("message", 595.0)],
        compared: &[
            compared("message, to an interrupt: median", "1.05 times", Median(MESSAGE, IPI)),
            compared("message, beyond an interrupt", "100 cycles", Cycles(MESSAGE, IPI)),
            compared("with its own vector: median", "1.05 times", Median(DIRECT, IPI)),
        ],
        ..UNICAST
    },
    Figure {
        number: 16,
        about: "active messages to all",
        lines: MESSAGES,
        compared: &[
            compared("message, beyond an interrupt", "tens of cycles", Cycles(MESSAGE, IPI)),
            compared("with its own vector, beyond it", "tens of cycles", Cycles(DIRECT, IPI)),
        ],
        ..BROADCAST
    },
    Figure {
        number: 17,
        about: "the spread of active messages to all",
        sigma: true,
        lines: MESSAGES,
        compared: &[compared("message, to an interrupt", "nearly identical", Sigma(MESSAGE, IPI))],
        ..BROADCAST
    },
    Figure {
        number: 18,
        about: "interrupts, and polling",
        lines: &[SPIN, IPI],
        compared: &[compared("interrupt, beyond polling", "1,000 cycles", Cycles(IPI, SPIN))],
        ..UNICAST
    },
    Figure {
        number: 20,
        about: "the remote system call",
        lines: &[SPIN, REMOTE, REMOTE_MESSAGE, IPI],
        published: &[("remote system call", 311.0)],
        compared: &[
            compared("interrupt, beyond it", "497 cycles", Cycles(IPI, REMOTE)),
            compared("it, beyond polling", "they overlap", Cycles(REMOTE, SPIN)),
        ],
        ..UNICAST
    },
    Figure {
        number: 20,
        about: "the same on phi, which the document does not show",
        machine: PHI,
        lines: &[SPIN, REMOTE, REMOTE_MESSAGE, IPI],
        compared: &[compared("it, to an interrupt", "", Mean(REMOTE, IPI))],
        ..UNICAST
    },
];
