//! The tables of a run, for people.

use antiphon_coop::Tier;
use antiphon_report::schedule::{Schedule, Used, legend};
use antiphon_report::table::{Cell, Table, duration, si};
use antiphon_report::words::several;

use super::figures::{Figures, PlayerFigures};
use super::kinds::{Kind, Played};
use super::live::percent;
use super::plan::Plan;
use super::troubles::Troubles;
use crate::compete::level::weakens;
use crate::compete::tardiness::Tardiness;
use crate::compete::terms::cpus;
use crate::named::Named as _;

/// Describes the programs of a run in one line.
pub fn said_of(plan: &Plan) -> String {
    let mut text = several(plan.players as u64, "player");
    if plan.hogs > 0 {
        let hogs = several(plan.hogs as u64, "hog");
        text += &format!(", {hogs} ({})", plan.competitor.name());
    }
    text += &format!(", {}", cpus(plan.cpus.len()));
    text += if plan.one_group { ", one group" } else { "" };
    if let Some(demand) = plan.demand {
        text += &format!(", demand {demand:.1} % each");
    }
    text
}

/// Describes the tier by which they are on time in one line.
pub fn tier_of(plan: &Plan) -> String {
    format!("Tier {} ({})", plan.tier, plan.tier.what())
}

/// Returns the heads of a table of programs, with `between` after the name and before dropped
/// frames.
pub fn heads<'a>(between: &[&'a str]) -> Vec<&'a str> {
    [&["player"], between, &[">I", ">P", ">B", ">b"]].concat()
}

/// Returns the whole report.
pub fn text(plan: &Plan, figures: &Figures, colour: bool) -> String {
    let about = format!("{}, {:.1} s\n{}\n", said_of(plan), figures.seconds, tier_of(plan));
    let mut text = about + &players(figures).render(colour);
    text += "\n";
    let pairs = [
        ("frames on time", within(&figures.late)),
        ("Jain CPU", format!("{:.3}", figures.jain_cpu)),
        ("Jain fps", format!("{:.3}", figures.jain_fps)),
        ("players' CPU", percent(figures.players_share)),
        ("switches/s", si(figures.switches_per_s)),
    ];
    let mut table = Table::new(&pairs.each_ref().map(|(name, _)| *name));
    table.row(pairs.iter().map(|(_, value)| Cell::text(value)).collect());
    text += &table.render(colour);
    if !figures.hogs.is_empty() {
        let hogs: Vec<_> = figures.hogs.iter().map(|share| percent(*share)).collect();
        text += &format!("Hogs had {} of a CPU.\n", hogs.join(", "));
    }
    text + &notes(plan, figures)
}

fn within(late: &Tardiness) -> String {
    format!("{} within 1 ms", percent(late.within_1ms))
}

fn players(figures: &Figures) -> Table {
    let columns = [">CPU", ">fps", ">shown", ">p50", ">p99", ">p99.9", ">max", "demoted"];
    let mut table = Table::new(&heads(&columns));
    for (number, one) in figures.players.iter().enumerate() {
        table.row(line(&number.to_string(), one));
    }
    if let Some(steady) = &figures.steady {
        table.row(line("steady", steady));
    }
    table
}

fn line(name: &str, one: &PlayerFigures) -> Vec<Cell> {
    let late = one.late;
    let unknown = |text: String, known: bool| if known { text } else { "-".to_owned() };
    let stayed = one.gone.is_none();
    // A program that has shown nothing has no tardiness.
    let time = |us: f64| Cell::number(unknown(duration(us * 1e3), late.timers > 0));
    let mut cells = vec![
        Cell::text(format!("{name} {}{}", one.plays, if one.model { " *" } else { "" })),
        Cell::number(percent(one.cpu)),
        Cell::number(unknown(format!("{:.1}", one.fps), stayed)),
        Cell::number(unknown(percent(one.played.quality), stayed)),
        time(late.p50_us),
        time(late.p99_us),
        time(late.p999_us),
        time(late.max_us),
        Cell::text(one.done.demoted().unwrap_or_else(|| "-".to_owned())),
    ];
    // The layers of a program that is gone are unknown, so no figures are shown for them.
    let kind = if stayed { one.kind } else { Kind::Video };
    cells.extend(one.played.drops(kind));
    cells
}

