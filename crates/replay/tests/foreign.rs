//! Traces that no program wrote: every trace that a reader accepts can be planned and played.

use std::sync::Arc;

use antiphon_replay::{GLIBC, IDEAL, Plan, Play, Script, Subject, Work, middle, timeline};
use antiphon_sim::{Arbitration, Machine};
use antiphon_trace::{
    About, Cost, Error, Event, Lock, LockKind, Reader, Site, Tables, Thread, Trace, What, Writer,
};

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn place(&mut self, end: u64) -> u32 {
        self.below(end) as u32
    }

    fn what(&mut self) -> What {
        let (lock, site, thread) = (self.place(4), self.place(3), self.place(4));
        let (first, second) = (self.below(2) == 0, self.below(2) == 0);
        match self.below(14) {
            0 => What::Begins,
            1 => What::Ends,
            2 => What::Waits { lock, site },
            3 | 4 => What::Takes { lock, site, shared: first, tried: second },
            5 => What::GivesUp { lock },
            6 => What::Releases { lock },
            7 => What::Sleeps { condition: lock, site },
            8 => What::Wakes { condition: lock, notified: first },
            9 => What::Notifies { condition: lock, all: first },
            10 => What::Creates { thread },
            11 if first => What::Joins { thread },
            11 => What::Joined { thread },
            12 => What::Asked { ns: self.span() },
            _ => What::Off { blocked_ns: self.span(), queued_ns: self.span() },
        }
    }

    fn cost(&mut self) -> Cost {
        let code = self.below(256) as u8;
        let long = self.below(10) == 0;
        let mut ps = || if long { 1 << 56 } else { self.below(100_000) };
        Cost { code, before_ps: ps(), after_ps: ps(), timed: 1 }
    }

    /// A span: mostly short, sometimes the longest that can be written.
    fn span(&mut self) -> u64 {
        match self.below(40) {
            0 => u64::MAX,
            1 => 1 << self.below(64),
            _ => self.below(2_000),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        let mut at_ns = 0;
        (0..self.below(40))
            .map(|_| {
                at_ns += self.below(3_000);
                Event { at_ns, what: self.what() }
            })
            .collect()
    }

    /// A file of four threads, with tables or truncated.
    fn file(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &About::default())?;
        for thread in 0..4 {
            let mut events = self.events();
            if self.below(8) == 0 {
                let late = 1 << self.below(60);
                events.iter_mut().for_each(|event| event.at_ns += late);
            }
            writer.events(thread, &events)?;
        }
        let kinds = [LockKind::Mutex, LockKind::Spin, LockKind::RwLock, LockKind::Condition];
        let rest = self.below(4) == 0;
        let kind = |at: usize| if rest { LockKind::Rest } else { kinds[at] };
        let lock = |at| Lock { kind: kind(at), address: 0, process: 0 };
        let thread = |role| Thread { role, ..Thread::default() };
        if self.below(3) != 0 {
            writer.finish(&Tables {
                locks: (0..4).map(lock).collect(),
                sites: vec![Site::default(); 3],
                threads: [0, 1, 1, 1].map(thread).to_vec(),
                costs: (0..self.below(4)).map(|_| self.cost()).collect(),
                dropped: self.below(2),
            })?;
        }
        Ok(bytes)
    }
}

/// Plans a trace, and plays it with few threads and with more.
fn play(trace: &Trace) -> bool {
    assert!(timeline(&[("recorded", trace)], std::io::sink()).is_ok());
    let parts = [middle(trace, 3), Some(trace.clone())];
    let mut ended = false;
    for trace in parts.iter().flatten() {
        let plan = Arc::new(Plan::new(trace));
        let machine = Machine::eight_sockets();
        let play = Play { machine, arbitration: Arbitration::Fifo, seed: 1, data_lines: 1 };
        for script in [
            Script::recorded(&plan),
            Script::scaled(&plan, 7, Work::Fixed, 1),
            Script::scaled(&plan, 7, Work::PerThread, 1),
        ] {
            let script = Arc::new(script);
            for lock in [GLIBC, IDEAL] {
                let subject = Subject::named(lock).expect("a lock");
                ended |= play.play(&script, subject).is_ok();
            }
        }
    }
    ended
}

#[test]
fn whatever_is_read_can_be_played() {
    let mut random = Random(1);
    let (mut refused, mut ended, mut cut_off) = (0, 0, 0);
    for _ in 0..150 {
        let file = random.file().expect("memory can be written");
        match Reader::read(&file[..]) {
            Ok(trace) => {
                cut_off += u32::from(trace.cut_off);
                ended += u32::from(play(&trace));
            }
            Err(error) => {
                assert!(matches!(error, Error::Damaged { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && cut_off > 10 && ended > 100, "{refused}, {cut_off}, {ended}");
}
