//! The ways to start the image: by QEMU itself, or as on a computer, by firmware and GRUB.
//!
//! For GRUB the image is put on a disc that boots by a BIOS as well as by EFI. The
//! disc is a temporary file; `grub-mkrescue` makes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use antiphon_report::failure::Failure;
use clap::ValueEnum;

use super::machine::on_path;
use super::scratch::Scratch;

/// The loader of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Boot {
    /// QEMU, by the PVH entry
    Pvh,
    /// GRUB, by SeaBIOS and the multiboot2 entry
    Grub,
    /// GRUB, by OVMF (EFI) and the multiboot2 entry
    GrubEfi,
}

/// The arguments that make the emulator boot an image, and the disc, which must last as long.
pub struct Start {
    pub arguments: Vec<String>,
    _disc: Option<Disc>,
}

/// A disc, which is removed when this is dropped.
struct Disc(Scratch);

/// The programs and folders of GRUB's modules that are needed to make a disc, and their packages.
const MAKERS: [(&str, &str); 3] =
    [("grub-mkrescue", "grub-common"), ("xorriso", "xorriso"), ("mformat", "mtools")];
const MODULES: [(&str, &str); 2] =
    [("i386-pc", "grub-pc-bin"), ("x86_64-efi", "grub-efi-amd64-bin")];
/// The paths at which systems keep OVMF as one file.
const FIRMWARE: [&str; 3] =
    ["/usr/share/ovmf/OVMF.fd", "/usr/share/qemu/OVMF.fd", "/usr/share/edk2/ovmf/OVMF.fd"];

impl Boot {
    /// Returns the way in which the emulator starts `image` with a command line.
    ///
    /// # Errors
    ///
    /// A package is missing, GRUB would not pass on a word unchanged, or the disc can't be made.
    pub fn start(self, image: &Path, words: &str) -> Result<Start, Failure> {
        let text = |path: &Path| path.display().to_string();
        if self == Self::Pvh {
            let arguments = ["-kernel".to_owned(), text(image), "-append".to_owned(), words.into()];
            return Ok(Start { arguments: arguments.into(), _disc: None });
        }
        let mut arguments = Vec::new();
        if self == Self::GrubEfi {
            let firmware = FIRMWARE.iter().map(Path::new).find(|path| path.is_file());
            let firmware = firmware.ok_or_else(|| missing(&["ovmf"]))?;
            arguments.extend(["-bios".to_owned(), text(firmware)]);
        }
        let disc = Disc::make(image, words)?;
        arguments.extend(["-cdrom".to_owned(), text(&disc.file())]);
        Ok(Start { arguments, _disc: Some(disc) })
    }
}

impl Disc {
    fn make(image: &Path, words: &str) -> Result<Self, Failure> {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || " =._-+,:/@".contains(letter);
        if !words.chars().all(is_plain) {
            return Err(Failure::arguments(format!(
                "with GRUB, the command line has letters, digits and =._-+,:/@ only, and not \
                 {words:?}"
            )));
        }
        let lacking = lacking();
        if !lacking.is_empty() {
            return Err(missing(&lacking));
        }
        let failed = |error| Failure::measured(format!("the disc: {error}"));
        let disc = Self(Scratch::new().map_err(failed)?);
        let grub = disc.0.path("root/boot/grub");
        fs::create_dir_all(&grub).map_err(failed)?;
        fs::copy(image, disc.0.path("root/image")).map_err(failed)?;
        // Commands without a menu run at once.
        let commands = format!("multiboot2 /image {words}\nboot\n");
        fs::write(grub.join("grub.cfg"), commands).map_err(failed)?;
        let mut maker = Command::new("grub-mkrescue");
        maker.args(["--install-modules=normal multiboot2 iso9660", "--fonts=", "--locales="]);
        maker.arg("--themes=").arg("-o").arg(disc.file()).arg(disc.0.path("root"));
        let made = maker.stdin(Stdio::null()).output().map_err(failed)?;
        if !made.status.success() {
            return Err(Failure::measured(format!(
                "grub-mkrescue: {}",
                String::from_utf8_lossy(&made.stderr).trim_end()
            )));
        }
        Ok(disc)
    }

    fn file(&self) -> PathBuf {
        self.0.path("disc.iso")
    }
}

/// Returns the packages that are needed to make a disc, and are missing.
fn lacking() -> Vec<&'static str> {
    let makers = MAKERS.iter().filter(|(program, _)| on_path(program).is_none());
    let is_missing = |folder: &str| !Path::new("/usr/lib/grub").join(folder).is_dir();
    let modules = MODULES.iter().filter(|(folder, _)| is_missing(folder));
    makers.chain(modules).map(|&(_, package)| package).collect()
}

fn missing(packages: &[&str]) -> Failure {
    Failure::missing(format!("booting by GRUB: apt-get install {}", packages.join(" ")))
}
