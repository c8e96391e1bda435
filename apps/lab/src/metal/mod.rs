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
//! | [`report`] | what the image has printed, as a table and as JSON |
//! | [`rescue`] | the machine's way to the image: QEMU, or firmware and GRUB |
//! | [`scratch`] | a temporary folder |
//! | [`share`] | the files of one folder, for an image that is not trusted |

mod channel;
mod image;
mod linux;
mod machine;
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
use clap::Args;

use channel::Served;
use image::Image;
use machine::{Machine, Outcome};
use report::Report;
use rescue::Boot;

/// The bare-metal image in QEMU: Antiphon as the kernel, where a message is an interrupt
#[derive(Args)]
#[command(after_help = "\
It builds the image from the tree that it is called in, checks it, and runs it. QEMU must be there:
apt-get install qemu-system-x86.

Programs of the image: hello; stress (locks, waits, messages: totals must be exact); paths (from an
interrupt, a message or a wake to what it causes); channel (files, lines and the time of day, by the
host: with --share); threads, messages (what is promised of them); fork-join, packets (the runtime's
pool); legion (processors asleep until a task is published); fault, overflow, panic (each ends in a
report).

With --exact the emulator counts instructions instead of time: all figures of a run are then the
same each time. Without it, several CPUs run at once, on KVM where there is one.

Example:
  antiphon-lab metal --cpus 4 --exact --program paths
  antiphon-lab metal --cpus 8 --nodes 2 --program stress --option rounds=200
  antiphon-lab metal --boot grub-efi --program stress
  antiphon-lab metal --share /tmp/shared --program channel
  antiphon-lab metal --image examples/metal-hello
  antiphon-lab metal --cpus 2 --exact --image examples/metal-runtimes --linux")]
pub struct Arguments {
    /// CPUs of the machine
    #[arg(long, value_name = "N", default_value_t = 4)]
    cpus: u32,
    /// Nodes, over which CPUs and memory are spread evenly
    #[arg(long, value_name = "N", default_value_t = 1)]
    nodes: u32,
    /// Memory of each node, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory: u32,
    /// Count instructions: the same figures in each run
    #[arg(long)]
    exact: bool,
    /// The program to run
    #[arg(long, value_name = "P", default_value = "hello")]
    program: String,
    /// A further word for the image's command line, such as preempt_us=100 or idle=watch
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// The loader of the image
    #[arg(long, value_enum, default_value_t = Boot::Pvh)]
    boot: Boot,
    /// A folder in which the image may read and write files; it also gets the host's clock then
    #[arg(long, value_name = "DIR")]
    share: Option<PathBuf>,
    /// The folder of another image's package: yours, perhaps
    #[arg(long, value_name = "FOLDER")]
    image: Option<PathBuf>,
    /// Build that package for Linux, too, run it, and print both side by side
    #[arg(long, requires = "image")]
    linux: bool,
    /// How long it may run, in seconds
    #[arg(long, value_name = "S", default_value_t = 120)]
    seconds: u64,
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
    machine::find()?;
    let image = Image::build(arguments.image.as_deref())?;
    image.check()?;
    let mut words = vec![format!("program={}", arguments.program)];
    words.extend(arguments.options.iter().cloned());
    let mut start = arguments.boot.start(image.path(), &words.join(" "))?;
    let served = arguments.share.as_deref().map(Served::begin).transpose()?;
    start.arguments.extend(served.iter().flat_map(Served::arguments));
    let mut ended = machine.run(&start)?;
    if let Some(served) = served {
        ended.lines.extend(served.end()?);
    }
    let mut report = Report::of(&machine, &arguments.program, &image, &ended);
    if let Some(folder) = arguments.image.as_deref().filter(|_| arguments.linux) {
        report.beside(linux::figures(folder, &machine, &arguments.options)?);
    }
    report.print(arguments.json)?;
    match ended.outcome {
        Outcome::Passed => Ok(ExitCode::SUCCESS),
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
                "--nodes takes a number from 1 to 64, and no more than there are CPUs",
            ));
        }
        if !(32..=65536).contains(&self.memory) {
            return Err(Failure::arguments("--memory takes MiB for each node, from 32 to 65536"));
        }
        if let Some(wrong) = self.options.iter().find(|word| {
            !word.contains('=') || word.contains(|letter: char| letter.is_whitespace())
        }) {
            return Err(Failure::arguments(format!(
                "--option takes one NAME=VALUE without blanks, and not {wrong:?}"
            )));
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
