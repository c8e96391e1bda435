//! Priority-Progress: which frames are dropped, and which never are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Decode, Progress, Synthetic, UnitId};
use crate::picture::{Picture, Screen};
use crate::{Cpu, Error, Options, Player, Report, VirtualLoop, counter, made};

/// A screen that records when each frame was shown.
#[derive(Clone)]
struct Watched {
    cpu: Cpu,
    shown: Vec<(usize, u64)>,
}

impl Screen for Watched {
    fn show(&mut self, picture: &Picture, number: usize) {
        assert_eq!(counter::read(picture), Some(number as u16));
        self.shown.push((number, self.cpu.now_ns()));
    }
}

/// A decoder that checks that no frame is decoded without the frame it needs, or after its unit was
/// closed.
struct Strict<D> {
    decoder: D,
    done: Rc<RefCell<BTreeMap<(u64, usize), usize>>>,
    closed: Vec<UnitId>,
}

impl<D: Decode> Decode for Strict<D> {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        let unit = UnitId { pass, unit: clip.frames()[frame].unit };
        assert!(!self.closed.contains(&unit), "{unit:?} is closed");
        if let Some(needed) = clip.frames()[frame].needs {
            assert!(self.done.borrow().contains_key(&(pass, needed)), "{frame} needs {needed}");
        }
        if !clip.units()[unit.unit].is_free {
            let is_last = self.done.borrow().keys().all(|&(other, f)| other != pass || f < frame);
            assert!(is_last, "{frame} was passed");
        }
        let progress = self.decoder.decode(clip, frame, pass)?;
        if matches!(progress, Progress::Done(_)) {
            let order = self.done.borrow().len();
            self.done.borrow_mut().insert((pass, frame), order);
        }
        Ok(progress)
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        assert!(!self.closed.contains(&unit), "{unit:?} is closed twice");
        self.closed.push(unit);
        self.decoder.close(clip, unit);
    }

    fn name(&self) -> String {
        self.decoder.name()
    }
}

struct Run {
    report: Report,
    shown: Vec<(usize, u64)>,
    /// For each frame, its place in the order of decoding.
    decoded: BTreeMap<(u64, usize), usize>,
}

/// Plays a clip whose frames cost `mean_ns` with `percent` of a CPU.
fn play(clip: &Arc<Clip>, mean_ns: u64, percent: u64, passes: u64) -> Run {
    let cpu = Cpu::new(1_000_000_000, percent);
    let clock = cpu.clone();
    let costs = Costs::by_size(clip, mean_ns).unwrap();
    let done = Rc::new(RefCell::new(BTreeMap::new()));
    let decoder = Strict {
        decoder: Synthetic::new(costs, move |ns| clock.spend(ns)),
        done: Rc::clone(&done),
        closed: Vec::new(),
    };
    let screen = Watched { cpu: cpu.clone(), shown: Vec::new() };
    let options = Options { passes: Some(passes), has_counter: true, ..Options::default() };
    let mut player = Player::new(Arc::clone(clip), decoder, screen, options);
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    assert!(player.is_over());
    let report = player.report().clone();
    assert_eq!(report.total().shown + report.total().dropped, passes * clip.frames().len() as u64);
    assert_eq!((report.disorder, report.misread, report.refused), (0, 0, 0));
    assert_eq!(report.read, report.total().shown);
    let shown = player.screen().shown.clone();
    // Each unit was closed.
    let all: usize = (0..passes as usize).map(|_| clip.units().len()).sum();
    assert_eq!(player.decoder().closed.len(), all);
    Run { report, shown, decoded: done.take() }
}

fn clip(units: usize) -> Arc<Clip> {
    Arc::new(Clip::parse(made::layered(units, 60)).unwrap())
}

#[test]
fn with_enough_of_the_cpu_nothing_is_dropped_and_all_is_on_time() {
    for clip in [clip(24), Arc::new(Clip::parse(made::chained(40, 60)).unwrap())] {
        let run = play(&clip, 12_000_000, 100, 2);
        assert_eq!(run.report.total().dropped, 0, "{}", run.report);
        assert_eq!(run.report.quality(), 1.0);
        let first = run.shown[0].1;
        for (place, &(number, at)) in run.shown.iter().enumerate() {
            assert_eq!(number, place % clip.frames().len());
            let due = first + place as u64 * clip.frame_ns();
            // Timers wait for at most one piece of work: a quarter of a millisecond.
            assert!(at.abs_diff(due) <= 250_000, "{number} at {at}, due at {due}");
        }
        assert!(run.report.per_second.iter().all(|&fps| fps <= 61));
    }
}

