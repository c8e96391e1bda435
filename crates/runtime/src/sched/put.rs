//! Submission of a task: the arguments of [`Crew::submit`](super::Crew::submit) and
//! [`Worker::push`](super::Worker::push) other than the task.

use core::cell::Cell;

/// How a task is submitted. [`Put::PLAIN`] has the usual values:
///
/// ```
/// use antiphon_runtime::sched::{Put, Room};
///
/// let urgent = Put { rank: Some(0), ..Put::PLAIN };
/// let never_refused = Put { room: Room::Make, ..Put::PLAIN };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// A deadline, a priority, or a stage: the policy defines the meaning of a rank, and most
    /// policies ignore it.
    pub rank: Option<u64>,
    /// The action if there is no room.
    pub room: Room,
    /// When resting workers are woken.
    pub wake: Wake<'a>,
    /// Whether a worker puts the task where tasks from outside go, and not into its own queue.
    pub outside: bool,
}

/// What happens to a task for which there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// The caller gets the task back.
    Refuse,
    /// The caller sleeps until there is room, and gets the task back only if the crew is closed. A
    /// worker that has a seat would wait for itself: it gets the task back at once.
    Wait,
    /// Room is made. The task is never refused.
    Make,
}

/// When resting workers are woken for a task.
#[derive(Clone, Copy, Debug)]
pub enum Wake<'a> {
    /// At once: one worker.
    Now,
    /// Later: the task is added to this count, if other workers can find it. The caller
    /// [tells](super::Crew::tell) the workers of all tasks that it has counted.
    Later(&'a Cell<usize>),
}

impl Put<'_> {
    /// No rank; wakes a worker, and may be refused.
    pub const PLAIN: Self =
        Self { rank: None, room: Room::Refuse, wake: Wake::Now, outside: false };
}
