//! One subject in one case: players and hogs on the cores of a simulated machine.

use std::cell::RefCell;
use std::rc::Rc;

use antiphon_report::stats::Random;
use antiphon_runtime::coop::{Alone, Cooperate, Group, Options};
use antiphon_sim::{Account, Model, Simulation, Stuck, now, work};

use super::bed;
use super::boost::{Boosted, Core};
use super::cases::{Case, MISBEHAVES, Placement};
use super::domain::{Membership, Pages};
use super::kernel::Shared;
use super::plan::{Plan, Seat, Setting};
use super::play::{Manner, play};
use super::subjects::Subject;
use crate::bench::event_loop::player::Seen;

/// The observations. All times are simulated.
pub struct Observed {
    /// What each player observed.
    pub seen: Vec<Seen>,
    pub plan: Plan,
    /// CPU accounts at the beginning and end of counting: players' threads first, then hogs', then
    /// helpers'.
    pub accounts: [Account; 2],
    /// How often the subject gave a core to a thread, over the whole run.
    pub turns: Option<u64>,
    /// Number of lines that came from another socket in that time.
    pub remote: u64,
    /// Number of moves of members to another core.
    pub moves: u64,
    /// A hash of all steps.
    pub trace: u64,
}

/// Simulated time that no run reaches.
const LONG_NS: u64 = 1_000_000_000_000;
/// Time that a hog computes between two checks whether the run is over.
const SPIN_NS: u64 = 1_000_000;

/// The state that all threads share.
struct Stage {
    pages: Rc<Pages>,
    kernels: Vec<Shared>,
    boosts: Vec<Rc<Core>>,
    seen: RefCell<Vec<Option<Seen>>>,
}

/// Runs the competing programs.
///
/// # Errors
///
/// If the threads deadlock, which is a defect.
pub fn compete(setting: &Setting<'_>, subject: Subject, case: &Case) -> Result<Observed, Stuck> {
    let plan = Plan::new(setting, case);
    let (players, cores) = (plan.players.len(), setting.cores);
    let group = if case.one_group { Group::Number(1) } else { Group::Own };
    let options = match subject {
        // Turns may be as short as the round requires.
        Subject::Periodic => {
            Options { period_ns: setting.round_ns, min_slice_ns: 1_000, ..setting.options }
        }
        _ => setting.options,
    };
    let grouped = |core| if case.one_group { plan.on(core).collect() } else { vec![] };
    let kernel = |core| Shared::new(grouped(core), options);
    let stage = Rc::new(Stage {
        pages: Rc::new(Pages::new(plan.domains.clone(), cores, options)),
        kernels: (0..cores).map(kernel).collect(),
        boosts: (0..cores).map(|core| Rc::new(Core::new(plan.on(core).count(), options))).collect(),
        seen: RefCell::new((0..players).map(|_| None).collect()),
    });
    let end_ns = plan.end_ns;
    let moves = setting.placement == Placement::Move;
    let mut simulation = Simulation::new(setting.machine.clone(), setting.seed)
        .model(Model { fair: true, ..Model::default() })
        .grace_ns(LONG_NS)
        .account_at(plan.count_ns)
        .account_at(plan.end_ns);
    for (number, &seat) in plan.players.iter().enumerate() {
        let stage = stage.clone();
        simulation = simulation.thread_on(seat.core as u32, move || {
            let tier: Box<dyn Cooperate> = match subject {
                Subject::Alone | Subject::Periodic => Box::new(Alone),
                Subject::T3 => Box::new(Membership::new(&stage.pages, seat.core, group, moves)),
                Subject::T1 => Box::new(Boosted::new(&stage.boosts[seat.core])),
                Subject::Coop => Box::new(stage.kernels[seat.core].clone()),
            };
            let seen = play(seat.player(), manner(&seat, group), tier);
            stage.seen.borrow_mut()[number] = Some(seen);
            if number == 0 {
                // The accounts of all threads are taken while a thread still exists.
                bed::sleep_past(end_ns);
            }
        });
    }
    for core in 0..cores as u32 {
        for _ in 0..setting.hogs {
            simulation = simulation.thread_on(core, move || {
                while now() < end_ns {
                    work(SPIN_NS);
                }
            });
        }
    }
    for core in 0..cores {
        let number = core as u32;
        simulation = match subject {
            Subject::Alone | Subject::T3 => simulation,
            Subject::T1 => {
                let helped = stage.boosts[core].clone();
                simulation.thread_on(number, move || helped.help())
            }
            Subject::Coop | Subject::Periodic => {
                simulation.schedule_on(number, stage.kernels[core].clone())
            }
        };
    }
    let outcome = simulation.run(0)?;
    let turns = match subject {
        Subject::Alone => None,
        Subject::T3 => Some(stage.pages.turns()),
        Subject::T1 => Some(stage.boosts.iter().map(|core| core.raises()).sum()),
        Subject::Coop | Subject::Periodic => Some(stage.kernels.iter().map(Shared::turns).sum()),
    };
    let seen = stage.seen.take().into_iter();
    let accounts = outcome.accounts.try_into();
    Ok(Observed {
        seen: seen.map(|seen| seen.expect("it has played to the end")).collect(),
        plan,
        accounts: accounts.unwrap_or_else(|_| panic!("both times were reached")),
        turns,
        remote: outcome.counts.remote_transfers,
        moves: stage.pages.moves.get(),
        trace: outcome.trace_hash,
    })
}

fn manner(seat: &Seat, group: Group) -> Manner {
    Manner {
        one_group: group != Group::Own,
        misbehaves: if seat.misbehaves { MISBEHAVES } else { 0.0 },
        // A different seed than its clip's.
        random: Random(seat.seed.wrapping_add(0x5EED)),
    }
}
