//! The stacks of waiting threads, folded into a tree of callers for each call site.

use antiphon_record::Snapshot;
use antiphon_report::table::printable;
use serde_json::{Value, json};

use super::names;
use super::rows::LockRow;
use crate::symbols::{CallSite, Frame, Symbols};

/// The waits that began with one stack.
pub struct StackRow {
    /// The call site.
    pub site: CallSite,
    /// The kind of lock.
    pub kind: &'static str,
    /// The index of its row in the recording.
    row: usize,
    /// The callers, the innermost first.
    pub callers: Vec<CallSite>,
    /// Whether the stack is complete, up to where the thread began.
    pub whole: bool,
    /// Number of waits that began with this stack.
    pub waits: u64,
    /// Their time, in nanoseconds.
    pub wait_ns: u64,
}

/// All stacks of a recording.
#[derive(Default)]
pub struct Callers {
    /// The stacks, the longest waiting first.
    pub stacks: Vec<StackRow>,
}

/// Functions of the C library in which a thread begins: a reader does not look for them as callers.
const BEGINS: [&str; 5] = ["start_thread", "clone", "clone3", "__clone", "_start"];
/// The prefix of further such functions.
const ALSO_BEGINS: &str = "__libc_start_";

impl Callers {
    /// Reads the stacks of a recording.
    pub fn of(snapshot: &Snapshot, symbols: &mut Symbols) -> Self {
        let mut stacks = Vec::new();
        for stack in snapshot.stacks.iter().filter(|stack| stack.waits > 0) {
            let Some(row) = snapshot.rows.get(stack.row) else { continue };
            let callers = stack.callers.iter().map(|&site| names::caller(snapshot, site, symbols));
            stacks.push(StackRow {
                callers: callers.collect(),
                site: names::site(snapshot, row.site, symbols),
                kind: row.kind.name(),
                row: stack.row,
                whole: stack.whole,
                waits: stack.waits,
                wait_ns: stack.wait_ns,
            });
        }
        stacks.sort_by_key(|stack| std::cmp::Reverse(stack.wait_ns));
        let mut callers = Self { stacks };
        for at in 0..callers.stacks.len() {
            let stack = &callers.stacks[at];
            let (row, site) = (stack.row, stack.site.clone());
            callers.stacks[at].site = callers.named_by_callers(row, site);
        }
        callers
    }

    /// The site of a row of the recording. If the site is in a function that only wraps the lock,
    /// such as `std::mutex::lock` where that is not inlined, it is named after the function of the
    /// program that caused most of the waiting.
    pub fn named_by_callers(&self, row: usize, site: CallSite) -> CallSite {
        if !site.is_of_a_library() || site.caller.is_some() {
            return site;
        }
        let own = |stack: &StackRow| {
            let mut frames = stack.callers.iter().flat_map(|caller| &caller.frames);
            frames.find(|frame| !frame.is_of_a_library()).cloned()
        };
        let stacks = self.stacks.iter().filter(|stack| stack.row == row);
        // The stacks are sorted: the first has most of the waiting.
        let mut owners = stacks.filter_map(own);
        let caller = owners.next();
        let has_other_callers = owners.any(|other| Some(other) != caller);
        CallSite { caller, has_other_callers, ..site }
    }

    /// The tree of the callers of a row of a report.
    pub fn tree(&self, row: &LockRow) -> Tree {
        let mut tree = Tree::default();
        let label = row.site.label();
        for stack in self.stacks.iter().filter(|it| it.kind == row.kind && it.site.label() == label)
        {
            tree.add(&stack.chain(), stack);
        }
        tree
    }

    /// The number of waits with a stack, and the number of those whose stack was cut short.
    pub fn counts(&self) -> (u64, u64) {
        // Saturating: a program may have written over its recording.
        self.stacks.iter().fold((0_u64, 0_u64), |(waits, cut), stack| {
            let more = if stack.whole { 0 } else { stack.waits };
            (waits.saturating_add(stack.waits), cut.saturating_add(more))
        })
    }

    /// The value of `stacks` in the JSON report.
    pub fn json(&self) -> Value {
        let object = |stack: &StackRow| {
            let callers: Vec<_> = stack.callers.iter().map(CallSite::json).collect();
            json!({
                "site": stack.site.json(), "kind": stack.kind, "callers": callers,
                "whole": stack.whole, "waits": stack.waits, "wait_ns": stack.wait_ns,
            })
        };
        self.stacks.iter().map(object).collect()
    }
}

impl StackRow {
    /// The callers that a reader looks for: the program's own functions, beginning with those
    /// inlined at the call site.
    fn chain(&self) -> Vec<String> {
        let sites = [&self.site].into_iter().chain(&self.callers);
        let mut chain: Vec<(String, bool)> = sites.flat_map(labels).collect();
        // Drops the libraries without lines in which a thread begins.
        if let Some(last) = chain.iter().rposition(|&(_, has_line)| has_line) {
            chain.truncate(last + 1);
        }
        // The function at the call site has a row of its own.
        let first = usize::from(self.site.caller.is_none());
        chain.into_iter().skip(first).map(|(name, _)| name).collect()
    }
}

