//! `metal`: the bare-metal image, built and run in QEMU.
//!
//! | module | has |
//! |---|---|
//! | [`channel`] | the host's side of the channel by which an image asks for files |
//! | [`image`] | building an image, with the flags that it needs |
//! | [`machine`] | the emulator: its arguments, its time limit, its exit status |
//! | [`linux`] | the same program on Linux, beside the image |
//! | [`red_zone`] | what no function of an image may do |
//! | [`names`] | the functions at the addresses of a backtrace |
//! | [`mechanisms`] | the table of the ways to tell other CPUs |
//! | [`host`] | the times of the same notifications under Linux |
//! | [`report`] | what the image has printed, as a table and as JSON |
//! | [`rescue`] | the machine's way to the image: QEMU, or firmware and GRUB |
//! | [`scratch`] | a temporary folder |
//! | [`share`] | the files of one folder, for an image that is not trusted |

mod channel;
mod host;
mod image;
mod linux;
mod machine;
mod mechanisms;
mod names;
mod red_zone;
mod report;
mod rescue;
mod scratch;
mod share;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use clap::Args;

use crate::sim::events::{figures, paths};

use channel::Served;
use host::Host;
use image::Image;
use machine::{Machine, Outcome};
use report::Report;
use rescue::Boot;

/// The longest time limit: a day.
const MOST_SECONDS: u64 = 24 * 3600;
/// Length of the longest command line that an image takes, in bytes.
const LONGEST_LINE: usize = 2000;
/// Number of measurements of each of Linux's mechanisms.
const TRIALS: usize = 100;

/// Run the bare-metal image, in which Antiphon is the kernel and a message is an interrupt, in QEMU
#[derive(Args)]
#[command(after_help = "\
Run it in a clone of the repository: it builds the image, checks it, and boots it. It needs QEMU:
apt-get install qemu-system-x86.

