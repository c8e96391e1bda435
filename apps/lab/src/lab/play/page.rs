//! The run as one self-contained page: the pictures of the document's evaluation.
//!
//! | picture | figure of the document |
//! |---|---|
//! | how late frames are | 5 (one player), 6 (several), 12 (one of them misbehaves) |
//! | frames shown a second | 8 |
//! | kilobits a second of what is played | 9 |
//! | of the CPU, one on top of the other | 7 a, b |
//! | of the CPU, each | 7 c, d; 10 (one group) |

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, distribution, over_time};
use antiphon_report::page::escape;
use antiphon_report::table::duration;

use super::figures::Figures;
use super::live::percent;
use super::plan::Plan;
use super::tables;

/// Returns the whole page.
pub fn page(plan: &Plan, figures: &Figures) -> String {
    let mut body =
        format!("<p>{}; {}</p>\n", escape(&tables::said_of(plan)), escape(&tables::tier_of(plan)));
    let mut draw = |title: &str, about: &str, drawing: String| {
        // Writing to a string does not fail.
        let _ = write!(
            body,
            "<h2>{title}</h2>\n<p class=faint>{about}</p>\n<figure>\n{drawing}</figure>\n"
        );
    };
    draw(
        "How late frames are",
        "from when each was due to its display; players, and all of them",
        distribution(&late(plan, figures), |us| duration(us * 1e3)),
    );
    let number = |value: f64| format!("{value:.0}");
    let fps = fps(figures);
    if !fps.is_empty() {
        draw("Frames shown a second", "by player", over_time(&fps, number));
        let rates = bit_rates(plan, figures.seconds);
        draw("Kilobits a second of what is played", "by player", over_time(&rates, number));
    }
    if figures.over_time.len() > 1 {
        let sums = cpu_of_players(plan, figures, true);
        let about = "players, one on top of the other; the rest is the others'";
        draw("Players' part of the CPUs", about, over_time(&sums, percent));
        let mut each = cpu_of_players(plan, figures, false);
        each.extend(cpu_of_others(plan, figures));
        draw("The CPU time of each program", "of a CPU", over_time(&each, percent));
    }
    page::with_tables("antiphon lab play", &body, &tables::text(plan, figures, false))
}

fn late(plan: &Plan, figures: &Figures) -> Vec<Curve> {
    let misbehaves = plan.misbehave > 0.0;
    let name = |number: usize, plays: &str| {
        let misbehaves = if misbehaves && number == 0 { " (misbehaves)" } else { "" };
        format!("{number} {plays}{misbehaves}")
    };
    let all = if misbehaves { "all others" } else { "all players" };
    let mut curves = vec![Curve::of_distribution(all, &figures.cdf, false)];
    let players = figures.players.iter().enumerate();
    let players = players.filter(|(_, one)| one.gone.is_none());
    curves.extend(players.map(|(number, one)| {
        Curve::of_distribution(&name(number, &one.plays), &one.cdf, !(misbehaves && number == 0))
    }));
    let steady = figures.steady.iter().filter(|one| one.gone.is_none());
    curves.extend(steady.map(|one| Curve::of_distribution("steady", &one.cdf, true)));
    curves
}

fn fps(figures: &Figures) -> Vec<Curve> {
    // The last second may be incomplete.
    let whole = figures.seconds.floor() as usize;
    let players = figures.players.iter().enumerate();
    let curves = players.map(|(number, one)| {
        let seconds = one.played.per_second.iter().take(whole).enumerate();
        let points = seconds.map(|(second, shown)| (second as f64 + 1.0, f64::from(*shown)));
        Curve { name: format!("{number} {}", one.plays), points: points.collect(), dashed: false }
    });
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

/// The bit rate of the stream, for each second that a player plays.
fn bit_rates(plan: &Plan, seconds: f64) -> Vec<Curve> {
    let whole = seconds.floor() as usize;
    let players = (0..plan.players).filter_map(|number| Some((number, plan.clip(number)?)));
    let curves = players.map(|(number, ready)| {
        let (frames, frame_ns) = (ready.clip.frames(), ready.clip.frame_ns());
        let mut kilobits = vec![0.0; whole];
        for pass in 0.. {
            let begin_ns = pass * frames.len() as u64 * frame_ns;
            if begin_ns >= whole as u64 * 1_000_000_000 {
                break;
            }
            for frame in frames {
                // Times are rounded down; half of a frame more is beyond the rounding.
                let at_ns = begin_ns + frame.shown as u64 * frame_ns + frame_ns / 2;
                if let Some(second) = kilobits.get_mut((at_ns / 1_000_000_000) as usize) {
                    *second += frame.bytes.len() as f64 * 8.0 / 1e3;
                }
            }
        }
        let points = kilobits.into_iter().enumerate();
        let points = points.map(|(second, rate)| (second as f64 + 1.0, rate)).collect();
        Curve { name: format!("{number} {}", ready.name), points, dashed: false }
    });
    curves.collect()
}

/// CPU time of players by second; if `stacked`, each curve is on top of the previous players'.
fn cpu_of_players(plan: &Plan, figures: &Figures, stacked: bool) -> Vec<Curve> {
    let cpus = if stacked { plan.cpus.len() as f64 } else { 1.0 };
    let curve = |number: usize| {
        let first = if stacked { 0 } else { number };
        let steps = figures.over_time.iter();
        let points = steps.map(|(at, shares)| (*at, shares[first..=number].iter().sum()));
        let points = points.map(|(at, share): (f64, f64)| (at, share / cpus)).collect();
        let name = format!("{number} {}", figures.players[number].plays);
        Curve { name, points, dashed: false }
    };
    (0..figures.players.len()).map(curve).collect()
}

/// The curves of the other programs: the steady player, and hogs, which look alike.
fn cpu_of_others(plan: &Plan, figures: &Figures) -> Vec<Curve> {
    let curve = |name: String, place: usize| {
        let points = figures.over_time.iter().map(|(at, shares)| (*at, shares[place])).collect();
        Curve { name, points, dashed: true }
    };
    let steady = figures.steady.iter().map(|_| curve("steady".to_owned(), plan.players));
    let first = plan.parts.len();
    let hogs = (0..plan.hogs).map(|hog| curve(format!("hog {hog}"), first + hog));
    steady.chain(hogs).collect()
}
