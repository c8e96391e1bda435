//! Programs that share a CPU: each has its part, whatever becomes of the others.

mod support;

use antiphon_record::coop::Count;
<<<<<<< HEAD
use support::Stage;

/// A loop that always has work, for so long from when it is told to begin; it is there when this
/// returns.
struct Spins {
    child: Child,
    said: BufReader<ChildStdout>,
    /// The program, which is below `timeout`.
    pid: i32,
}

impl Spins {
    fn new(stage: &Stage, program: &std::path::Path, tier: &str, ms: u32) -> Self {
        let mut command = stage.under(tier, program);
        let child =
            command.arg(ms.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("it starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        Self { child, said, pid: line.trim().parse().expect("its number") }
    }

    fn begin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// The CPU time that it had, in microseconds, and how often it waited.
    fn end(mut self) -> (f64, u64) {
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("it says what it had");
        assert!(self.child.wait().expect("it ends").success());
        let mut words = said.split_whitespace();
        let mut next = || words.next().expect("a number").parse::<u64>().expect("a number");
        (next() as f64, next())
    }

    fn signal(&self, signal: i32) {
        // SAFETY: it has not ended: it has more than enough to do.
        assert_eq!(unsafe { libc::kill(self.pid, signal) }, 0);
    }
}
=======
use support::{Spins, Stage};
>>>>>>> 777c162 (coop: a domain's file takes no standard stream's number)

#[test]
fn each_has_its_part() {
    // A loop that is raised is so by what others want, too, and gives back: its part of a short run
    // may be less.
    for (tier, least) in [("t3", 0.35), ("auto", 0.1)] {
        let stage = Stage::new(&format!("parts-{tier}"));
        let program = stage.compile("spins.c", &["-O1"]);
        let part = || {
            let mut loops = [(); 2].map(|()| Spins::new(&stage, &program, tier, 3000));
            // At one time: what each has while the other is not there says nothing of its part.
            loops.iter_mut().for_each(Spins::begin);
            let [one, other] = loops.map(Spins::end);
            one.0 / (one.0 + other.0)
        };
        let parts: Vec<_> = (0..3).map(|_| part()).collect();
        let fair = |part: &f64| (least..=1.0 - least).contains(part);
        assert!(parts.iter().all(fair), "{tier}: {parts:?}");
        let rows = stage.loops();
        assert_eq!(rows.len(), 6);
        for row in rows {
            assert!(row.baton && row.count(Count::Told) > 0 && row.count(Count::Due) > 0);
        }
    }
}

#[test]
fn who_is_killed_or_stopped_with_the_baton_keeps_nobody() {
    let stage = Stage::new("killed");
    let program = stage.compile("spins.c", &["-O1"]);
    // It works all the time, so at any time one of the two has the baton: in some of these turns
    // the one that is killed.
    for signal in [libc::SIGKILL, libc::SIGSTOP].repeat(4) {
        let mut victim = Spins::new(&stage, &program, "t3", 600_000);
        let mut survivor = Spins::new(&stage, &program, "t3", 300);
        victim.begin();
        survivor.begin();
        std::thread::sleep(std::time::Duration::from_millis(50));
        victim.signal(signal);
        let (had, waits) = survivor.end();
        assert!(had > 0.0 && waits > 0);
        drop(victim);
    }
}
