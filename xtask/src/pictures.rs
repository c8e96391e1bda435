//! `pictures`: saves the charts of a report's page as files for documents.
//!
//! In a page of `antiphon … --html` the charts are part of the text, and a browser applies the
//! page's style to them. A separate picture is XML: it needs quoted attributes, a name space, and
//! its own copy of the style.

use std::fs;
use std::path::Path;

use crate::finding::Outcome;
use crate::{Failure, tree};

const DIRECTORY: &str = "docs/pictures";
/// The name that leaves a picture out.
const NONE: &str = "-";
/// The style that applies to the page's body only.
const ALONE: &str = "svg { font-family: system-ui, sans-serif; background: var(--page) }\n";

/// A chart of a page.
#[derive(Debug, PartialEq, Eq)]
struct Chart<'a> {
    /// The heading above it.
    title: &'a str,
    svg: &'a str,
}

/// `cargo xtask pictures PAGE NAME…`: writes the charts of the page, in their order, to
/// `docs/pictures/NAME.svg`; a `-` leaves one out.
pub fn run(mut arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    use lexopt::prelude::*;
    let mut values = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Value(value) => values.push(value.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some((page, names)) = values.split_first() else {
        return Err("no page: name a file that `--html` of a command has written".into());
    };
    let text = fs::read_to_string(page).map_err(|error| format!("{page}: {error}"))?;
    let (style, charts) = (between(&text, "<style>\n", "</style>").unwrap_or(""), charts(&text));
    if names.len() != charts.len() {
        let titles: Vec<_> = charts.iter().map(|chart| chart.title).collect();
        return Err(format!(
            "{page} has {} pictures, so give as many names, `{NONE}` for those to leave out: {}",
            charts.len(),
            titles.join("; "),
        )
        .into());
    }
    let directory = tree::root()?.join(DIRECTORY);
    fs::create_dir_all(&directory)?;
    for (name, chart) in names.iter().zip(&charts).filter(|(name, _)| *name != NONE) {
        let file = directory.join(Path::new(name).file_name().ok_or("a name is of a file")?);
        let file = file.with_extension("svg");
        fs::write(&file, alone(chart, style))?;
        println!("{}: {}", file.display(), chart.title);
    }
    Ok(Outcome::Clean)
}

/// The text between the first occurrences of `begin` and `end`.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    rest.split_once(end).map(|(found, _)| found)
}

/// All charts of a page, each with the last heading before it.
fn charts(page: &str) -> Vec<Chart<'_>> {
    let (mut charts, mut title) = (Vec::new(), "");
    for part in page.split_inclusive("</svg>\n") {
        let Some(at) = part.find("<svg ") else { continue };
        let (before, svg) = part.split_at(at);
        title = before
            .rfind("<h2>")
            .and_then(|at| between(&before[at..], "<h2>", "</h2>"))
            .unwrap_or(title);
        charts.push(Chart { title, svg });
    }
    charts
}

/// The picture as a separate file. The texts that appear when a reader points at a part are left
/// out, because a picture in a document can't be pointed at.
fn alone(chart: &Chart<'_>, style: &str) -> String {
    let mut svg = chart.svg.to_owned();
    while let (Some(begin), Some(end)) = (svg.find("<title>"), svg.find("</title>")) {
        svg.replace_range(begin..end + "</title>".len(), "");
    }
    let svg = quoted(&svg);
    let (head, rest) = svg.split_once('>').unwrap_or((&svg, ""));
    format!(
        "{head} xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n\
         <style>\n{style}{ALONE}</style>{rest}",
        chart.title
    )
}

/// The picture with all values of attributes quoted.
fn quoted(svg: &str) -> String {
    let mut out = String::with_capacity(svg.len() * 2);
    let (mut in_tag, mut in_quotes, mut is_bare) = (false, false, false);
    let mut before = ' ';
    for c in svg.chars() {
        if is_bare && (c.is_whitespace() || c == '>') {
            out.push('"');
            is_bare = false;
        }
        if in_tag && !in_quotes && !is_bare && before == '=' && c != '"' {
            out.push('"');
            is_bare = true;
        }
        match c {
            '<' if !in_quotes => in_tag = true,
            '>' if !in_quotes => in_tag = false,
            '"' if in_tag => in_quotes = !in_quotes,
            _ => {}
        }
        out.push(c);
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<style>\na { b: c }\n</style><h1>x</h1>\n<h2>How late</h2>\n<figure>\n\
        <svg class=chart viewBox=\"0 0 9 4\" role=img>\n<line x1=1 class=\"a b\" y1=2 />\
        <text x=3>p=1 &lt; 2</text><circle r=3><title>said</title></circle>\n</svg>\n</figure>\n\
        <svg class=graph>\n</svg>\n";

    #[test]
    fn a_picture_alone_has_its_style_and_quotes_and_says_nothing_to_pointers() {
        let charts = charts(PAGE);
        assert_eq!(charts.len(), 2);
        assert_eq!((charts[0].title, charts[1].title), ("How late", "How late"));
        assert_eq!(
            alone(&charts[0], between(PAGE, "<style>\n", "</style>").unwrap_or("")),
            format!(
                "<svg class=\"chart\" viewBox=\"0 0 9 4\" role=\"img\" \
                 xmlns=\"http://www.w3.org/2000/svg\">\n<title>How late</title>\n\
                 <style>\na {{ b: c }}\n{ALONE}</style>\n\
                 <line x1=\"1\" class=\"a b\" y1=\"2\" /><text x=\"3\">p=1 &lt; 2</text>\
                 <circle r=\"3\"></circle>\n</svg>\n"
            )
        );
    }

    #[test]
    fn what_is_no_page_is_refused() {
        let fails =
            |of: &[&str]| run(lexopt::Parser::from_args(of)).expect_err("refused").to_string();
        assert!(fails(&[]).contains("no page: name a file"));
        assert!(fails(&["no-such-page.html"]).contains("no-such-page.html: "));
    }
}
