//! The parts of a report that are rows: call sites, event loops, locks in both orders, threads.

use antiphon_record::Histogram;
use antiphon_report::page::escape;
use antiphon_report::table::{count, duration};

use super::graph;
use crate::run::callers::Callers;
use crate::run::classes::{self, Class};
use crate::run::order::Step;
use crate::run::summary::{LockRow, Report, ThreadRow};

/// How many threads are shown.
const THREADS: usize = 64;
/// How many groups of locks that were taken in both orders are shown.
const INVERSIONS: usize = 20;

fn head(name: &str, number: bool, sorted: bool) -> String {
    let class = if number { " class=n" } else { "" };
    let sort = if sorted { " aria-sort=descending" } else { "" };
    format!("<th{class}{sort}><button>{name}</button>")
}

/// A cell with the value that it is sorted by.
fn number(value: u64, text: &str) -> String {
    format!("<td class=n data-v={value}>{text}")
}

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| number(0, "–"), |ns| number(ns, &duration(ns as f64)))
}

/// Call sites, with the time that was waited as bars.
pub fn locks(sites: &[LockRow], profile: bool) -> String {
    let Some(most) = sites.iter().map(|row| row.wait.sum_ns).max() else {
        return String::new();
    };
    let rows: String = sites.iter().map(|row| site(row, most.max(1), profile)).collect();
    let mut heads = vec![head("call site", false, false), head("kind", false, false)];
    heads.push(head("waited", true, true));
    heads.push("<th>".to_owned());
    let times = ["waits", "p50", "p99", "longest"];
    heads.extend(times.map(|name| head(name, true, false)));
    if profile {
        heads.push(head("taken", true, false));
        heads.extend(["held", "held p50", "held p99"].map(|name| head(name, true, false)));
    }
    heads.push(head("locks", true, false));
    format!(
        "<h2>Waits by call site</h2>\n<p class=faint>A call site is the caller of the lock \
         function. A click \
         on a head sorts.</p>\n<div class=wide><table class=sortable id=sites><thead><tr>{}\
         <tbody>\n{rows}</table></div>\n",
        heads.concat()
    )
}

fn site(row: &LockRow, most: u64, profile: bool) -> String {
    let some = |histogram: &Histogram, ns: u64| (!histogram.is_empty()).then_some(ns);
    let (name, whole) = (escape(&row.site_and_waiters()), escape(&row.site.wide().join("\n")));
    let width = row.wait.sum_ns as f64 / most as f64 * 100.0;
    let bar = if row.wait.sum_ns == 0 {
        String::new()
    } else {
        format!("<span class=ours style=\"width:{width:.1}%\"></span>")
    };
    let mut cells = vec![
        time(some(&row.wait, row.wait.sum_ns)),
        format!("<td class=bars>{bar}"),
        number(row.contended, &count(row.contended)),
        time(row.wait.p50()),
        time(row.wait.p99()),
        time(some(&row.wait, row.wait.max_ns)),
    ];
    if profile {
        cells.push(number(row.acquisitions, &count(row.acquisitions)));
        cells.push(time(some(&row.hold, row.hold.sum_ns)));
        cells.extend([time(row.hold.p50()), time(row.hold.p99())]);
    }
    cells.push(number(row.locks as u64, &row.locks.to_string()));
    format!("<tr><td class=site title=\"{whole}\">{name}<td>{}{}\n", row.kind, cells.concat())
}

/// The locks by what names them.
pub fn classes(locks: &[LockRow], profile: bool) -> String {
    let classes = classes::classes(locks);
    if classes.is_empty() {
        return String::new();
    }
    let row = |class: &Class| {
        let held = match profile {
            true => time((!class.hold.is_empty()).then_some(class.hold.sum_ns)),
            false => String::new(),
        };
        format!(
            "<tr><td class=site>{}<td>{}{}{}{}{held}\n",
            escape(&class.name),
            class.kind,
            number(class.locks as u64, &count(class.locks as u64)),
            number(class.contended, &count(class.contended)),
            time((!class.wait.is_empty()).then_some(class.wait.sum_ns)),
        )
    };
    let rows: String = classes.iter().map(row).collect();
    let mut heads = vec![head("lock", false, false), head("kind", false, false)];
    heads.extend([head("locks", true, false), head("waits", true, false)]);
    heads.push(head("waited", true, true));
    heads.extend(profile.then(|| head("held", true, false)));
    format!(
        "<h2>Locks</h2>\n<p class=faint>By variable, or by where they were initialised or first \
         taken.</p>\n<div class=wide><table class=sortable id=classes><thead><tr>{}<tbody>\n{rows}\
         </table></div>\n",
        heads.concat()
    )
}