/// The functions of the program at a call, and whether they have lines; without lines, the function
/// or the place.
fn labels(site: &CallSite) -> Vec<(String, bool)> {
    let begins = |function: &str| BEGINS.contains(&function) || function.starts_with(ALSO_BEGINS);
    if site.frames.is_empty() {
        let function = site.name.split("+0x").next().unwrap_or_default();
        return if begins(function) { Vec::new() } else { vec![(site.name.clone(), false)] };
    }
    let own = |frame: &&Frame| !frame.is_of_a_library() && !begins(&frame.function);
    site.frames.iter().filter(own).map(|frame| (frame.label(), true)).collect()
}

/// A tree of callers, with the waiting that came from each.
#[derive(Default)]
pub struct Tree {
    /// The total number of waits, and their nanoseconds.
    waits: u64,
    wait_ns: u64,
    callers: Vec<(String, Tree)>,
}

/// A caller with less of its site's waiting is not shown.
const LEAST_SHARE: f64 = 0.05;
/// The most callers in one line.
const IN_A_LINE: usize = 6;

impl Tree {
    fn add(&mut self, chain: &[String], stack: &StackRow) {
        self.waits = self.waits.saturating_add(stack.waits);
        self.wait_ns = self.wait_ns.saturating_add(stack.wait_ns);
        let Some((first, rest)) = chain.split_first() else { return };
        let at = self.callers.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            self.callers.push((first.clone(), Self::default()));
            self.callers.len() - 1
        });
        self.callers[at].1.add(rest, stack);
    }

    /// Returns whether no caller is known.
    pub fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }

    /// The tree as lines: each caller with its share, and a chain of only callers in one line.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.write(self.weight(), 0, &mut lines);
        lines
    }

    /// The time of the waits, or their number where they took no time.
    fn weight(&self) -> f64 {
        if self.wait_ns > 0 { self.wait_ns as f64 } else { self.waits as f64 / 1e9 }
    }

    fn write(&self, all: f64, depth: usize, lines: &mut Vec<String>) {
        let mut callers: Vec<_> = self.callers.iter().collect();
        callers.sort_by(|(_, one), (_, other)| other.weight().total_cmp(&one.weight()));
        for (name, tree) in callers {
            let mut tree: &Self = tree;
            let share = tree.weight() / all;
            if share < LEAST_SHARE {
                continue;
            }
            let mut names = vec![name.as_str()];
            while let [(name, only)] = &tree.callers[..]
                && only.waits == tree.waits
                && names.len() < IN_A_LINE
            {
                names.push(name);
                tree = only;
            }
            let indent = "  ".repeat(depth);
            lines.push(printable(&format!(
                "{indent}{:>4.0} %  {}",
                share * 100.0,
                names.join(" ← ")
            )));
            tree.write(all, depth + 1, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: &str, file: &str) -> CallSite {
        let frame =
            Frame { function: function.to_owned(), file: Some(file.to_owned()), line: Some(1) };
        CallSite { name: format!("{function}+0x1 (p)"), frames: vec![frame], ..CallSite::default() }
    }

    fn stack(callers: &[&str], waits: u64, wait_ns: u64) -> StackRow {
        StackRow {
            site: site("std::mutex::lock", "/usr/include/c++/12/mutex"),
            kind: "mutex",
            row: 0,
            callers: callers.iter().map(|name| site(name, "a.c")).collect(),
            whole: waits > 1,
            waits,
            wait_ns,
        }
    }

    #[test]
    fn callers_are_folded_and_a_wrapper_is_named_by_them() {
        let stacks = vec![
            stack(&["add", "serve", "main"], 9, 700),
            stack(&["add", "flush", "main"], 3, 260),
            stack(&["add", "seldom"], 1, 40),
        ];
        let mut callers = Callers { stacks };
        let named = callers.named_by_callers(0, callers.stacks[0].site.clone());
        assert_eq!((&*named.label(), named.has_other_callers), ("add a.c:1", false));
        callers.stacks.iter_mut().for_each(|stack| stack.site = named.clone());
        let mut tree = Tree::default();
        callers.stacks.iter().for_each(|stack| tree.add(&stack.chain(), stack));
        let lines = [
            " 100 %  add a.c:1",
            "    70 %  serve a.c:1 ← main a.c:1",
            "    26 %  flush a.c:1 ← main a.c:1",
        ];
        assert_eq!(tree.lines(), lines);
        let mut more = vec![stack(&["put", "main"], 1, 50)];
        more.append(&mut callers.stacks);
        callers.stacks = more;
        callers.stacks.iter_mut().for_each(|stack| stack.site.caller = None);
        let named = callers.named_by_callers(0, callers.stacks[0].site.clone());
        assert_eq!(named.label(), "put a.c:1 and others");
        callers.stacks.remove(0);
        assert_eq!(callers.counts(), (13, 1));
        assert_eq!(callers.json()[0]["callers"][1]["function"], "serve");
    }

    #[test]
    fn a_choice_begins_a_new_line_and_a_thread_has_no_caller() {
        let mut tree = Tree::default();
        let chain = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        tree.add(&chain(&["a", "b", "c"]), &stack(&[], 1, 60));
        tree.add(&chain(&["a", "b", "d"]), &stack(&[], 1, 40));
        assert_eq!(tree.lines(), [" 100 %  a ← b", "    60 %  c", "    40 %  d"]);
        let begin = CallSite::named("start_thread+0x2ea (libc.so.6)");
        assert!(labels(&begin).is_empty());
        assert_eq!(labels(&CallSite::named("x.so+0x10")), [("x.so+0x10".to_owned(), false)]);
    }
}
