//! `programs --measure`: measures real programs with glibc's locks and with ours, in interleaved
//! pairs.
//!
//! `xtask/programs/programs.toml` lists the programs, and a script for each does the work.
//! `antiphon try` runs the pairs; this verb collects the rows, as throughput: above 1 is faster.

mod input;
mod row;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::finding::{Finding, Outcome, report};
use crate::metadata::Metadata;
use crate::tree;
use row::Row;

const DIRECTORY: &str = "xtask/programs";
const LIST: &str = "xtask/programs/programs.toml";

/// The contents of `programs.toml`.
#[derive(Deserialize)]
struct List {
    program: Vec<Program>,
}

/// One program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    /// The name of the program, and of its script.
    name: String,
    /// Debian packages that it needs.
    packages: Vec<String>,
    /// The kinds of locks that it uses, for readers.
    #[expect(dead_code, reason = "for readers of the list")]
    locks: String,
    /// The work that the script does, for readers.
    #[expect(dead_code, reason = "for readers of the list")]
    work: String,
    /// Names of numbers that the script prints, each on a line: `NAME NUMBER`.
    #[serde(default)]
    metrics: Vec<String>,
}

struct Options {
    pairs: u32,
    threads: Vec<u32>,
    only: Vec<String>,
    lock: String,
    record: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: lexopt::Parser) -> Result<Self, Failure> {
        use lexopt::prelude::*;
        let mut options = Self {
            pairs: 15,
            threads: vec![4],
            only: Vec::new(),
            lock: "shfl-mutex".to_owned(),
            record: None,
        };
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("pairs") => options.pairs = arguments.value()?.parse()?,
                Long("threads") => {
                    let list = arguments.value()?.string()?;
                    options.threads = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                Long("only") => {
                    let list = arguments.value()?.string()?;
                    options.only = list.split(',').map(str::to_owned).collect();
                }
                Long("lock") => options.lock = arguments.value()?.string()?,
                Long("record") => options.record = Some(arguments.value()?.into()),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.threads.iter().any(|&threads| !(2..=256).contains(&threads)) {
            return Err("--threads takes numbers from 2 to 256".into());
        }
        Ok(options)
    }
}

/// `cargo xtask programs --measure [--pairs N] [--threads LIST] [--only LIST] [--lock L]
/// [--record F]`.
pub fn run(arguments: lexopt::Parser) -> Result<Outcome, Failure> {
    let options = Options::parse(arguments)?;
    let root = tree::root()?;
    let programs = chosen(&root, &options.only)?;
    let metadata = Metadata::read(&root)?;
    let antiphon = build(&root, &metadata.target_directory)?;
    let scratch = metadata.target_directory.join("programs");
    std::fs::create_dir_all(&scratch)?;
    let input = input::make(&scratch)?;
    let (mut rows, mut findings) = (Vec::new(), Vec::new());
    println!("{}", Row::HEAD);
    for &threads in &options.threads {
        for program in &programs {
            let trial =
                Trial { root: &root, antiphon: &antiphon, scratch: &scratch, input: &input };
            match trial.run(program, threads, &options)? {
                Ok(row) => {
                    println!("{row}");
                    rows.push(row);
                }
                Err(why) => {
                    let packages = program.packages.join(" ");
                    let what = format!("{}: {why} (packages: {packages})", program.name);
                    findings.push(Finding::of(LIST, what));
                }
            }
        }
    }
    if let Some(file) = options.record {
        let rows: Vec<_> = rows.iter().map(Row::json).collect();
        let record = json!({ "lock": options.lock, "pairs": options.pairs, "rows": rows });
        std::fs::write(&file, format!("{record:#}\n"))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(report(findings))
}

fn chosen(root: &Path, only: &[String]) -> Result<Vec<Program>, Failure> {
    let text = std::fs::read_to_string(root.join(LIST))?;
    let list: List = toml::from_str(&text).map_err(|error| format!("{LIST}: {error}"))?;
    let names: Vec<_> = list.program.iter().map(|program| program.name.clone()).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(format!("no program {unknown:?}; there are {}", names.join(", ")).into());
    }
    let wanted = |program: &Program| only.is_empty() || only.contains(&program.name);
    Ok(list.program.into_iter().filter(wanted).collect())
}

fn build(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--quiet", "--package", "antiphon-cli"];
    let status = Command::new(cargo).args(arguments).current_dir(root).status()?;
    if !status.success() {
        return Err("the command does not build".into());
    }
    Ok(target.join("release/antiphon"))
}

/// The settings that all trials share.
struct Trial<'a> {
    root: &'a Path,
    antiphon: &'a Path,
    scratch: &'a Path,
    input: &'a Path,
}

impl Trial<'_> {
    /// Runs the pairs of one program; the inner error is the program's own.
    fn run(
        &self,
        program: &Program,
        threads: u32,
        options: &Options,
    ) -> Result<Result<Row, String>, Failure> {
        let script = self.root.join(DIRECTORY).join(format!("{}.sh", program.name));
        let mut command = Command::new(self.antiphon);
        command.args(["try", "--json", "--pairs", &options.pairs.to_string()]);
        command.args(["--lock", &options.lock]);
        for metric in &program.metrics {
            command.arg("--metric").arg(format!("{metric}={metric} ([0-9.]+)"));
        }
        // Each run has its own directory, without files of an earlier run.
        let work = self.scratch.join(&program.name);
        let fresh = "rm -rf \"$0\" && mkdir -p \"$0\" && cd \"$0\" && exec sh -e \"$1\"";
        command.args(["--", "sh", "-c", fresh]).arg(&work).arg(script);
        command.env("THREADS", threads.to_string()).env("INPUT", self.input);
        let output = command.stderr(std::process::Stdio::piped()).output()?;
        if work.exists() {
            std::fs::remove_dir_all(&work)?;
        }
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let trial: Value = serde_json::from_slice(&output.stdout)?;
        let row = Row::of(&program.name, threads, &program.metrics, &trial);
        Ok(row.ok_or_else(|| "antiphon try printed no ratios".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_script_and_each_script_a_program() {
        let root = tree::root().unwrap();
        let names: Vec<_> =
            chosen(&root, &[]).unwrap().into_iter().map(|program| program.name).collect();
        let mut scripts: Vec<_> = std::fs::read_dir(root.join(DIRECTORY))
            .unwrap()
            .filter_map(|entry| {
                Some(entry.ok()?.file_name().to_str()?.strip_suffix(".sh")?.to_owned())
            })
            .collect();
        let mut sorted = names.clone();
        sorted.sort();
        scripts.sort();
        assert_eq!(sorted, scripts);
        assert!(names.len() >= 10);
    }

    #[test]
    fn an_unknown_program_is_refused() {
        let refused = chosen(&tree::root().unwrap(), &["nothing".to_owned()]);
        assert!(refused.err().unwrap().to_string().contains("kyotocabinet"));
    }
}
