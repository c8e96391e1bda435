//! Shapes that hold at any size. All figures are simulated; `docs/mix.md` lists them.

use antiphon_sim::known;

use super::bridge::{Setting, hold};
use super::codecs::{CODECS, Codec};
use super::rows::Row;
use super::subjects::Subject;

fn codec(name: &str) -> &'static Codec {
    CODECS.iter().find(|codec| codec.name == name).expect("a codec")
}

fn setting(codec: &'static Codec, conferences: usize, workers: usize) -> Setting<'static> {
    let machine = &known("epyc-2x64c").expect("it is shipped").machine;
    let (seed, legs, frames, together) = (1, 2, 4, true);
    Setting { machine, codec, seed, workers, conferences, legs, frames, together }
}

fn subject(name: &str) -> Subject {
    Subject::all().into_iter().find(|subject| subject.name == name).expect("a subject")
}

/// If a frame were lost, the simulation would report a deadlock.
#[test]
fn each_frame_is_sent_once_whoever_runs_it() {
    for subject in Subject::all() {
        for together in [false, true] {
            let setting = Setting { together, ..setting(codec("md5"), 9, 6) };
            let figures = hold(&setting, subject).unwrap_or_else(|why| panic!("{why:?}"));
            assert_eq!(figures.frames, 9 * 2 * 4);
            let codec = setting.codec;
            let frame = codec.receive_ns + codec.mix_ns + codec.spawn_ns + codec.send_ns;
            assert_eq!(figures.worked_ns, figures.frames * frame, "{}", subject.name);
            // No frame is sent before it is mixed.
            assert!(figures.latency.quantile(0.0) >= (codec.mix_ns + codec.send_ns) as f64 * 0.9);
        }
    }
}

/// A worker has 10 ms for work that arrives at once: it can't do twice as much, whatever the
/// policy.
#[test]
fn more_than_there_is_time_for_is_late() {
    let published = codec("published");
    for name in ["lifo", "fifo", "staged", "edf", "fifo+silos", "fifo+stages"] {
        let per_leg = published.receive_ns + published.send_ns;
        let breaches = |conferences: u64| {
            let setting = setting(published, conferences as usize, 10);
            let row = Row::of(&setting, subject(name)).unwrap_or_else(|why| panic!("{why:?}"));
            row.breaches().expect("it was held")
        };
        // Ten workers have 100 ms in total.
        let fits = 100_000_000 / (2 * per_leg);
        let (few, many) = (breaches(fits / 8), breaches(fits * 2));
        assert!(few < 0.01 && many > 0.2, "{name}: {few} {many}");
    }
}
