//! What an image has printed, as a table and as JSON: lines `name=value` are figures, `at=address`
//! is a line of a backtrace, and everything else is text.

use antiphon_report::failure::Failure;
use antiphon_report::report::framed;
use antiphon_report::say;
use antiphon_report::table::{Cell, Table, colour_stdout, count, printable};
use serde_json::{Map, Value, json};

use super::host::Host;
use super::image::Image;
use super::machine::{Ended, Machine};
use super::mechanisms;
use super::names::Names;

/// A report.
pub struct Report {
    head: Value,
    unit: &'static str,
    /// The figures, in the order in which they were printed.
    figures: Vec<(String, u64)>,
    /// The figures that the program has printed on Linux, if it ran there.
    linux: Option<Vec<(String, u64)>>,
    text: Vec<String>,
    backtrace: Vec<Frame>,
    /// The figures of the host's own mechanisms.
    host: Option<Host>,
}

/// An address of a backtrace and the functions there, the innermost first.
struct Frame {
    address: String,
    functions: Vec<(String, String)>,
}

/// The figure that others are compared with.
const BASE: &str = "raw_ipi";
/// The beginning of the first line of an image, which tells by which entry it was started.
const LOADER: &str = "loader=";

impl Report {
    /// Makes the report of a run.
    pub fn of(machine: &Machine, program: &str, image: &Image, ended: &Ended) -> Self {
        let head = json!({
            "program": program,
            "cpus": machine.cpus,
            "nodes": machine.nodes,
            "exact": machine.exact,
            "loader": Value::Null,
            "outcome": ended.outcome.name(),
            "image_bytes": image.size(),
            "seconds": ended.took.as_secs_f64(),
        });
        let unit = if machine.exact { "instructions" } else { "ticks" };
        let mut report = Self {
            head,
            unit,
            figures: Vec::new(),
            linux: None,
            host: None,
            text: Vec::new(),
            backtrace: Vec::new(),
        };
        let mut names = None;
        // The firmware has printed the text before that line.
        let of_image = |line: &String| line.starts_with(LOADER);
        let first = ended.lines.iter().position(of_image).unwrap_or(0);
        for line in &ended.lines[first..] {
            if let Some((name, value)) = line.split_once('=')
                && let Ok(value) = value.parse()
            {
                report.figures.push((name.to_owned(), value));
            } else if let Some(loader) = line.strip_prefix(LOADER) {
                report.head["loader"] = json!(loader);
            } else if let Some(address) = line.strip_prefix("at=") {
                let number = u64::from_str_radix(address.trim_start_matches("0x"), 16);
                let names = names.get_or_insert_with(|| Names::read(image.path()));
                let functions = match (names, number) {
                    (Some(names), Ok(number)) => names.at(number),
                    _ => Vec::new(),
                };
                report.backtrace.push(Frame { address: address.to_owned(), functions });
            } else if !line.is_empty() && !line.starts_with("status=") {
                report.text.push(line.clone());
            }
        }
        report
    }

    /// Adds the figures of the same program on Linux.
    pub fn beside(&mut self, linux: Vec<(String, u64)>) {
        self.linux = Some(linux);
    }

    /// Adds the figures of the host's own mechanisms.
    pub fn put_host_beside(&mut self, host: Host) {
        self.host = Some(host);
    }

