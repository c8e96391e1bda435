//! Finds a simulated machine by its name, or by the path of its file.

pub mod host;

use std::borrow::Cow;
use std::path::Path;

use antiphon_sim::{Description, PRESETS};

use crate::failure::Failure;
use crate::{doubt, input};

/// A machine and the text of its file.
pub struct Found {
    /// The text.
    pub text: Cow<'static, str>,
    /// The parsed description of the machine.
    pub described: Description,
}

/// The machine of a preset's name, `host`, or a file.
///
/// # Errors
///
/// If the name is unknown; if the file can't be read, or is invalid.
pub fn named(name: &str) -> Result<Found, Failure> {
    if let Some(preset) = PRESETS.iter().find(|preset| preset.name == name) {
        return parsed(preset.name, preset.text.into());
    }
    if name == host::NAME {
        let (path, text) = host::found()?;
        return parsed(&path, text.into());
    }
    let path = Path::new(name);
    if !path.exists() && !name.contains('/') && path.extension().is_none() {
        let known: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        let known = known.join(", ");
        let what = format!("no machine {name:?}: there are {known}, host, and files by path");
        return Err(Failure::arguments(what));
    }
    file(path)
}

/// The machine of a file. Prints warnings about doubtful values on stderr.
///
/// # Errors
///
/// As [`named`].
pub fn file(path: &Path) -> Result<Found, Failure> {
    let name = path.display().to_string();
    let text = input::text(path, Description::MAX_BYTES);
    let text = text.map_err(|error| Failure::arguments(format!("{name}: {error}")))?;
    let found = parsed(&name, text.into())?;
    for doubtful in &found.described.doubts {
        doubt(&doubtful.of(path));
    }
    Ok(found)
}

fn parsed(path: &str, text: Cow<'static, str>) -> Result<Found, Failure> {
    match Description::parse(&text) {
        Ok(described) => Ok(Found { text, described }),
        Err(wrong) => Err(Failure::arguments(wrong.of(Path::new(path)))),
    }
}
