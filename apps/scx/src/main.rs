//! The scheduler's program. `antiphon sched` starts it; so may a service manager.

use std::process::ExitCode;

use antiphon_scx::loader::{Failure, SPUN_NS, Scope, Setup};
use antiphon_scx::{groups, server};

const HELP: &str = "\
antiphon-scx [--full] [--group GROUP] [--spinners]: schedules threads by their release times, until
it is ended
  --full         all threads of the machine, not only those that ask for it (SCHED_EXT)
  --group GROUP  only users of this group, by its name or number, may use it
  --spinners     threads that spin for one without a CPU give it theirs; for programs that tell
                 the scheduler nothing";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("antiphon-scx: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let (mut setup, mut group) = (Setup::default(), None);
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            lexopt::Arg::Long("full") => setup.scope = Scope::Full,
            lexopt::Arg::Long("spinners") => setup.parameters.spun_ns = SPUN_NS,
            lexopt::Arg::Long("group") => {
                let name = arguments.value()?.into_string().map_err(|_| "no name of a group")?;
                group = Some(groups::number(&name)?);
            }
            lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    server::run(&setup, group)
}
