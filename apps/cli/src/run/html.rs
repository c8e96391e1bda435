//! The report of a run as one page that needs nothing else.

use super::summary::{LockRow, Report};
use crate::output::table::{count, duration};

const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; white-space: nowrap }
td.n, th.n { text-align: right }
tr:hover td { background: #8882 }
.bar { display: flex; height: 1.6rem; margin: .5rem 0 1rem }
.bar span { min-width: 1px }
.reachable { background: #2a7 } .beyond { background: #c84 } .neutral { background: #999 }
.in { background: #2a72; height: .5rem; display: block }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }
";

/// The page.
pub fn page(report: &Report) -> String {
    let title = escape(&report.run.command.join(" "));
    let wall = duration(report.run.wall.as_secs_f64() * 1e9);
    let notes: String =
        report.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<p>{wall} · {} · {} threads · locks: {}</p>\n\
         {notes}{}{}</html>\n",
        escape(&report.run.ended),
        report.threads,
        escape(&report.run.lock),
        blocked(report),
        locks(report),
    )
}

fn blocked(report: &Report) -> String {
    let kinds = report.blocked.kinds();
    let all: f64 = kinds.iter().map(|kind| kind.2).sum();
    if all <= 0.0 {
        return "<p>No thread was seen blocked.</p>\n".to_owned();
    }
    let class = |key: &str, reachable: bool| match (key, reachable) {
        (_, true) => "reachable",
        ("sleep", _) => "neutral",
        _ => "beyond",
    };
    let mut bar = String::new();
    let mut rows = String::new();
    for (key, name, seconds, reachable) in kinds.into_iter().filter(|kind| kind.2 > 0.0) {
        let share = seconds / all * 100.0;
        let class = class(key, reachable);
        bar += &format!("<span class={class} style=\"width:{share:.2}%\" title=\"{name}\"></span>");
        let time = duration(seconds * 1e9);
        rows += &format!("<tr><td>{name}<td class=n>{time}<td class=n>{share:.1} %\n");
    }
    let reachable = report.reachable_share().map_or(String::new(), |share| {
        let whose = report.reachable_locks();
        format!("<p>{:.0} % of it, sleep apart, is in {whose} (green).</p>\n", share * 100.0)
    });
    format!(
        "<h2>Blocked time, summed over threads</h2>\n{reachable}<div class=bar>{bar}</div>\n\
         <table><tr><th>in<th class=n>time<th class=n>share\n{rows}</table>\n"
    )
}

fn locks(report: &Report) -> String {
    let sites = report.by_site();
    let Some(most) = sites.first().map(|row| row.wait.sum_ns.max(1)) else {
        return String::new();
    };
    let rows: String = sites.iter().map(|row| site(row, most)).collect();
    let heads = ["locks", "taken", "waited", "p50", "p99", "longest", "in all", "held p50", "p99"];
    let heads: String = heads.iter().map(|head| format!("<th class=n>{head}")).collect();
    format!(
        "<h2>Locks by call site</h2>\n<table><tr><th>call site<th>kind{heads}\n{rows}</table>\n"
    )
}

fn site(row: &LockRow, most: u64) -> String {
    let time = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| duration(ns as f64));
    let waited = (!row.wait.is_empty()).then_some(());
    let numbers = [
        row.locks.to_string(),
        count(row.acquisitions),
        count(row.contended),
        time(row.wait.p50()),
        time(row.wait.p99()),
        time(waited.map(|()| row.wait.max_ns)),
        time(waited.map(|()| row.wait.sum_ns)),
        time(row.hold.p50()),
        time(row.hold.p99()),
    ];
    let numbers: String = numbers.iter().map(|number| format!("<td class=n>{number}")).collect();
    let width = row.wait.sum_ns as f64 / most as f64 * 100.0;
    format!(
        "<tr><td>{}<span class=in style=\"width:{width:.1}%\"></span><td>{}{numbers}\n",
        escape(&row.site_and_waiters()),
        row.kind,
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_of_templates_are_text() {
        assert_eq!(escape("a<b&c>(\"d\")"), "a&lt;b&amp;c&gt;(&quot;d&quot;)");
    }
}
