//! Plain memory, checked for data races.

use std::cell::{RefCell, UnsafeCell};
use std::fmt;

use crate::clock::{Id, SLOTS};
use crate::context;
use crate::execution::Execution;
use crate::model::FailureKind;

/// A plain variable: two accesses of which one writes must be ordered by happens-before.
///
/// Data that a lock protects in a model. Accesses are not visible operations: they cost the checker
/// nothing.
pub struct Data<T> {
    value: UnsafeCell<T>,
    accesses: RefCell<Accesses>,
}

/// For the last write and each thread's last read: the first event of the thread after the access.
#[derive(Default)]
struct Accesses {
    written: Option<Id>,
    read: [u16; SLOTS],
}

impl<T> Data<T> {
    /// Creates a variable that holds `value`.
    pub const fn new(value: T) -> Self {
        let accesses = Accesses { written: None, read: [0; SLOTS] };
        Self { value: UnsafeCell::new(value), accesses: RefCell::new(accesses) }
    }

    /// Reads the variable.
    ///
    /// `look` must not perform visible operations.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.check(false);
        // SAFETY: threads of a model run one at a time, on one OS thread (`Data` is not `Sync`),
        // and switch at visible operations only.
        look(unsafe { &*self.value.get() })
    }

    /// Changes the variable.
    ///
    /// `change` must not perform visible operations, nor access this variable in another way.
    pub fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        self.check(true);
        // SAFETY: as in `with`.
        change(unsafe { &mut *self.value.get() })
    }

    /// Writes the variable.
    pub fn set(&self, value: T) {
        self.with_mut(|old| *old = value);
    }

    /// Reads the variable.
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.with(|value| *value)
    }

    fn check(&self, writes: bool) {
        let fine = context::with(|execution| {
            self.accesses.borrow_mut().add(execution, writes) || std::thread::panicking()
        });
        if !fine {
            context::stop();
        }
    }
}

impl Accesses {
    /// Records an access of the current thread; returns `false` if it races.
    fn add(&mut self, execution: &mut Execution, writes: bool) -> bool {
        if execution.over {
            return true;
        }
        let me = execution.next_id();
        let known = execution.threads[execution.current].before;
        let ordered = |id: Id| id.thread == me.thread || known.covers(id);
        let other =
            self.written.filter(|&id| !ordered(id)).map(|id| (id, "written")).or_else(|| {
                let reads = self.read.iter().enumerate().filter(|_| writes);
                let mut reads = reads.map(|(thread, &index)| Id { thread: thread as u16, index });
                reads.find(|&id| id.index > 0 && !ordered(id)).map(|id| (id, "read"))
            });
        if let Some((id, done)) = other {
            let doing = if writes { "writes" } else { "reads" };
            let what = format!(
                "thread {} {doing} plain data that thread {} has {done} (before its step {}), \
                 and nothing orders the two",
                me.thread, id.thread, id
            );
            execution.fail(FailureKind::DataRace, what);
            return false;
        }
        if writes {
            self.written = Some(me);
            self.read = [0; SLOTS];
        } else {
            self.read[usize::from(me.thread)] = me.index;
        }
        true
    }
}

impl<T> fmt::Debug for Data<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Data").finish_non_exhaustive()
    }
}
