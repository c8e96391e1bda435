//! The table that `--record` writes: the figures of each entry's command, with date and machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use super::check::{Checked, Verdict};
use super::entries::{By, Claim};
use crate::Failure;

/// The page: date and machine, the counts, and a row for each compared entry.
pub fn page(
    claims: &[&Claim],
    results: &BTreeMap<&str, Checked>,
    summary: &str,
) -> Result<String, Failure> {
    let mut page = format!("# Record: claims and what their commands showed\n\n{}\n", machine()?);
    writeln!(page, "{summary}.\n")?;
    page.push_str("| entry | status | by | command | figure | bound | |\n");
    page.push_str("|---|---|---|---|---|---|---|\n");
    for claim in claims {
        let Some(checked) = results.get(claim.id.as_str()) else { continue };
        if matches!(checked.verdict, Verdict::Skipped(_)) {
            continue;
        }
        let command = claim.command.as_ref().map(|command| format!("`{command}`"));
        let row = [
            format!("`{}`", claim.id),
            claim.status.name().to_owned(),
            claim.by.map_or("", By::name).to_owned(),
            command.unwrap_or_default(),
            checked.figure.clone(),
            checked.bound.clone(),
            checked.verdict.name(),
        ];
        writeln!(page, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "))?;
    }
    Ok(page)
}

/// The date (UTC), the CPUs and the kernel.
fn machine() -> Result<String, Failure> {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?.stdout;
    let cpus = std::thread::available_parallelism()?;
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": ")).map_or("unnamed", |(_, name)| name);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (date, kernel) = (String::from_utf8_lossy(&date), kernel.trim());
    Ok(format!("{}; {cpus} CPUs ({model}), Linux {kernel}.\n", date.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::entries;
    use super::*;

    #[test]
    fn an_entry_is_a_row() {
        let claims = entries::parse(
            "[[claim]]\nid = \"cst-a\"\ndocument = \"004\"\nwhere = \"x\"\nkind = \"claim\"\n\
             words = \"w\"\nstatus = \"shape-only\"\nby = \"virtual-time\"\nresult = \"r\"\n\
             command = \"antiphon sim locks\"\n",
        )
        .unwrap();
        let checked =
            Checked { verdict: Verdict::Ok, figure: "2".to_owned(), bound: "1|3".to_owned() };
        let page = page(&[&claims[0]], &[("cst-a", checked)].into(), "1 entry").unwrap();
        let row = "| `cst-a` | shape only | virtual time | `antiphon sim locks` | 2 | 1\\|3 | ok |";
        assert!(page.lines().any(|line| line == row), "{page}");
        assert!(page.contains("CPUs (") && page.contains("Linux ") && page.contains("1 entry."));
    }
}
