//! Makes a clip, and prints its structure and the costs of its frames on this machine:
//! `cargo run --release -p antiphon-player --example clip -- [bursty|uniform] [FILE]`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use antiphon_player::decode::{Costs, OpenH264};
use antiphon_player::ffmpeg::{self, Kind, Making};
use antiphon_player::{Clip, Error, Layer};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kind = match arguments.next().as_deref() {
        None | Some("bursty") => Kind::Bursty,
        Some("uniform") => Kind::Uniform,
        Some(word) => {
            eprintln!("clip: a clip is bursty or uniform, not `{word}`; [bursty|uniform] [FILE]");
            return ExitCode::from(2);
        }
    };
    let file =
        arguments.next().map_or_else(|| std::env::temp_dir().join("clip.h264"), PathBuf::from);
    match make(kind, &file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("clip: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(kind: Kind, file: &Path) -> Result<(), Error> {
    let making = Making { kind, ..Making::default() };
    ffmpeg::make(&making, file)?;
    let clip = Clip::open(file)?;
    println!("{}: {} frames in {} units", file.display(), clip.frames().len(), clip.units().len());

    let costs = Costs::of_decoder(&clip, &mut OpenH264::load()?, 3)?;
    println!("layer  frames  bytes a frame  decoded in µs (half, 90 %, all)");
    for layer in Layer::ALL {
        let of_layer: Vec<_> =
            (0..clip.frames().len()).filter(|&n| clip.frames()[n].layer == layer).collect();
        let mut took: Vec<_> = of_layer.iter().map(|&n| costs.of(n) / 1000).collect();
        took.sort_unstable();
        let Some(last) = took.len().checked_sub(1) else { continue };
        let bytes: usize = of_layer.iter().map(|&n| clip.coded(n).len()).sum();
        let [half, most, all] = [last / 2, last * 9 / 10, last].map(|place| took[place]);
        let count = took.len();
        let letter = layer.letter();
        println!("{letter:<5} {count:7} {:14}  {half} {most} {all}", bytes / count);
    }
    Ok(())
}