/// The callers of each site, where they are known.
pub fn callers(callers: &Callers, sites: &[LockRow]) -> String {
    let trees = sites.iter().filter_map(|row| {
        let tree = callers.tree(row);
        let name = escape(&row.site.label());
        let lines = escape(&tree.lines().join("\n"));
        (!tree.is_empty()).then(|| {
            format!(
                "<details><summary>{name}, {}</summary><pre>{lines}</pre></details>\n",
                row.kind
            )
        })
    });
    let trees: String = trees.collect();
    if trees.is_empty() {
        return trees;
    }
    let (waits, cut) = callers.counts();
    format!(
        "<h2>Callers</h2>\n<p class=faint>By their share of a site's waiting. A stack was taken \
         for {} waits; {} are cut short.</p>\n{trees}",
        count(waits),
        count(cut),
    )
}

/// Event loops that shared their CPU.
pub fn loops(report: &Report) -> String {
    let Some(coop) = &report.coop else { return String::new() };
    let notes: String =
        coop.notes().iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    format!(
        "<h2>Event loops</h2>\n<p class=faint>{}</p>\n<div class=wide><pre>{}</pre></div>\n{notes}",
        escape(&coop.how()),
        escape(&coop.table().render(false)),
    )
}

/// The lock-order graph, and what is wrong in it.
pub fn order(report: &Report) -> String {
    let Some(drawing) = graph::draw(&report.order) else { return String::new() };
    let groups = report.order.by_site();
    let inversions: String = groups.iter().take(INVERSIONS).map(inversion).collect();
    let more = groups.len().saturating_sub(INVERSIONS);
    let more = if more == 0 {
        String::new()
    } else {
        format!("<p>{more} more: --report F.json has them all.</p>\n")
    };
    format!(
        "<h2>Lock order</h2>\n<p class=faint>An arrow leads from a lock that was held to one that \
         was taken. A box is a call site, and the locks that were first taken there. Red: taken \
         in both orders, or in a circle.</p>\n<div class=wide>{drawing}</div>\n{inversions}{more}"
    )
}

fn inversion((locks, steps): &(usize, &[Step])) -> String {
    let how = if steps.len() == 2 { "in both orders" } else { "in a circle" };
    let times =
        if *locks > 1 { format!(" ({locks} times, with other locks)") } else { String::new() };
    let row = |step: &Step| {
        format!(
            "<tr><td>{}<td class=site>{}<td>{}<td class=site>{}<td class=n>{}\n",
            escape(&step.held.name()),
            escape(&step.held.site),
            escape(&step.taken.name()),
            escape(&step.taken.site),
            count(step.count),
        )
    };
    format!(
        "<p class=note>Taken {how}, a deadlock in waiting if that can happen at the same time\
         {times}:</p>\n<div class=wide><table><thead><tr><th>held<th>since<th>took<th>at\
         <th class=n>times<tbody>\n{}</table></div>\n",
        steps.iter().map(row).collect::<String>()
    )
}

/// Threads, with the time that they were blocked as bars.
pub fn threads(report: &Report) -> String {
    let Some(most) = report.by_thread.first().map(|thread| thread.blocked_ns()) else {
        return String::new();
    };
    let shown = report.by_thread.iter().take(THREADS);
    let rows: String = shown.map(|row| thread(row, most.max(1))).collect();
    let more = match report.by_thread.len().saturating_sub(THREADS) {
        0 => String::new(),
        more => format!("<p>{more} more: --report F.json has them all.</p>\n"),
    };
    let names = ["mutexes", "readers-writer locks", "condition variables", "spinlocks"];
    let keys: Vec<_> = SHADES
        .iter()
        .zip(names)
        .map(|(class, name)| format!("<span class=\"key {class}\"></span>{name}"))
        .collect();
    let heads = [
        head("process", true, false),
        head("thread", true, false),
        head("blocked", true, true),
        "<th>".to_owned(),
        head("waits", true, false),
        head("locks taken", true, false),
    ];
    format!(
        "<h2>Threads, by the time they were blocked in these</h2>\n<p>{}</p>\n\
         <div class=wide><table class=sortable id=threads><thead><tr>{}<tbody>\n{rows}</table>\
         </div>\n{more}",
        keys.join(" &ensp; "),
        heads.concat()
    )
}

/// The shades of the kinds of waits that are recorded.
const SHADES: [&str; 4] = ["ours", "ours second", "ours third", "ours fourth"];

fn thread(row: &ThreadRow, most: u64) -> String {
    let blocked = &row.blocked;
    let kinds = [blocked.mutex_ns, blocked.rwlock_ns, blocked.condition_ns, blocked.spin_ns];
    let bars: String = SHADES
        .iter()
        .zip(kinds)
        .filter(|&(_, ns)| ns != 0)
        .map(|(class, ns)| {
            let width = ns as f64 / most as f64 * 100.0;
            format!(
                "<span class=\"{class}\" style=\"width:{width:.1}%\" title=\"{}\"></span>",
                duration(ns as f64)
            )
        })
        .collect();
    let id = |id: u32| number(u64::from(id), &id.to_string());
    format!(
        "<tr>{}{}{}<td class=bars>{bars}{}{}\n",
        id(row.pid),
        id(row.tid),
        time(Some(row.blocked_ns())),
        number(row.waits, &count(row.waits)),
        number(row.acquisitions, &count(row.acquisitions)),
    )
}
