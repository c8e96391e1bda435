//! `lab figures`: the figures and tables of the five documents, each drawn by one command, ours
//! beside the document's values.
//!
//! | module | has |
//! |---|---|
//! | [`figure`] | what a figure is: its place, its picture, what is compared |
//! | [`registry`] | all figures, also those that other commands draw, or that are not drawn |
//! | [`shfl`], [`cst`], [`ocaml`], [`coop`] | a file for each figure of 000, 004, 002 and 003 |
//! | [`model`], [`scene`] | the simulations; a lock in action |
//! | [`list`], [`report`], [`page`] | the list, the comparison, the pictures |

mod coop;
mod cst;
mod figure;
mod list;
mod model;
mod ocaml;
mod page;
mod registry;
mod report;
mod scene;
mod shfl;

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::progress::Progress;
use antiphon_report::report::print_or_say;
use antiphon_report::table::colour_stdout;
use clap::Args;

use self::figure::{Drawing, Figure, How};
use self::model::Model;

/// Draw the figures and tables of the five documents, ours beside the documents' values
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. What the
document's text says of a figure is compared; where the values of a plot are lost, bounds are those
of its words. --list has all figures with their commands.

Without a name all are drawn, which takes some minutes; with the number of a document, all of that.

JSON: figures[]{model, figure, title, published, conditions, panels[]{title, curves[]{name,
document, points} or bars[]{group, name, value} or lanes[]{name, spans[]{from_ns, to_ns, does}}},
compared[]{what, document, bound, value, unit, holds}}; of --list: list[]{figure, title, drawn,
command, why}.

Examples:
  antiphon lab figures --list
  antiphon lab figures 000:create --html create.html
  antiphon lab figures 002 003:6 --json")]
pub struct Arguments {
    /// Figures, such as 000:create, or documents, such as 000
    #[arg(value_name = "DOCUMENT:FIGURE")]
    figures: Vec<String>,
    /// List all figures with their commands, or the reason why they are not drawn
    #[arg(long, conflicts_with_all = ["figures", "html", "seed", "share"])]
    list: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Share of the usual simulated time, for a quick look
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = share)]
    share: f64,
    /// Also write the pictures to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.001..=10.0).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share from 0.001 to 10, such as 0.1"))
}

/// A figure that was drawn.
struct Drawn {
    figure: &'static Figure,
    published: &'static str,
    drawing: Drawing,
}

/// Draws figures, and prints the comparison.
///
/// # Errors
///
/// Bad arguments; a simulation that can't make progress, which is a defect; if the page or stdout
/// can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.list {
        print_or_say(arguments.json, list::object, || format!("{}\n", list::markdown()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let wanted = registry::named(&arguments.figures)?;
    let drawn = drawn(&wanted, &mut Model::new(arguments.seed, arguments.share))?;
    let written = html.map_or(Ok(()), |file| file.write(&page::page(&drawn)));
    let text = || report::text(&drawn, colour_stdout());
    print_or_say(arguments.json, || report::object(&drawn), text)?;
    written.map(|()| ExitCode::SUCCESS)
}

fn drawn(wanted: &[&'static Figure], model: &mut Model) -> Result<Vec<Drawn>, Failure> {
    let mut progress = Progress::new(wanted.len());
    let mut drawn = Vec::new();
    for &figure in wanted {
        if let How::Simulated { published, draw } = figure.how {
            progress.step(&figure.id());
            drawn.push(Drawn { figure, published, drawing: draw(model)? });
        }
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::figure::Picture;
    use super::*;

    /// In simulations so short that only their form has a meaning, each figure has a value for each
    /// statement and a picture in each panel.
    #[test]
    fn each_figure_has_pictures_and_values() {
        let wanted = registry::named(&[]).unwrap_or_else(|failure| panic!("{failure:?}"));
        let drawn = drawn(&wanted, &mut Model::new(1, 0.1));
        let drawn = drawn.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!(drawn.len(), wanted.len());
        for Drawn { figure, drawing, published } in &drawn {
            let id = figure.id();
            assert!(!drawing.panels.is_empty() && !drawing.compared.is_empty(), "{id}");
            assert!(!published.is_empty() && !drawing.conditions.is_empty(), "{id}");
            for one in &drawing.compared {
                // So short a run may have done nothing: then a ratio to it is infinite.
                assert!(one.value >= 0.0, "{id}: {}", one.what);
                assert!(!one.document.is_empty(), "{id}: {}", one.what);
            }
            for panel in &drawing.panels {
                let values = match &panel.picture {
                    Picture::Curves { curves, .. } | Picture::Shares { curves, .. } => {
                        curves.iter().map(|curve| curve.points.len()).min()
                    }
                    Picture::Bars { bars, .. } => Some(bars.len()),
                    Picture::Lanes(lanes) => lanes.iter().map(|lane| lane.spans.len()).min(),
                };
                assert!(values > Some(0), "{id}: {}", panel.title);
            }
        }
        let panels: usize = drawn.iter().map(|one| one.drawing.panels.len()).sum();
        let page = page::page(&drawn);
        assert_eq!(page.matches("<svg").count(), panels);
        assert!(!page.contains("NaN"));
    }
}
