//! Document 002, a dissertation on schedulers for OCaml: chapter 7, whose text has some of the
//! values of its plots.

pub mod general;
pub mod heavy;
pub mod large;
pub mod neighbours;
pub mod spawners;
pub mod steals;

use antiphon_report::failure::Failure;
use antiphon_report::page::curves::Curve;
use antiphon_report::table::si;

use super::figure::{Panel, Picture};
use super::model::Model;
use crate::sim::tasks::figures;
use crate::sim::tasks::rows::Row;
use crate::sim::tasks::subjects::Form;

/// Numbers of domains.
const DOMAINS: [usize; 5] = [5, 20, 40, 80, 115];
const PACKETS: u32 = 50_000;

/// A policy in its form, with the name of its curve.
type Policy = (&'static str, Form);

fn called((name, form): Policy) -> String {
    match form {
        Form::Ours => format!("{name}, ours"),
        Form::Published => format!("{name}, its form"),
    }
}

/// A curve for each policy, of a figure of its rows.
fn curves(
    model: &mut Model,
    case: &'static str,
    (policies, domains): (&[Policy], &[usize]),
    figure: fn(&Row) -> f64,
) -> Result<Vec<Curve>, Failure> {
    let mut curves = Vec::new();
    for &policy in policies {
        let mut points = Vec::new();
        for &workers in domains {
            let row = model.tasks(case, policy, workers, PACKETS)?;
            points.push((workers as f64, figure(row)));
        }
        curves.push(Curve { name: called(policy), points, dashed: false });
    }
    Ok(curves)
}

/// Packets a second, with the document's points as dashed curves.
fn throughput(
    model: &mut Model,
    case: &'static str,
    policies: &[Policy],
) -> Result<Panel, Failure> {
    let mut curves = curves(model, case, (policies, &DOMAINS), Row::ops_per_s)?;
    for &(name, form) in policies {
        let known = figures::of(case, name, form);
        let points: Vec<_> = known.iter().map(|&(at, mega)| (at as f64, mega * 1e6)).collect();
        if !points.is_empty() {
            curves.push(Curve { name: format!("{name}, measured"), points, dashed: true });
        }
    }
    let picture = Picture::Curves { over: "worker", curves, words: si };
    Ok(Panel { title: "packets a second".to_owned(), picture })
}

fn conditions(model: &Model, case: &str) -> String {
    format!(
        "epyc-2x64c, case {case}, {PACKETS} packets, costs of ocaml (two of them fitted to the \
         document's throughput), seed {}",
        model.seed()
    )
}

/// The document's scheduler, first in, first out, and last in, first out.
const FIFO: Policy = ("fifo", Form::Published);
const LIFO: Policy = ("lifo", Form::Published);
/// Ours: the same order with queues of blocks.
const OURS: Policy = ("lifo-blocks", Form::Ours);
