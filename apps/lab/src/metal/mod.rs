//! `metal`: the bare-metal image, built and run in QEMU.
//!
//! | module | has |
//! |---|---|
//! | [`image`] | building an image, with the flags that it needs |
//! | [`machine`] | the emulator: its arguments, its time limit, its exit status |
//! | [`red_zone`] | what no function of an image may do |
//! | [`names`] | the functions at the addresses of a backtrace |
//! | [`report`] | what the image has printed, as a table and as JSON |

mod image;
mod machine;
mod names;
mod red_zone;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use antiphon_report::failure::Failure;
use clap::Args;

use image::Image;
use machine::{Machine, Outcome};
use report::Report;

/// Run the bare-metal image, in which Antiphon is the kernel and a message is an interrupt, in QEMU
#[derive(Args)]
#[command(after_help = "\
Run it in a clone of the repository: it builds the image, checks it, and boots it. It needs QEMU:
apt-get install qemu-system-x86.

Programs of the image: hello; stress (tests locks, waits and messages; totals must be exact); paths
(measures from an interrupt, a message or a wake to its effect); fault, overflow, panic (each ends
in a report).

With --exact the emulator counts instructions instead of time, so that each run has the same
figures. Without it, several CPUs run at once, on KVM if the machine has it.

Example:
  antiphon-lab metal --cpus 4 --exact --program paths
  antiphon-lab metal --cpus 8 --nodes 2 --program stress --option rounds=200
  antiphon-lab metal --image examples/metal-hello")]
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
    /// Folder of the package of another image, such as your own
    #[arg(long, value_name = "FOLDER")]
    image: Option<PathBuf>,
    /// Time after which the run is ended, in seconds
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
/// Bad arguments; if QEMU is missing; if the image can't be built, or uses the red zone; if its
/// program has not passed, or has not ended in time.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let machine = arguments.machine()?;
    let emulator = machine::find()?;
    let image = Image::build(arguments.image.as_deref())?;
    image.check()?;
    let mut words = vec![format!("program={}", arguments.program)];
    words.extend(arguments.options.iter().cloned());
    let ended = machine.run(&emulator, image.path(), &words.join(" "))?;
    let report = Report::of(&machine, &arguments.program, &image, &ended);
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
                "--nodes takes a number from 1 to 64, and at most that of --cpus",
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