impl Played {
    /// Returns the cells of dropped frames by layer. Chunks of sound count as `I`, details of a
    /// game as `b`.
    pub fn drops(&self, kind: Kind) -> Vec<Cell> {
        let count = |count: u64| Cell::number(count.to_string());
        let none = || Cell::number("-");
        match kind {
            Kind::Sound => vec![count(self.dropped), none(), none(), none()],
            Kind::Game => vec![none(), none(), none(), count(self.dropped)],
            Kind::Video | Kind::Steady if self.layers.is_empty() => vec![none(); 4],
            Kind::Video | Kind::Steady => {
                self.layers.iter().map(|layer| count(layer.dropped)).collect()
            }
        }
    }
}

fn notes(plan: &Plan, figures: &Figures) -> String {
    let mut text = String::new();
    if plan.tier == Tier::Boost {
        let sum = |of: fn(&PlayerFigures) -> Option<u64>| {
            figures.players.iter().filter_map(of).sum::<u64>() as f64
        };
        let [borrowed, owed, helper] = [
            sum(|one| one.done.borrowed_ns),
            sum(|one| one.done.owed_ns),
            sum(|one| one.done.helper_ns),
        ]
        .map(duration);
        let raises = si(sum(|one| one.done.raises));
        text += &format!(
            "Raised {raises} times, for {borrowed} of CPU time, {owed} of it not given back yet; \
             helpers took {helper}.\n"
        );
    }
    if let Some(steady) = &figures.steady {
        let nice = plan.parts.last().map_or(0, |part| part.nice);
        text += &format!(
            "The steady player drops nothing and does not cooperate: nice {nice}, {}.\n",
            within(&steady.late)
        );
    }
    for (number, one) in figures.players.iter().chain(&figures.steady).enumerate() {
        if let Some(why) = &one.played.unseen {
            text += &format!("Player {number} was not seen to the end: {why}.\n");
        }
        if let Some(gone) = &one.gone {
            text += &format!("Player {number} {gone}: of it there is its CPU time alone.\n");
        }
        if one.kind == Kind::Sound {
            let what = match &plan.sound {
                Some(sound) => sound.name.replacen("sound", "the sound", 1),
                None => "a sound that is made up".to_owned(),
            };
            text += &format!("Player {number} plays {what}.\n");
        }
    }
    let all = figures.players.iter().chain(&figures.steady).map(|one| &one.troubles);
    text += &Troubles::said(all.enumerate());
    if !figures.cpu_was_short {
        text += "The CPU was not short: each player had what it wanted, and Jain's index of CPU \
                 time says\nnothing of fairness.\n";
    }
    if plan.misbehave > 0.0 {
        text += &format!("Player 0 misbehaves with a probability of {}.\n", plan.misbehave);
    }
    if figures.players.iter().any(|one| one.model) {
        text += "*: a model: what it took is not decoding, or not that alone.\n";
    }
    text += &legend([(plan.tier.name(), Used::by(plan.tier))], Schedule(figures.options));
    text += &format!("Competing on: {}.\n", plan.level.said());
    if let Some(weaker) = plan.here.weaker().filter(|_| weakens(plan.tier)) {
        text += &format!("{weaker}.\n");
    }
    text + RULE
}

const RULE: &str = "\
Tardiness is from when a frame is due to its display. Shown is the part of what was due; I, P, B and
b are frames that were dropped, by layer. Jain's index is of the CPU time of all programs, and of
frames that players showed; 1 is fair. Switches are of all programs.
";
