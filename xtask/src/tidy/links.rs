//! Checks that links between the pages of the tree lead somewhere, and that the book has every
//! page.
//!
//! Links to files, and to headings of pages, are checked; links to the outside are not. Headings
//! are named as on GitHub and in mdBook: in small letters, with hyphens for spaces, without
//! punctuation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::finding::Finding;

/// The table of contents of the book, whose pages are the files beside and below it.
const SUMMARY: &str = "docs/SUMMARY.md";

/// All pages, with their links and the names of their headings.
#[derive(Default)]
pub struct Links {
    pages: BTreeMap<String, Page>,
}

#[derive(Default)]
struct Page {
    /// The links: lines, counted from 1, and targets.
    links: Vec<(usize, String)>,
    headings: BTreeSet<String>,
}

impl Links {
    /// Reads a page.
    pub fn read(&mut self, file: &str, text: &str) {
        self.pages.insert(file.to_owned(), Page::of(text));
    }

    /// Finds links that lead to none of the tree's `files` and folders, and pages that the book
    /// lacks, or has twice.
    pub fn check(&self, files: &[String]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (file, page) in &self.pages {
            for (line, target) in &page.links {
                if let Some(what) = self.defect(files, file, target) {
                    findings.push(Finding::at(file, *line, what));
                }
            }
        }
        findings.extend(self.left_out());
        findings
    }

    fn defect(&self, files: &[String], file: &str, target: &str) -> Option<String> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (path, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if path.is_empty() { Some(file.to_owned()) } else { resolve(file, path) };
        let is_there = |path: &String| {
            let mut below = files.iter().filter_map(|file| file.strip_prefix(path.as_str()));
            below.any(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let Some(path) = path.filter(is_there) else {
            return Some(format!("the link `{target}` leads to no file of the tree"));
        };
        let page = self.pages.get(&path).filter(|_| !heading.is_empty())?;
        (!page.headings.contains(heading))
            .then(|| format!("the link `{target}` leads to no heading of {path}"))
    }

    /// Pages below the book's folder that its table of contents does not name exactly once.
    fn left_out(&self) -> Vec<Finding> {
        let Some(summary) = self.pages.get(SUMMARY) else { return Vec::new() };
        let folder = SUMMARY.split_once('/').map_or("", |(folder, _)| folder);
        let named: Vec<_> =
            summary.links.iter().filter_map(|(_, target)| resolve(SUMMARY, target)).collect();
        let pages = self.pages.keys().filter(|file| file.split('/').next() == Some(folder));
        let times = |file: &&String| named.iter().filter(|name| name == file).count();
        pages
            .filter(|file| *file != SUMMARY && times(file) != 1)
            .map(|file| Finding::of(file, format!("a page is named once in {SUMMARY}")))
            .collect()
    }
}

impl Page {
    fn of(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading = String::new();
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text[..range.start].matches('\n').count() + 1;
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading.clear(),
                Event::End(TagEnd::Heading(_)) => page.name(&slug(&heading)),
                // Text outside of headings is discarded when the next heading begins.
                Event::Text(part) | Event::Code(part) => heading.push_str(&part),
                _ => {}
            }
        }
        page
    }

    /// Adds the name of a heading; a second heading with the same words gets the suffix `-1`.
    fn name(&mut self, slug: &str) {
        let mut names =
            std::iter::once(slug.to_owned()).chain((1..).map(|number| format!("{slug}-{number}")));
        let free = names.find(|name| !self.headings.contains(name));
        self.headings.extend(free);
    }
}

/// The name of a heading in a link.
fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// The file that `path` means in a link of `file`; `None` if it is outside of the tree.
fn resolve(file: &str, path: &str) -> Option<String> {
    let mut to = PathBuf::from(file);
    to.pop();
    for part in Path::new(path).components() {
        match part {
            Component::ParentDir => to.pop().then_some(())?,
            Component::Normal(name) => to.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    to.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pages: &[(&str, &str)]) -> Links {
        let mut links = Links::default();
        pages.iter().for_each(|(file, text)| links.read(file, text));
        links
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        let files = ["docs/a.md", "docs/b/c.rs"].map(str::to_owned);
        let text = "# A\n\n[x](https://example.org/none) [y](none.md)\n[z](#a) [w](#b)\n\
                    [v](../../docs/a.md)\n[u](/docs/a.md)\n[t](b) [s](b/c.rs) [r](../docs)\n";
        let found = links(&[("docs/a.md", text)]).check(&files);
        let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3, 4, 5, 6], "{found:?}");
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let page = Page::of("# Task `A`: x, y\n\n## Same\n\n## Same\n");
        let names: Vec<_> = page.headings.iter().map(String::as_str).collect();
        assert_eq!(names, ["same", "same-1", "task-a-x-y"]);
    }

    #[test]
    fn a_link_is_relative_to_its_page() {
        assert_eq!(resolve("docs/a.md", "../crates/b.md").as_deref(), Some("crates/b.md"));
        assert_eq!(resolve("docs/a.md", "results/").as_deref(), Some("docs/results"));
        assert_eq!(resolve("docs/a.md", "../../b.md"), None);
        assert_eq!(resolve("docs/a.md", "/docs/b.md"), None);
    }

    #[test]
    fn a_page_that_the_book_does_not_have_is_found() {
        let pages = [("docs/SUMMARY.md", "[a](a.md)"), ("docs/a.md", ""), ("docs/b.md", "")];
        let found = links(&pages).left_out();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, "docs/b.md");
    }
}