    /// Prints the report.
    ///
    /// # Errors
    ///
    /// Standard output can't be written.
    pub fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json {
            return say(&format!("{:#}\n", framed(self.json())));
        }
        let mut out = String::new();
        for line in &self.text {
            out.push_str(&printable(line));
            out.push('\n');
        }
        for (index, frame) in self.backtrace.iter().enumerate() {
            out.push_str(&frame.line(index));
        }
        if !self.figures.is_empty() {
            out.push_str(&self.table().render(colour_stdout()));
        }
        if let Some(host) = &self.host {
            out.push_str(&beside(host));
        }
        say(&out)
    }

    fn json(&self) -> Value {
        let map = |figures: &[(String, u64)]| -> Map<_, _> {
            figures.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
        };
        let frame = |frame: &Frame| {
            let function = |(name, place): &(String, String)| json!({"name": name, "place": place});
            let functions: Vec<_> = frame.functions.iter().map(function).collect();
            json!({"address": frame.address, "functions": functions})
        };
        let backtrace: Vec<_> = self.backtrace.iter().map(frame).collect();
        let mut body = self.head.clone();
        body["unit"] = json!(self.unit);
        body["figures"] = Value::Object(map(&self.figures));
        if let Some(linux) = &self.linux {
            body["linux"] = Value::Object(map(linux));
        }
        body["text"] = json!(self.text);
        body["backtrace"] = json!(backtrace);
        if let Some(host) = &self.host {
            body["host"] = host.json();
        }
        body
    }

    /// Returns a table of measured figures with their statistics, or all figures as they are.
    fn table(&self) -> Table {
        if let Some(linux) = &self.linux {
            return self.table_beside(linux);
        }
        if let Some(table) = mechanisms::table(&self.figures, self.unit) {
            return table;
        }
        let Some(base) = self.figure(BASE) else {
            let mut table = Table::new(&["figure", ">value"]);
            for (name, value) in &self.figures {
                table.row(vec![Cell::text(name), Cell::number(value.to_string())]);
            }
            return table;
        };
        let unit = format!(">{}", self.unit);
        let part = |name: &str, part| Cell::known(self.figure(&format!("{name}.{part}")), count);
        type Figure = (String, u64);
        let paths = self.figures.iter().filter(|(name, _)| !name.contains('.'));
        Table::of(
            paths,
            &[
                ("path", &|(name, _): &Figure| Cell::text(name)),
                (&unit, &|(_, value)| Cell::number(count(*value))),
                (">least", &|(name, _)| part(name, "min")),
                (">p99", &|(name, _)| part(name, "p99")),
                (">most", &|(name, _)| part(name, "max")),
                (">sigma", &|(name, _)| part(name, "sigma")),
                (">above raw_ipi", &|(_, value)| Cell::known(value.checked_sub(base), count)),
            ],
        )
    }

    /// Returns a table of all figures of both runs as they are, in the order of the image.
    fn table_beside(&self, linux: &[(String, u64)]) -> Table {
        let mut table = Table::new(&["figure", ">image", ">Linux"]);
        let further = linux.iter().filter(|(name, _)| self.figure(name).is_none());
        for (name, _) in self.figures.iter().chain(further) {
            let number = |value: Option<u64>| Cell::known(value, |value| value.to_string());
            let beside = linux.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
            table.row(vec![Cell::text(name), number(self.figure(name)), number(beside)]);
        }
        table
    }

    /// Returns the figure with this name.
    pub fn figure(&self, name: &str) -> Option<u64> {
        mechanisms::figure(&self.figures, name)
    }
}

/// The figures of the host's own system, as text.
fn beside(host: &Host) -> String {
    let Host { cpus, waiters, .. } = host;
    let mut out = format!(
        "\nLinux on this machine, {cpus} CPUs, {waiters} threads told at once; another unit than \
         above: only ratios within a table compare\n"
    );
    if let Some(table) = mechanisms::table(&host.figures, "nanoseconds") {
        out.push_str(&table.render(colour_stdout()));
    }
    for missing in &host.missing {
        out.push_str(&format!("{}\n", printable(missing)));
    }
    out
}

impl Frame {
    fn line(&self, index: usize) -> String {
        if self.functions.is_empty() {
            return format!("{index:4}: {}\n", self.address);
        }
        let lines = self.functions.iter().enumerate().map(|(inner, (name, place))| {
            let number =
                if inner == 0 { format!("{index:4}: {}", self.address) } else { " ".repeat(6) };
            format!("{number:16} {} {}\n", printable(name), printable(place))
        });
        lines.collect()
    }
}
