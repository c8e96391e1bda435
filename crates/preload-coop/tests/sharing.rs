//! Programs that share a CPU: each gets its share, even if others are killed or stopped.

mod support;

use antiphon_record::coop::Count;
use support::{Spins, Stage};

#[test]
fn each_has_its_part() {
    // A loop may also be raised for other loops, and repays that time: its share of a short run may
    // be smaller.
    for (tier, least) in [("t3", 0.35), ("auto", 0.1)] {
        let stage = Stage::new(&format!("parts-{tier}"));
        let program = stage.compile("spins.c", &["-O1"]);
        let part = || {
            let mut loops = [(); 2].map(|()| Spins::new(&stage, &program, tier, 3000));
            // Both begin at the same time: CPU time of one before the other runs says nothing about
            // its share.
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
    // The loops always have work, so at any time one of the two has the baton: in some of these
    // rounds the one that is killed.
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
