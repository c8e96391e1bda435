//! The page: the pictures of each figure, the document's values dashed, and the comparison.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::{bars, curves, escape, lanes};
use antiphon_report::table::duration;

use super::Drawn;
use super::figure::{Panel, Picture};
use super::report::{HEADING, text};

/// Returns the page.
pub fn page(drawn: &[Drawn]) -> String {
    let mut body = format!(
        "<p>{HEADING}. Whole lines are the model's; dashed ones are the document's values, or an \
         ideal.</p>\n"
    );
    for Drawn { figure, published, drawing } in drawn {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            body,
            "<h2>{}, {}</h2>\n<p class=faint>Document: {}</p>\n<p class=faint>Model: {}</p>",
            figure.id(),
            escape(figure.title),
            escape(published),
            escape(&drawing.conditions)
        );
        for panel in &drawing.panels {
            body += &draw(panel);
        }
    }
    page::with_tables("antiphon lab figures", &body, &text(drawn, false))
}

fn draw(Panel { title, picture }: &Panel) -> String {
    let picture = match picture {
        Picture::Curves { over, curves, words } => curves::drawing_of(over, curves, words),
        Picture::Shares { curves, words } => curves::distribution(curves, words),
        Picture::Bars { bars, words } => bars::drawing(bars, words),
        Picture::Lanes(lanes) => lanes::drawing(lanes, duration),
    };
    format!("<p class=faint>{}</p>\n{picture}", escape(title))
}
