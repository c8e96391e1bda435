//! Busy neighbours: processes that want a CPU each while we measure.

use std::process::{Child, Command, ExitCode, Stdio};

use antiphon_linux::end_with_parent;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// What else the machine has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Nothing that we know of
    Idle,
    /// Two processes that never sleep
    Noisy,
}

impl Load {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Noisy => "noisy",
        }
    }
}

/// The hidden verb of such a process.
pub const VERB: &str = "__neighbour";
const NEIGHBOURS: usize = 2;

/// The neighbours of a cell; they end with the value, or with this process.
pub struct Neighbours(Vec<Child>);

impl Neighbours {
    /// Starts those that `load` wants.
    ///
    /// # Errors
    ///
    /// If the command can't be started again.
    pub fn of(load: Load) -> std::io::Result<Self> {
        let mut started = Self(Vec::new());
        if load == Load::Noisy {
            for _ in 0..NEIGHBOURS {
                let mut command = Command::new("/proc/self/exe");
                let parent = std::process::id().to_string();
                command.args([VERB, &parent]).stdin(Stdio::null()).stdout(Stdio::null());
                started.0.push(command.spawn()?);
            }
        }
        Ok(started)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Fails only if it has ended already, which is what we want.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The neighbour: never sleeps, and ends with its parent.
pub fn burn(parent: u32) -> Result<ExitCode, Failure> {
    end_with_parent();
    let mut turns = 0_u64;
    loop {
        // SAFETY: takes nothing and can't fail. The parent may have ended before the request.
        if turns.is_multiple_of(1 << 28) && unsafe { libc::getppid() } as u32 != parent {
            return Ok(ExitCode::SUCCESS);
        }
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
