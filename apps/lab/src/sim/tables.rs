//! Tables of rows, for people.

use antiphon_report::table::{Cell, Table, duration, printable, si};
use antiphon_report::words::several;
use serde_json::Value;

use super::cases;

/// Returns tables of the rows: for each case, work by the number of threads; and more figures of
/// the rows with the most threads. Rows of a case must be adjacent, and within it those of a lock.
pub fn text(rows: &[Value], colour: bool) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| one["case"] == next["case"]) {
        let name = of_case[0]["case"].as_str().unwrap_or_default();
        let about = cases::named(name).map_or("", |case| case.about);
        let threads = threads(of_case);
        let most = threads.last().copied().unwrap_or(0);
        text += &format!("{name}: {about}\n{}", work(of_case, &threads).render(colour));
        let of_most = of_case.iter().filter(|row| row["threads"] == most);
        text += &format!("\nWith {}\n{}", several(most, "thread"), more(of_most).render(colour));
        text += &notes(of_case);
        text.push('\n');
    }
    text + RULE
}

/// Returns the numbers of threads in rows, each once, in ascending order.
pub fn threads(rows: &[Value]) -> Vec<u64> {
    let mut threads: Vec<_> = rows.iter().filter_map(|row| row["threads"].as_u64()).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

fn work(rows: &[Value], threads: &[u64]) -> Table {
    let counts: Vec<_> = threads.iter().map(|count| format!(">{count}")).collect();
    let mut heads = vec!["operations/s, threads"];
    heads.extend(counts.iter().map(String::as_str));
    let mut table = Table::new(&heads);
    for of_lock in rows.chunk_by(|one, next| one["subject"] == next["subject"]) {
        let mut line = vec![Cell::text(of_lock[0]["subject"].as_str().unwrap_or_default())];
        for count in threads {
            let row = of_lock.iter().find(|row| row["threads"] == *count);
            let figure = row.map_or(String::new(), |row| match row["ops_per_s"].as_f64() {
                Some(figure) => si(figure),
                None if row["not_here"].is_string() => "not here".to_owned(),
                None => "stuck".to_owned(),
            });
            line.push(Cell::number(figure));
        }
        table.row(line);
    }
    table
}

fn more<'a>(rows: impl Iterator<Item = &'a Value>) -> Table {
    let known = |value: &Value, words: fn(f64) -> String| Cell::known(value.as_f64(), words);
    let two = |value: &Value| known(value, |figure| format!("{figure:.2}"));
    let whole = |value: &Value| known(value, |figure| format!("{figure:.0}"));
    let time = |value: &Value| known(value, duration);
    Table::of(
        rows,
        &[
            ("", &name),
            (">Jain", &|row| two(&row["jain"])),
            (">busier half", &|row| two(&row["busier_half"])),
            (">of 1000", &|row| whole(&row["threads_in_1000"])),
            (">remote/op", &|row| two(&row["remote_transfers_per_op"])),
            (">CPU/op", &|row| time(&row["cpu_ns_per_op"])),
            (">on socket", &|row| two(&row["stays_on_socket"])),
            (">hand-over", &|row| time(&row["handover_ns"])),
            (">woken", &|row| two(&row["handovers_with_wake"])),
            (">wakes/op", &|row| two(&row["wakes_per_op"])),
            (">wait p50", &|row| time(&row["wait_ns"]["p50"])),
            (">p99", &|row| time(&row["wait_ns"]["p99"])),
            (">longest", &|row| time(&row["longest_wait_ns"])),
            (">bytes", &|row| whole(&row["lock_bytes"])),
            (">seeds", &|row| Cell::known(spread(row), |half| format!("±{half:.1} %"))),
        ],
    )
}

/// Returns the notes on locks, one line each: which threads serve, and why a figure is missing.
pub fn notes(rows: &[Value]) -> String {
    let mut notes = Vec::new();
    for row in rows {
        let lock = row["subject"].as_str().unwrap_or_default();
        match (row["not_here"].as_str(), row["servers"].as_u64()) {
            (Some(why), _) => notes.push(format!("{lock} is not here: {}\n", printable(why))),
            (None, Some(1)) => notes.push(format!(
                "{lock}: one of the threads is its server, which has a CPU of its own\n"
            )),
            (None, Some(servers @ 2..)) => notes.push(format!(
                "{lock}: {servers} of the threads are its servers, each with a CPU of its own\n"
            )),
            _ => {}
        }
    }
    notes.dedup();
    notes.concat()
}

/// Half of the range of the work over seeds, in hundredths of the median; `None` for one seed.
fn spread(row: &Value) -> Option<f64> {
    let seeds = &row["ops_per_s_of_seeds"];
    let (least, most) = (seeds["least"].as_f64()?, seeds["most"].as_f64()?);
    let median = row["ops_per_s"].as_f64().filter(|median| *median > 0.0)?;
    (seeds["seeds"].as_u64()? > 1).then(|| (most - least) / median * 50.0)
}

fn name(row: &Value) -> Cell {
    let name = row["subject"].as_str().unwrap_or_default();
    if row["front"] == true { Cell::text(format!("{name} *")) } else { Cell::text(name) }
}

const RULE: &str = "\
busier half  of all operations, those of the busier half of the threads: 0.5 is fair, 1 is not
of 1000      different threads among a thousand in a row that had the (first) lock, on average
remote/op    lines that moved from socket to socket for an operation
CPU/op       CPU time of all threads, waiters too, for an operation
on socket    acquisitions whose last owner was on the same socket
hand-over    from giving back to having, if a thread waited
woken        of those, to one that slept when it was given back: the wake is on the critical path
longest      the longest wait of any thread, also if it ended when the time was over
bytes        of all locks of the case, without what waiters bring along
seeds        half of how far the work differs between seeds, if --seeds says several
*            of a search: no other row has more work, fairness and fewer wakes at once
";
