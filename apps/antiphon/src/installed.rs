//! Programs that belong to this one: they are searched beside it, where all are built and
//! installed, and then in `PATH`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Returns the path of a program, if it is installed.
pub fn find(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
