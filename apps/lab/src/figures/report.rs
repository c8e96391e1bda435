//! The comparison of drawn figures with the documents, for people and for scripts.

use antiphon_report::page::curves::Curve;
use antiphon_report::page::lanes::Lane;
use antiphon_report::table::{Cell, Table, Tone};
use antiphon_report::words::wrapped;
use serde_json::{Value, json};

use super::Drawn;
use super::figure::{Compared, Panel, Picture};

/// What stands above all figures.
pub const HEADING: &str =
    "Simulated (a model, not a measurement), beside what the documents say of their figures";

/// The width of what is not a table.
const COLUMNS: usize = 100;

/// Returns a table for each figure.
pub fn text(drawn: &[Drawn], colour: bool) -> String {
    let mut text = format!("{HEADING}\n");
    for Drawn { figure, published, drawing } in drawn {
        text += &format!("\n{}: {}\n", figure.id(), figure.title);
        for line in [format!("document: {published}"), format!("model: {}", drawing.conditions)] {
            text += &format!("{}\n", wrapped(&line, COLUMNS));
        }
        text += &table(&drawing.compared).render(colour);
    }
    text
}

fn table(compared: &[Compared]) -> Table {
    let mut table = Table::new(&["", ">document", ">agrees if", ">simulated", "", "agrees"]);
    for one in compared {
        let agrees = match one.holds() {
            true => Cell::text("yes"),
            false => Cell::text("no").tone(Tone::Bad),
        };
        table.row(vec![
            Cell::text(one.what.clone()),
            Cell::number(one.document),
            Cell::number(one.bound.words()),
            Cell::number(value(one.value)),
            Cell::text(one.unit),
            agrees,
        ]);
    }
    table
}

/// Three digits are more than a simulated figure deserves.
fn value(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// Returns the object for scripts.
pub fn object(drawn: &[Drawn]) -> Value {
    let one = |one: &Drawn| {
        let Drawn { figure, published, drawing } = one;
        json!({
            "model": true, "figure": figure.id(), "title": figure.title, "published": published,
            "conditions": drawing.conditions,
            "panels": drawing.panels.iter().map(panel).collect::<Vec<_>>(),
            "compared": drawing.compared.iter().map(compared).collect::<Vec<_>>(),
        })
    };
    json!({ "figures": drawn.iter().map(one).collect::<Vec<_>>() })
}

fn compared(one: &Compared) -> Value {
    json!({
        "what": one.what, "document": one.document, "bound": one.bound.words(),
        "value": one.value, "unit": one.unit, "holds": one.holds(),
    })
}

fn panel(Panel { title, picture }: &Panel) -> Value {
    match picture {
        Picture::Curves { curves, .. } | Picture::Shares { curves, .. } => {
            json!({ "title": title, "curves": curves.iter().map(curve).collect::<Vec<_>>() })
        }
        Picture::Bars { bars, .. } => {
            let bars = bars.iter();
            let bars =
                bars.map(|bar| json!({ "group": bar.group, "name": bar.name, "value": bar.value }));
            json!({ "title": title, "bars": bars.collect::<Vec<_>>() })
        }
        Picture::Lanes(lanes) => {
            json!({ "title": title, "lanes": lanes.iter().map(lane).collect::<Vec<_>>() })
        }
    }
}

fn curve(curve: &Curve) -> Value {
    json!({ "name": curve.name, "document": curve.dashed, "points": curve.points })
}

fn lane(lane: &Lane) -> Value {
    let spans = lane.spans.iter().map(
        |span| json!({ "from_ns": span.from_ns, "to_ns": span.to_ns, "does": span.does.word() }),
    );
    json!({ "name": lane.name, "spans": spans.collect::<Vec<_>>() })
}
