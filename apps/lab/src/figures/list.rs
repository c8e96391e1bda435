//! The list of all figures, with the command that draws each, or the reason why it is not drawn.

use serde_json::{Value, json};

use super::figure::{Figure, How};
use super::registry::all;

/// Titles of the documents.
const DOCUMENTS: [(&str, &str); 5] = [
    ("000", "S. Kashyap, “Scaling Synchronization Primitives”"),
    ("001", "K. Hale, P. Dinda, asynchronous software events (Nemo)"),
    ("002", "a dissertation on schedulers for OCaml Multicore"),
    ("003", "C. Krasic et al., cooperative polling"),
    ("004", "S. Kashyap et al., NUMA-aware blocking primitives (CST)"),
];

/// Returns the command that draws a figure, and how its values are known.
fn command(figure: &Figure) -> Option<(String, &'static str)> {
    match figure.how {
        How::Simulated { .. } => {
            Some((format!("antiphon lab figures {} --html F", figure.id()), "simulated"))
        }
        How::By { command, about } => Some((command.to_owned(), about)),
        How::Not(_) => None,
    }
}

/// Returns the list as Markdown, a table for each document.
pub fn markdown() -> String {
    let all = all();
    let mut text = Vec::new();
    for (document, title) in DOCUMENTS {
        text.push(format!("## {document}: {title}\n"));
        text.push("| figure | title | drawn by | |\n|---|---|---|---|".to_owned());
        for figure in all.iter().filter(|figure| figure.document == document) {
            let (by, about) = match (command(figure), &figure.how) {
                (Some((command, about)), _) => (format!("`{command}`"), about),
                (None, How::Not(why)) => ("–".to_owned(), *why),
                (None, _) => unreachable!("a figure that is drawn has a command"),
            };
            text.push(format!("| `{}` | {} | {by} | {about} |", figure.name, figure.title));
        }
        text.push(String::new());
    }
    text.join("\n").trim_end().to_owned()
}

/// Returns the list for scripts.
pub fn object() -> Value {
    let one = |figure: &&Figure| {
        let command = command(figure);
        let why = match figure.how {
            How::Not(why) => Some(why),
            How::By { .. } | How::Simulated { .. } => None,
        };
        json!({
            "figure": figure.id(), "title": figure.title, "drawn": command.is_some(),
            "command": command.as_ref().map(|(command, _)| command), "why": why,
            "by": command.as_ref().map(|(_, about)| about),
        })
    };
    json!({ "list": all().iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_figure_is_in_one_document_under_one_name() {
        let all = all();
        let ids: BTreeSet<_> = all.iter().map(|figure| figure.id()).collect();
        assert_eq!(ids.len(), all.len());
        for figure in all {
            assert!(DOCUMENTS.iter().any(|known| known.0 == figure.document), "{}", figure.id());
        }
    }

    /// docs/results/figure-list.md has what `--list` prints.
    #[test]
    fn the_page_has_the_list() {
        let page = include_str!("../../../../docs/results/figure-list.md");
        let list = markdown();
        assert!(
            page.trim_end().ends_with(&list),
            "end docs/results/figure-list.md with:\n\n{list}"
        );
    }
}
