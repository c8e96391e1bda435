//! Streams a clip over TCP: the least important frames are dropped before they are sent, or before
//! they are decoded.
//!
//! ```text
//! cargo run --release -p antiphon-player --example stream -- COMMAND
//!     serve FILE ADDRESS [--clients N]     FILE is H.264 as `--example clip` makes it
//!     play ADDRESS [--bandwidth KBIT] [--quality all|reference|predicted|intra] [--display]
//!     demo [FILE]                          a server, and three players of three bandwidths
//! ```

use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use antiphon_coop::event_loop::Loop;
use antiphon_player::ffmpeg::{self, Making};
use antiphon_player::stream::{Client, ClientOptions, Quality, Server, ServerOptions, Stored};
use antiphon_player::window::Window;
use antiphon_player::{Headless, Layer, Screen, decode};

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "serve FILE ADDRESS [--clients N] | play ADDRESS [--bandwidth KBIT] \
                     [--quality all|reference|predicted|intra] [--display] | demo [FILE]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["serve", file, address, ref flags @ ..] => serve(Path::new(file), address, flags),
        ["play", address, ref flags @ ..] => play(address, flags),
        ["demo"] => demo(None),
        ["demo", file] => demo(Some(PathBuf::from(file))),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stream: {error}");
            ExitCode::from(if error.to_string() == USAGE { 2 } else { 1 })
        }
    }
}

fn resolve(address: &str) -> Result<SocketAddr, Box<dyn Error>> {
    let mut found = address
        .to_socket_addrs()
        .map_err(|error| format!("{address}: {error}; HOST:PORT is wanted"))?;
    found.next().ok_or_else(|| format!("{address}: no such address").into())
}

fn number(flag: &str, value: &str) -> Result<u64, Box<dyn Error>> {
    let wanted = value.parse().ok().filter(|&number| number > 0);
    wanted.ok_or_else(|| format!("{flag} {value}: a number above 0 is wanted").into())
}

fn open(file: &Path) -> Result<Stored, Box<dyn Error>> {
    Stored::open(file).map_err(|error| match error {
        antiphon_player::Error::Stream(..) => format!("{}: {error}", file.display()).into(),
        error => error.into(),
    })
}

fn serve(file: &Path, address: &str, flags: &[&str]) -> Outcome {
    let serves = match *flags {
        [] => None,
        ["--clients", count] => Some(number("--clients", count)?),
        _ => return Err(USAGE.into()),
    };
    let stored = open(file)?;
    let mut events = Loop::new()?;
    let options = ServerOptions { serves, ..ServerOptions::default() };
    let tell = |served: &_| println!("{served}");
    let address = Server::start(&mut events, resolve(address)?, stored, options, tell)?;
    println!("serves {} at {address}", file.display());
    let _ = events.run();
    Ok(())
}

fn play(address: &str, mut flags: &[&str]) -> Outcome {
    let mut options = ClientOptions { has_counter: true, ..ClientOptions::default() };
    let mut is_seen = false;
    while let Some((&flag, rest)) = flags.split_first() {
        flags = match (flag, rest) {
            ("--bandwidth", &[kbit, ref rest @ ..]) => {
                options.bytes_per_second = Some(number(flag, kbit)?.saturating_mul(125));
                rest
            }
            ("--quality", &[quality, ref rest @ ..]) => {
                options.quality = quality.parse()?;
                rest
            }
            ("--display", rest) => {
                is_seen = true;
                rest
            }
            _ => return Err(USAGE.into()),
        };
    }
    let mut events = Loop::new()?;
    let client = start(&mut events, resolve(address)?, options, is_seen)?;
    let _ = events.run();
    print_head();
    print(options, &client);
    Ok(())
}

fn start(
    events: &mut Loop,
    address: SocketAddr,
    options: ClientOptions,
    is_seen: bool,
) -> Result<Client<Box<dyn Screen>>, antiphon_player::Error> {
    Client::start(events, address, options, move |clip| {
        let (width, height) = clip.size();
        let screen: Box<dyn Screen> = if is_seen {
            Box::new(Window::open("stream", width, height)?)
        } else {
            Box::new(Headless)
        };
        Ok((decode::installed(clip, 800_000)?, screen))
    })
}

fn demo(file: Option<PathBuf>) -> Outcome {
    let is_made = file.is_none();
    let file = match file {
        Some(file) => file,
        None => {
            let name = format!("antiphon-stream-{}.h264", std::process::id());
            let file = std::env::temp_dir().join(name);
            ffmpeg::make(&Making::default(), &file)?;
            file
        }
    };
    let mut events = Loop::new()?;
    let options = ServerOptions { serves: Some(3), ..ServerOptions::default() };
    let tell = |served: &_| println!("server: {served}");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let stored = open(&file)?;
    let address = Server::start(&mut events, any, stored, options, tell)?;
    let mut clients = Vec::new();
    for (kbit, quality) in [(2000, Quality::All), (1250, Quality::All), (1100, Quality::Reference)]
    {
        let options =
            ClientOptions { quality, bytes_per_second: Some(kbit * 125), has_counter: true };
        clients.push((options, start(&mut events, address, options, false)?));
    }
    let _ = events.run();
    if is_made {
        std::fs::remove_file(&file)?;
    }
    print_head();
    for (options, client) in &clients {
        print(*options, client);
    }
    Ok(())
}

fn print_head() {
    println!(
        "player                    layer  frames  came  shown  late by ms (half, 99 %)  bytes"
    );
}

/// Prints, for each requested layer, how many frames were due, arrived in time, and were shown.
fn print(options: ClientOptions, client: &Client<Box<dyn Screen>>) {
    let rate = options.bytes_per_second;
    let rate = rate.map_or("no limit".to_owned(), |rate| format!("{} kbit/s", rate / 125));
    let name = format!("{rate}, {}", options.quality);
    let received = client.received();
    let Some(player) = client.player() else {
        println!("{name}: {}", received.fault.as_deref().unwrap_or("nothing came"));
        return;
    };
    let player = player.program();
    let report = player.report();
    let ms = |permille| report.tardiness.quantile(permille) as f64 / 1e6;
    let late = format!("{:.3}, {:.3}", ms(500), ms(990));
    let asked = Layer::ALL.into_iter().filter(|&layer| layer >= options.quality.least());
    for (row, layer) in asked.enumerate() {
        let count = report.layer(layer);
        let (frames, came) = (count.shown + count.dropped, received.layer(layer));
        let (name, late, bytes) = match row {
            0 => (name.as_str(), late.as_str(), received.bytes.to_string()),
            _ => ("", "", String::new()),
        };
        let (letter, shown) = (layer.letter(), count.shown);
        println!("{name:<25} {letter:<5} {frames:7} {came:5} {shown:6}  {late:23}  {bytes}");
    }
    if report.misread + report.disorder + report.refused > 0 {
        println!("wrong: {report:?}");
    }
    if let Some(fault) = received.fault.as_ref().or(report.screen_fault.as_ref()) {
        println!("{fault}");
    }
}