#[test]
fn with_half_of_the_cpu_only_details_are_dropped() {
    // All frames cost 1.2 times the time there is; without the details, two thirds of that.
    for clip in [clip(72), Arc::new(Clip::parse(made::chained(90, 60)).unwrap())] {
        let run = play(&clip, 10_000_000, 50, 2);
        let report = &run.report;
        for layer in [Layer::Intra, Layer::Predicted, Layer::Bidirectional] {
            assert_eq!(report.layer(layer).dropped, 0, "{report}");
        }
        let details = report.layer(Layer::Disposable);
        assert!(details.dropped > 0 && details.shown > 0, "{report}");
        assert!(report.tardiness.quantile(1000) <= 2 * 250_000, "{report}");
    }
}

#[test]
fn the_less_there_is_the_more_important_is_what_is_dropped() {
    let clip = clip(72);
    let lost = |percent| {
        let run = play(&clip, 12_000_000, percent, 1);
        let part = |layer| {
            let count = run.report.layer(layer);
            count.dropped as f64 / (count.shown + count.dropped) as f64
        };
        Layer::ALL.map(part)
    };
    let mut before = [0.0; 4];
    for percent in [100, 70, 50, 35, 25] {
        let parts = lost(percent);
        // By importance: most of a layer is lost before one above it is touched, except at the
        // beginning and the end.
        assert!(parts.is_sorted_by(|a, b| *a <= b + 0.02), "{percent} %: {parts:?}");
        assert!(parts.iter().zip(before).all(|(now, then)| *now >= then - 0.02));
        before = parts;
    }
    assert!(before[3] > 0.99 && before[2] > 0.9, "{before:?}");
}

#[test]
fn what_is_more_important_is_decoded_first() {
    let clip = clip(72);
    let run = play(&clip, 10_000_000, 50, 1);
    let order = |frame: usize| run.decoded.get(&(0, frame)).copied();
    let mut details = 0;
    for unit in 20..60 {
        let [intra, predicted, bidirectional] = [0, 1, 2].map(|n| order(5 * unit + n).unwrap());
        assert!(intra < predicted && predicted < bidirectional);
        // An I frame is decoded at least 18 frames ahead of its time, a P frame 12, and a detail at
        // most 6: so the I frame of 10 frames later and the P frame of this unit come before any
        // detail of it.
        let later = [order(5 * (unit + 2)).unwrap(), order(5 * unit + 1).unwrap()];
        for detail in [5 * unit + 3, 5 * unit + 4].into_iter().filter_map(order) {
            assert!(bidirectional < detail);
            assert!(later.iter().all(|&essential| essential < detail), "unit {unit}");
            details += 1;
        }
    }
    assert!((10..60).contains(&details), "{details}");
}

#[test]
fn what_is_left_of_the_details_is_spread_evenly() {
    let clip = clip(144);
    let run = play(&clip, 10_000_000, 50, 1);
    let is_shown = |n: usize| run.shown.iter().any(|&(number, _)| number == n);
    let details: Vec<_> =
        clip.frames().iter().filter(|f| f.layer == Layer::Disposable).map(|f| f.shown).collect();
    let shown: Vec<_> = details.iter().map(|&n| usize::from(is_shown(n))).collect();
    // Once the look-ahead of the start is used up, each run of 16 frames loses the same share.
    let steady = &shown[96..shown.len() - 16];
    let parts: Vec<usize> = steady.chunks_exact(16).map(|run| run.iter().sum()).collect();
    let (least, most) = (parts.iter().min().unwrap(), parts.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 2, "{parts:?}");
}

#[test]
fn the_table_of_the_documentation_is_right() {
    let clip = clip(144);
    for (percent, wanted) in [
        (80, [144, 144, 144, 288]),
        (70, [144, 144, 144, 266]),
        (60, [144, 144, 144, 125]),
        (50, [144, 144, 78, 34]),
        (40, [144, 144, 8, 5]),
        (30, [136, 50, 2, 1]),
    ] {
        let run = play(&clip, 12_000_000, percent, 1);
        let shown = Layer::ALL.map(|layer| run.report.layer(layer).shown);
        assert_eq!(shown, wanted, "{percent} %");
    }
}
