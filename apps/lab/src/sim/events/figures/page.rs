//! The page of the figures: the model's distributions, the document's values as dashed lines.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, distribution};
use antiphon_report::page::escape;
use antiphon_report::stats::distribution as quantiles;
use antiphon_report::table::duration;

use super::list::{FIGURES, Figure};
use super::{HEADING, Rows};
use crate::sim::events::paths::LENGTHS;

/// Returns the page. `table` is the comparison as text.
pub fn page(rows: &Rows, table: &str) -> String {
    let mut body = format!(
        "<p>{HEADING}. Whole lines are the model's, dashed ones the document's, as far as its text \
         has a value. metal: our bare-metal kernel, by the instructions of its paths; kernel: a \
         kernel whose background thread has to yield first.</p>\n"
    );
    for figure in &FIGURES {
        if figure.number == 15 {
            body += &control_flow();
        }
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            body,
            "<h2>Figure {}, {}</h2>\n<p class=faint>{}</p>",
            figure.number,
            figure.machine,
            escape(figure.about)
        );
        body += &distribution(&curves(figure, rows), duration);
    }
    page::with_tables("antiphon sim events --figures", &body, table)
}

fn curves(figure: &Figure, rows: &Rows) -> Vec<Curve> {
    let model = figure.lines.iter().map(|&line| {
        let row = rows.row(figure, line);
        let cdf = if figure.sigma { &row.sigma_cdf } else { &row.latency.cdf };
        Curve::of_distribution(&row.name(), cdf, false)
    });
    // The document has one value of each: the same for all shares.
    let published = figure.published.iter().map(|&(name, ns)| {
        Curve::of_distribution(&format!("document: {name}"), &quantiles(&[ns]), true)
    });
    model.chain(published).collect()
}

/// Figure 14 is a diagram: here it has the lengths of our kernel's paths.
fn control_flow() -> String {
    let message = LENGTHS.message;
    let broadcast = LENGTHS.broadcast;
    let wake = LENGTHS.wake;
    let row = |what: &str, sender: u32, destination: u32| {
        format!("<tr><td>{what}<td class=n>{sender}<td class=n>{destination}\n")
    };
    format!(
        "<h2>Figure 14, control flow of a message</h2>\n<p class=faint>instructions of our \
         bare-metal kernel beside those of a bare interrupt, counted in QEMU</p>\n<table>\n<tr><th>\
         <th class=n>sender<th class=n>destination, from the handler\n{}{}{}</table>\n",
        row("message to one CPU, to its action", message.sender, message.destination),
        row("message to all, to its action", broadcast.sender, broadcast.destination),
        row("condition variable, to the thread that runs", wake.wake, wake.run),
    )
}
