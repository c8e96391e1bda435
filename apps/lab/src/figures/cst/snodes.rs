//! "CST lock instance": no structures at first; the first thread of each socket makes its own.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use antiphon_report::failure::Failure;
use antiphon_report::page::bars::Bar;
use antiphon_rivals::cst::CstMutex;
use antiphon_sim::{OwnLine, Sim, Simulation, work};

use crate::figures::figure::{Bound, Compared, Drawing, Figure, How, Panel, Picture};
use crate::figures::model::{Model, machine};

pub static FIGURE: Figure = Figure {
    document: "004",
    name: "snodes",
    title: "CST lock instance",
    how: How::Simulated { published: "pictures of a lock: none at first, then one a socket", draw },
};

/// A lock whose structures belong to the simulation, and are freed with it.
type Lock = ManuallyDrop<OwnLine<CstMutex<Sim>>>;

/// Two threads of each socket take a lock, one socket after the other. Returns how many structures
/// it had before the first, and after each thread.
fn counted(seed: u64) -> Result<Vec<usize>, Failure> {
    const APART_NS: u64 = 10_000;
    let machine = machine("8s-120c");
    let (sockets, cpus) = (machine.topology.nodes(), machine.cores() / machine.topology.nodes());
    let lock: Rc<Lock> = Rc::new(ManuallyDrop::new(OwnLine(CstMutex::NEW)));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let mut simulation = Simulation::new(machine.clone(), seed);
    for nth in 0..2 * sockets {
        let (lock, seen) = (Rc::clone(&lock), Rc::clone(&seen));
        simulation = simulation.thread_on(nth / 2 * cpus + nth % 2, move || {
            work(1 + u64::from(nth) * APART_NS);
            if nth == 0 {
                seen.borrow_mut().push(lock.sockets());
            }
            lock.lock();
            work(500);
            // SAFETY: locked above.
            unsafe { lock.unlock() }
            seen.borrow_mut().push(lock.sockets());
        });
    }
    let _ = simulation.run(0).map_err(Failure::measured)?;
    Ok(seen.take())
}

fn draw(model: &mut Model) -> Result<Drawing, Failure> {
    let counted = counted(model.seed())?;
    let structures = |after: usize| (counted[after] as f64, "structures");
    let exact = |what, document, after: usize, bound| {
        Compared::new(what, document, structures(after), bound)
    };
    let compared = vec![
        exact("before the first thread", "none", 0, Bound::AtMost(0.0)),
        exact("after two threads of a socket", "one", 2, Bound::AtMost(1.0)),
        exact("after a thread of a second socket", "two", 3, Bound::AtLeast(2.0)),
    ];
    let bar = |(after, structures): (usize, &usize)| Bar {
        group: if after == 0 { String::new() } else { format!("{}", (after - 1) / 2) },
        name: if after == 0 { "none".to_owned() } else { format!("thread {after}") },
        value: Some(*structures as f64),
        about: "structures that the lock has".to_owned(),
    };
    let bars = counted.iter().enumerate().map(bar).collect();
    let title = "structures after each thread, by its socket".to_owned();
    let picture = Picture::Bars { bars, words: |count| format!("{count:.0}") };
    let conditions =
        format!("8s-120c, two threads of each socket, one after the other, seed {}", model.seed());
    Ok(Drawing { conditions, panels: vec![Panel { title, picture }], compared })
}