Programs of the image: hello; stress (tests locks, waits and messages; totals must be exact); paths
(measures from an interrupt, a message or a wake to its effect); table (measures each way to tell
other CPUs); channel (uses files, lines and the time of day of the host; needs --share); threads,
messages (test the kernel's promises about them); fork-join, packets (run the pool of the runtime);
legion (processors sleep until a task is published); exhaust (creates threads until memory is used
up); fault, overflow, overflow-idle, panic (each ends in a report).

With --exact the emulator counts instructions instead of time, so that each run has the same
figures. Without it, the CPUs run at the same time, as threads of this machine.

Example:
  antiphon-lab metal --cpus 4 --exact --program paths
  antiphon-lab metal --cpus 4 --exact --program table --linux
  antiphon-lab metal --cpus 2 --exact --program paths --html figures.html
  antiphon-lab metal --cpus 8 --nodes 2 --program stress --option rounds=200
  antiphon-lab metal --boot grub-efi --program stress
  antiphon-lab metal --share /tmp/shared --program channel
  antiphon-lab metal --image examples/metal-hello
  antiphon-lab metal --cpus 2 --exact --image examples/metal-runtimes --linux")]
pub struct Arguments {
    /// Number of CPUs of the machine
    #[arg(long, value_name = "N", default_value_t = 4)]
    cpus: u32,
    /// Number of nodes, over which CPUs and memory are spread evenly
    #[arg(long, value_name = "N", default_value_t = 1)]
    nodes: u32,
    /// Memory of each node, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory: u32,
    /// Count instructions instead of time: each run has the same figures
    #[arg(long)]
    exact: bool,
    /// Program of the image to run
    #[arg(long, value_name = "P", default_value = "hello")]
    program: String,
    /// Option for the image's command line, such as preempt_us=100 or idle=watch (repeatable)
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// Loader that starts the image
    #[arg(long, value_enum, default_value_t = Boot::Pvh)]
    boot: Boot,
    /// Folder in which the image may read and write files; the image then has the host's clock, too
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// Folder of the package of another image, such as your own
    #[arg(long, value_name = "FOLDER")]
    image: Option<PathBuf>,
    /// With --image, also build and run that package on Linux, and print both results side by side;
    /// with --program table, print the times of Linux's mechanisms on this machine beside the table
    #[arg(long)]
    linux: bool,
    /// Time after which the run is ended, in seconds
    #[arg(long, value_name = "S", default_value_t = 120)]
    seconds: u64,
    /// Draw the figures of the Nemo paper for the simulated machines of that paper, by the paths of
    /// this run, as a page for a browser; with --cpus 2 --exact --program paths
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// Builds, runs and prints.
///
/// # Errors
///
/// Bad arguments; if QEMU or GRUB is missing; if the image can't be built, or uses the red zone; if
/// its program has not passed, or has not ended in time.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let machine = arguments.machine()?;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    machine::find()?;
    let image = Image::build(arguments.image.as_deref())?;
    image.check()?;
    let mut words = vec![format!("program={}", arguments.program)];
    words.extend(arguments.options.iter().cloned());
    let words = words.join(" ");
    if words.len() > LONGEST_LINE {
        return Err(Failure::arguments(format!(
            "--program and --option are {} bytes together; an image takes {LONGEST_LINE}",
            words.len()
        )));
    }
    let mut start = arguments.boot.start(image.path(), &words)?;
    let served = arguments.share.as_deref().map(Served::begin).transpose()?;
    start.arguments.extend(served.iter().flat_map(Served::arguments));
    let mut ended = machine.run(&start)?;
    if let Some(served) = served {
        ended.lines.extend(served.end()?);
    }
    let mut report = Report::of(&machine, &arguments.program, &image, &ended);
    match arguments.image.as_deref() {
        Some(folder) if arguments.linux => {
            report.beside(linux::figures(folder, &machine, &arguments.options)?);
        }
        None if arguments.linux => report.put_host_beside(Host::measure(machine.cpus, TRIALS)),
        _ => {}
    }
    report.print(arguments.json)?;
    match ended.outcome {
        Outcome::Passed => {
            if let Some(html) = html {
                paths::take(|name| report.figure(name));
                figures::draw(html)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Misused => Err(Failure::arguments(format!(
            "the image does not take these options: {}",
            ended.lines.last().map_or("", String::as_str)
        ))),
        outcome => Err(Failure::measured(format!("{}: {outcome}", arguments.program))),
    }
}

impl Arguments {
    fn machine(&self) -> Result<Machine, Failure> {
        // The most that the emulator has with APICs whose registers are in memory.
        if !(1..=255).contains(&self.cpus) {
            return Err(Failure::arguments("--cpus takes a number from 1 to 255"));
        }
        if !(1..=64).contains(&self.nodes) || self.nodes > self.cpus {
            return Err(Failure::arguments(
                "--nodes takes a number from 1 to 64, and at most that of --cpus",
            ));
        }
        if !(32..=65536).contains(&self.memory) {
            return Err(Failure::arguments("--memory takes MiB for each node, from 32 to 65536"));
        }
        let has_blanks = |word: &str| word.contains(char::is_whitespace);
        if let Some(wrong) = self
            .options
            .iter()
            .find(|word| !word.contains('=') || has_blanks(word) || word.starts_with("program="))
        {
            return Err(Failure::arguments(format!(
                "--option takes one NAME=VALUE without blanks, and not {wrong:?}; the program is \
                 named by --program"
            )));
        }
        if let Some(folder) = self.image.as_ref().filter(|it| !it.join("Cargo.toml").is_file()) {
            return Err(Failure::arguments(format!(
                "--image takes the folder of a package; there is no Cargo.toml in {}",
                folder.display()
            )));
        }
        if has_blanks(&self.program) {
            return Err(Failure::arguments("--program takes a name without blanks"));
        }
        let counts_paths = self.cpus == 2 && self.exact && self.program == "paths";
        if self.html.is_some() && (!counts_paths || self.image.is_some()) {
            return Err(Failure::arguments(
                "--html draws figures from the lengths of paths: it takes --cpus 2 --exact \
                 --program paths, of this image",
            ));
        }
        if !(1..=MOST_SECONDS).contains(&self.seconds) {
            return Err(Failure::arguments(format!(
                "--seconds takes a number from 1 to {MOST_SECONDS}"
            )));
        }
        if self.linux && self.image.is_none() && self.program != "table" {
            return Err(Failure::arguments(
                "--linux takes a package (--image), or the program table, to compare with",
            ));
        }
        Ok(Machine {
            cpus: self.cpus,
            nodes: self.nodes,
            memory_mib: self.memory,
            exact: self.exact,
            limit: Duration::from_secs(self.seconds.max(1)),
        })
    }
}
