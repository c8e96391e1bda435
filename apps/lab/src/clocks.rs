//! Code that takes timestamps, shared by `bench clock` and `sim clock`.
//!
//! | subject | an operation |
//! |---|---|
//! | `shared` | adds to a counter that all threads add to |
//! | `counter` | reads the counter of its CPU |
//! | `clock` | reads the monotonic clock, which is one for all |
//! | `ordo` | takes a stamp whose order with others is known, or known to be uncertain |
//! | `ordo-new` | takes a stamp that is certainly after the thread's last one |
//! | `tl2-shared` | moves 1 from one word to another in a transaction, by the shared counter |
//! | `tl2-ordo` | the same, by stamps |

use std::hint::black_box;

use antiphon_platform::{Clock, Platform};
use antiphon_sync::clock::tl2::{self, Transaction, Word};
use antiphon_sync::clock::{Ordo, SharedCounter, Stamps};

use antiphon_report::stats::Random;

/// Number of words for each thread: large enough that few are written while another thread reads
/// them.
const WORDS: usize = 64;

/// A way to take timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The name in the table.
    pub name: &'static str,
    /// The subject that it is compared with.
    pub reference: &'static str,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Shared,
    Counter,
    Clock,
    Ordo,
    OrdoNew,
    TransactionShared,
    TransactionOrdo,
}

const fn subject(name: &'static str, reference: &'static str, what: What) -> Subject {
    Subject { name, reference, what }
}

/// All subjects.
pub const SUBJECTS: [Subject; 7] = [
    subject("shared", "shared", What::Shared),
    subject("counter", "shared", What::Counter),
    subject("clock", "shared", What::Clock),
    subject("ordo", "shared", What::Ordo),
    subject("ordo-new", "shared", What::OrdoNew),
    subject("tl2-shared", "tl2-shared", What::TransactionShared),
    subject("tl2-ordo", "tl2-shared", What::TransactionOrdo),
];

/// Repeats an operation in a thread as often as it likes. The operation returns how often it had to
/// be retried.
pub trait Repeat {
    /// The result of the repetition.
    type Done;
    /// Repeats the operation.
    fn repeat(self, operation: impl FnMut() -> u32) -> Self::Done;
}

/// A word on its own cache line.
#[repr(align(64))]
struct Line<P: Platform>(Word<P>);

/// The state that threads share.
pub struct Site<P: Platform> {
    shared: SharedCounter<P>,
    ordo: Ordo<P>,
    words: Vec<Line<P>>,
}

impl<P: Platform> Site<P> {
    /// The state for `threads` threads, with a clock that was measured.
    pub fn new(threads: usize, ordo: Ordo<P>) -> Self {
        let words = (0..threads * WORDS).map(|_| Line(Word::new())).collect();
        Self { shared: SharedCounter::new(), ordo, words }
    }

    /// Repeats an operation of this subject as thread number `thread`.
    pub fn run<R: Repeat>(&self, subject: Subject, thread: usize, repeat: R) -> R::Done {
        let once = |stamp: u64| {
            black_box(stamp);
            0
        };
        match subject.what {
            What::Shared => repeat.repeat(|| once(self.shared.next())),
            What::Counter => repeat.repeat(|| once(P::counter())),
            What::Clock => repeat.repeat(|| once(P::now(Clock::Monotonic))),
            What::Ordo => repeat.repeat(|| once(self.ordo.now())),
            What::OrdoNew => {
                let mut last = 0;
                repeat.repeat(|| {
                    last = self.ordo.new_time(last);
                    once(last)
                })
            }
            What::TransactionShared => self.transfers(&self.shared, thread, repeat),
            What::TransactionOrdo => self.transfers(&self.ordo, thread, repeat),
        }
    }

    fn transfers<'a, S: Stamps, R: Repeat>(
        &'a self,
        stamps: &'a S,
        thread: usize,
        repeat: R,
    ) -> R::Done {
        let mut random = Random(thread as u64);
        let mut any = || (random.draw() % self.words.len() as u64) as usize;
        repeat.repeat(|| {
            let [from, to] = [any(), any()].map(|place| &self.words[place].0);
            let move_one =
                |transfer: &mut Transaction<'a, P, S, 2>| transfer_one(transfer, from, to);
            tl2::atomically(stamps, move_one).1
        })
    }

    /// Returns whether the transfers preserved the sum.
    pub fn is_sound(&self) -> bool {
        self.words.iter().fold(0, |sum: u64, Line(word)| sum.wrapping_add(word.get())) == 0
    }
}

fn transfer_one<'a, P: Platform, S: Stamps>(
    transfer: &mut Transaction<'a, P, S, 2>,
    from: &'a Word<P>,
    to: &'a Word<P>,
) -> Result<(), tl2::Abort<'a, P>> {
    let less = transfer.read(from)?.wrapping_sub(1);
    transfer.write(from, less);
    let more = transfer.read(to)?.wrapping_add(1);
    transfer.write(to, more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use antiphon_linux::Linux;

    struct Thousand;

    impl Repeat for Thousand {
        type Done = u32;

        fn repeat(self, mut operation: impl FnMut() -> u32) -> u32 {
            (0..1_000).map(|_| operation()).sum()
        }
    }

    #[test]
    fn each_subject_works_and_what_is_moved_arrives() {
        // One thread, on any CPU, with an uncertainty of one tick.
        let site = Site::<Linux>::new(1, Ordo::new(1));
        for subject in SUBJECTS {
            site.run(subject, 0, Thousand);
            assert!(SUBJECTS.iter().any(|one| one.name == subject.reference));
        }
        assert!(site.is_sound());
        assert!(site.words.iter().any(|Line(word)| word.get() != 0), "something was moved");
    }
}
