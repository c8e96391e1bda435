//! The clips that are played: files as they are, files re-encoded in layers, and generated clips.
//! Clips that take long to make are kept.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use antiphon_player::clip::Clip;
use antiphon_player::ffmpeg::{self, Making};
use antiphon_player::{Error, counter};
use antiphon_report::doubt;
use antiphon_report::failure::Failure;
use antiphon_report::folders;

use super::unfinished::Unfinished;

/// A clip to play.
pub struct Ready {
    /// Name in reports.
    pub name: String,
    /// Path of the stream.
    pub path: PathBuf,
    /// The file that the stream was extracted from, which may have sound.
    pub source: Option<PathBuf>,
    /// The contents of the stream.
    pub clip: Clip,
    /// Whether each frame shows its number.
    pub has_counter: bool,
}

/// Must be raised when a clip of the same name is made differently.
const VERSION: u32 = 1;

/// Maximal number of different generated clips; otherwise there are as many as players.
const MOST: usize = 4;

/// Returns the clips in these files, in order.
///
/// # Errors
///
/// If a file is missing or not a video, or `ffmpeg` is missing.
pub fn of_files(files: &[PathBuf]) -> Result<Vec<Ready>, Failure> {
    files.iter().map(|file| of_file(file)).collect()
}

fn of_file(file: &Path) -> Result<Ready, Failure> {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let about = fs::metadata(file).map_err(|error| said(file, &Error::file(file)(error)))?;
    if !about.is_file() {
        return Err(Failure::arguments(format!("{}: no file", file.display())));
    }
    let is_plain = file.extension().is_some_and(|end| end == "h264" || end == "264");
    let path = if is_plain {
        file.to_owned()
    } else {
        let mut hasher = DefaultHasher::new();
        (file.canonicalize().ok(), about.size(), about.mtime(), about.mtime_nsec())
            .hash(&mut hasher);
        let kept = format!("layered-{VERSION}-{:016x}.h264", hasher.finish());
        let what = format!("recoding {} in temporal layers", file.display());
        kept_or_made(&kept, &what, |to| ffmpeg::layer(file, to))
            .map_err(|error| said(file, &error))?
    };
    let clip = Clip::open(&path).map_err(|error| said(file, &error))?;
    let source = (!is_plain).then(|| file.to_owned());
    Ok(Ready { name, path, source, clip, has_counter: false })
}

/// Returns generated clips for `players` players.
///
/// # Errors
///
/// If `ffmpeg` is missing, or fails.
pub fn generated(making: Making, players: usize) -> Result<Vec<Ready>, Failure> {
    let number = match making.kind {
        ffmpeg::Kind::Bursty => players.clamp(1, MOST),
        // All uniform clips are alike.
        ffmpeg::Kind::Uniform => 1,
    };
    (0..number as u32).map(|seed| made(Making { seed, ..making })).collect()
}

fn made(making: Making) -> Result<Ready, Failure> {
    let Making { kind, size: (width, height), rate, seconds, seed } = making;
    let kind = match kind {
        ffmpeg::Kind::Bursty => "bursty",
        ffmpeg::Kind::Uniform => "uniform",
    };
    let kept = format!("{kind}-{VERSION}-{width}x{height}-{rate}-{seconds}-{seed}.h264");
    let name = format!("{kind}-{seed}");
    let what = format!("making the clip {name} ({width}x{height}, {rate} Hz, {seconds} s)");
    let fails = |error: Error| match error {
        Error::NoFfmpeg | Error::NoEncoder => Failure::missing(error),
        Error::Parameter(_) => Failure::arguments(format!("--size, --hz: {error}")),
        _ => Failure::measured(format!("{what}: {error}")),
    };
    let path = kept_or_made(&kept, &what, |to| ffmpeg::make(&making, to)).map_err(fails)?;
    let clip = Clip::open(&path).map_err(fails)?;
    Ok(Ready { name, path, source: None, clip, has_counter: true })
}

/// Returns the kept file of this name; `make` makes it if it does not exist.
fn kept_or_made(
    name: &str,
    what: &str,
    make: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let all = folders::all().into_iter().map(|folder| folder.join("clips"));
    let folder = all.into_iter().find(|folder| folders::make_own(folder).is_ok());
    let folder = folder.ok_or(Error::Parameter("no place to keep clips; set XDG_CACHE_HOME"))?;
    let path = folder.join(name);
    // A file gets its name only when it is complete.
    if path.exists() {
        return Ok(path);
    }
    if !ffmpeg::is_installed() {
        return Err(Error::NoFfmpeg);
    }
    doubt(&format!("{what}; it is kept in {}", folder.display()));
    let unfinished = Unfinished::begin(&folder, name).map_err(Error::file(&path))?;
    make(unfinished.path())?;
    unfinished.finish(&path).map_err(Error::file(&path))?;
    Ok(path)
}

/// Returns the failure that says why a file can't be played.
fn said(file: &Path, error: &Error) -> Failure {
    match error {
        Error::NoFfmpeg | Error::NoEncoder => {
            Failure::missing(format!("{}: {error}", file.display()))
        }
        Error::File(_, error) => Failure::arguments(format!("{}: {error}", file.display())),
        Error::Ffmpeg(said) => {
            Failure::arguments(format!("{}: ffmpeg can't recode it: {said}", file.display()))
        }
        _ => Failure::arguments(format!("{}: {error}", file.display())),
    }
}

/// Parses width and height in pixels, such as `640x360`.
///
/// # Errors
///
/// One line that says what is wrong, and what would be right.
pub fn size(text: &str) -> Result<(u32, u32), String> {
    let (width, height) = counter::ROOM;
    let number = |text: &str| text.parse::<u32>().ok().filter(|size| size.is_multiple_of(2));
    let size = text.split_once('x').and_then(|(w, h)| Some((number(w)?, number(h)?)));
    let fits = |&(w, h): &(u32, u32)| {
        (width..=MOST_PIXELS).contains(&(w as usize))
            && (height..=MOST_PIXELS).contains(&(h as usize))
    };
    size.filter(fits).ok_or_else(|| {
        format!(
            "'{text}' is not a size of even numbers from {width}x{height} to \
             {MOST_PIXELS}x{MOST_PIXELS}; write 640x360"
        )
    })
}

const MOST_PIXELS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_room_for_the_counter() {
        assert_eq!(size("640x360"), Ok((640, 360)));
        for wrong in ["640", "641x360", "100x360", "640x32", "x", "9000x9000", "-640x360"] {
            assert!(size(wrong).is_err_and(|why| why.contains("640x360")), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_a_bad_argument() {
        for wrong in ["/nowhere/at/all.mp4", "/nowhere/at/all.h264", "/"] {
            let refused = of_file(Path::new(wrong)).err().map(Failure::into_message);
            assert!(refused.is_some_and(|why| why.starts_with(wrong)), "{wrong}");
        }
    }
}
