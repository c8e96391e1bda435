//! Debian's archive, by an apt configuration of its own: nothing of the machine's is changed, and
//! nothing is installed.
//!
//! Where the archive is, is taken from the machine's own sources: from the entry of its release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// The releases that have kernels with sched_ext.
const SUITES: [&str; 2] = ["trixie-backports", "sid"];

/// An archive that can be asked.
pub struct Archive {
    folder: PathBuf,
}

/// An entry of apt's sources.
#[derive(Debug, Default, PartialEq, Eq)]
struct Source {
    address: String,
    suites: Vec<String>,
    signed_by: Option<String>,
}

impl Archive {
    /// Makes a configuration in a folder, and reads the lists of packages.
    ///
    /// # Errors
    ///
    /// If the machine's sources have no entry for its release, or the lists can't be fetched.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        let archive = Self { folder: folder.to_owned() };
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let source = source_of_release()?;
        let key = source.signed_by.map(|key| format!("[signed-by={key}] ")).unwrap_or_default();
        let line = |suite| format!("deb {key}{} {suite} main\n", source.address);
        fs::write(folder.join("sources.list"), SUITES.map(line).concat())?;
        let at = folder.display();
        let configuration = format!(
            "Dir::Etc::SourceList \"{at}/sources.list\";\nDir::Etc::SourceParts \"-\";\n\
             Dir::State::Lists \"{at}/lists\";\nDir::Cache \"{at}/cache\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
             APT::Sandbox::User \"\";\n"
        );
        fs::write(folder.join("apt.conf"), configuration)?;
        archive.ask("apt-get", &["update", "-qq"])?;
        Ok(archive)
    }

    /// Returns the names of packages that match a regular expression, the newest first, but before
    /// all the pinned one.
    pub fn names(&self, pattern: &str, pinned: &str) -> Result<Vec<String>, Failure> {
        let lines = self.ask("apt-cache", &["search", "--names-only", pattern])?;
        let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
        let mut names: Vec<_> = lines.lines().filter_map(first).collect();
        names.sort_by_key(|name| std::cmp::Reverse((name == pinned, version(name))));
        Ok(names)
    }

    /// Fetches a package, and unpacks it into a folder.
    pub fn unpack(&self, package: &str, into: &Path) -> Result<(), Failure> {
        self.ask("apt-get", &["download", "-qq", package])?;
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("{package}_")) && name.ends_with(".deb")
        };
        let files = fs::read_dir(&self.folder)?.map(|entry| entry.map(|entry| entry.path()));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let file = files.iter().find(|path| is_it(path)).ok_or("apt-get fetched no package")?;
        let done = Command::new("dpkg-deb").arg("-x").arg(file).arg(into).status()?;
        fs::remove_file(file)?;
        if done.success() { Ok(()) } else { Err(format!("{package} can't be unpacked").into()) }
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new(program);
        command.args(arguments).env("APT_CONFIG", self.folder.join("apt.conf"));
        let output = command.current_dir(&self.folder).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("{program} {} failed", arguments.join(" ")).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The machine's entry for its own release.
fn source_of_release() -> Result<Source, Failure> {
    let about = fs::read_to_string("/etc/os-release")?;
    let release = about.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let release = release.ok_or("/etc/os-release names no release")?.trim_matches('"');
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let mut sources = Vec::new();
    for file in files.iter().filter(|file| file.is_file()) {
        sources.extend(parse(&fs::read_to_string(file)?));
    }
    let mut of_release = sources.into_iter().filter(|one| one.suites.iter().any(|s| s == release));
    of_release.next().ok_or_else(|| {
        format!(
            "apt has no source of {release}, from which the address of Debian's archive could be \
             taken; use --kernel FILE"
        )
        .into()
    })
}

/// Reads a file of either form: paragraphs of fields, or lines.
fn parse(text: &str) -> Vec<Source> {
    let lines = text.lines().filter_map(parse_line);
    let paragraphs = text.split("\n\n").filter_map(parse_paragraph);
    lines.chain(paragraphs).collect()
}

fn parse_line(line: &str) -> Option<Source> {
    let rest = line.trim().strip_prefix("deb ")?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(inside) => inside.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    let (address, suite) = (words.next()?, words.next()?);
    let key = options.split_whitespace().find_map(|option| option.strip_prefix("signed-by="));
    Some(Source { address, suites: vec![suite], signed_by: key.map(str::to_owned) })
}

fn parse_paragraph(text: &str) -> Option<Source> {
    let field = |name: &str| {
        let value = |line: &str| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        text.lines().find_map(value)
    };
    if !field("Types")?.split_whitespace().any(|kind| kind == "deb") {
        return None;
    }
    let address = field("URIs")?.split_whitespace().next()?.to_owned();
    let suites = field("Suites")?.split_whitespace().map(str::to_owned).collect();
    // A key that is written out, and not named, does not fit into a line.
    let signed_by = field("Signed-By").filter(|key| key.starts_with('/'));
    Some(Source { address, suites, signed_by })
}

/// The numbers in a name, to compare by.
fn version(name: &str) -> Vec<u64> {
    let numbers = name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    numbers.take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert_eq!(version("linux-binary-7.0.13+deb13-cloud-amd64"), [7, 0, 13]);
        assert!(version("linux-binary-7.2.11+deb13") > version("linux-binary-7.2.9+deb13"));
        assert!(version("linux-source-7.10") > version("linux-source-7.2"));
    }

    #[test]
    fn both_forms_of_sources_are_read() {
        let expected = |suites: &[&str], key: Option<&str>| Source {
            address: "http://archive.example/debian".to_owned(),
            suites: suites.iter().map(|suite| (*suite).to_owned()).collect(),
            signed_by: key.map(str::to_owned),
        };
        let lines = "# none\ndeb-src http://archive.example/debian mine main\n\
                     deb [arch=amd64 signed-by=/key.gpg] http://archive.example/debian mine main\n";
        assert_eq!(parse(lines), [expected(&["mine"], Some("/key.gpg"))]);
        let paragraphs = "Types: deb\nURIs: http://archive.example/debian\n\
                          Suites: mine mine-updates\nSigned-By: /key.gpg\n\n\
                          Types: deb-src\nURIs: http://archive.example/debian\nSuites: mine\n";
        assert_eq!(parse(paragraphs), [expected(&["mine", "mine-updates"], Some("/key.gpg"))]);
    }
}
