//! Priority-Progress: what is dropped, and what is never.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Decode, Progress, Synthetic, UnitId};
use crate::picture::{Picture, Screen};
use crate::program::Program;
use crate::sound::{Silent, Sound};
use crate::{
    Cpu, Error, Headless, Options, Player, Report, Scale, VirtualLoop, counter, jain, made,
};

/// When each frame was shown.
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

/// Checks that no frame is decoded without what it needs, nor after its unit was closed.
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
    /// Of each frame, the how manieth it was to be decoded.
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
            // Timers wait for a piece of work at most: a quarter of a millisecond.
            assert!(at.abs_diff(due) <= 250_000, "{number} at {at}, due at {due}");
        }
        assert!(run.report.per_second.iter().all(|&fps| fps <= 61));
    }
}

#[test]
fn with_half_of_the_cpu_only_details_are_dropped() {
    // The rest costs two thirds of all; so 1.2 times of the time there is, less the details.
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
        // By importance: the next layer is lost for the most part before one above it is touched,
        // but for the moments of the beginning and the end.
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
        // An I is at least 18 frames ahead of its time, a P is 12, and a detail is at most 6: so
        // the I of 10 frames later and the P of this unit come before any detail of it.
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
    // Once the look-ahead of the start is used up, each run of 16 has its part.
    let steady = &shown[96..shown.len() - 16];
    let parts: Vec<usize> = steady.chunks_exact(16).map(|run| run.iter().sum()).collect();
    let (least, most) = (parts.iter().min().unwrap(), parts.iter().max().unwrap());
    assert!(*least > 0 && most - least <= 2, "{parts:?}");
}

/// What players show that share a CPU, of which each frame costs so many microseconds in the mean.
fn group(costs_us: &[u64]) -> Vec<Report> {
    let cpu = Cpu::new(1_000_000_000, 100);
    let clip = clip(100);
    let player = |(phase, &us): (usize, &u64)| {
        let clock = cpu.clone();
        let costs = Costs::by_size(&clip, us * 1000).unwrap();
        let decoder = Synthetic::new(costs, move |ns| clock.spend(ns));
        let options = Options { phase: phase as u64, ..Options::default() };
        Player::new(Arc::clone(&clip), decoder, Headless, options)
    };
    let mut players: Vec<_> = costs_us.iter().enumerate().map(player).collect();
    let mut programs: Vec<_> = players.iter_mut().map(|p| p as &mut dyn Program).collect();
    VirtualLoop::new(cpu).run(&mut programs, u64::MAX);
    players.iter().map(|player| player.report().clone()).collect()
}

#[test]
fn a_group_of_players_has_one_quality_whatever_their_clips_cost() {
    let reports = group(&[1000, 2000, 3000, 4000, 5000, 6000]);
    let rates: Vec<_> = reports.iter().map(|report| report.total().shown as f64).collect();
    let total: f64 = rates.iter().sum();
    // 21 ms of work for each 16.7 ms: not all is shown.
    assert!(total < 6.0 * 500.0 && total > 3.0 * 500.0, "{rates:?}");
    assert!(jain(&rates) > 0.97, "{rates:?}");
    for report in &reports {
        assert_eq!(report.layer(Layer::Intra).dropped, 0, "{report}");
    }
}

#[test]
fn where_not_even_the_essential_can_be_done_a_part_of_it_is() {
    // What is essential alone would be 1.4 times of the CPU.
    let reports = group(&[3000; 24]);
    let rates: Vec<_> = reports.iter().map(|r| r.layer(Layer::Intra).shown as f64).collect();
    let shown: f64 = rates.iter().sum::<f64>() / 2400.0;
    assert!((0.3..0.95).contains(&shown), "{shown}");
    assert!(jain(&rates) > 0.9, "{rates:?}");
}

#[test]
fn a_stalled_cpu_loses_what_was_due_and_then_goes_on() {
    let clip = clip(72);
    let cpu = Cpu::new(0, 100);
    let clock = cpu.clone();
    let costs = Costs::by_size(&clip, 8_000_000).unwrap();
    let mut pieces = 0;
    let decoder = Synthetic::new(costs, move |ns| {
        pieces += 1;
        clock.spend(if pieces == 3000 { 900_000_000 } else { ns });
    });
    let mut player = Player::new(clip, decoder, Headless, Options::default());
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    let report = player.report();
    assert!(player.is_over() && report.disorder == 0);
    assert!(report.total().dropped > 20, "{report}");
    // The last second is as if nothing had been.
    assert_eq!(report.per_second[4], 60, "{:?}", report.per_second);
}

/// Refuses one frame of a clip.
struct Refuses<D>(D, usize);

impl<D: Decode> Decode for Refuses<D> {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        if frame == self.1 {
            return Err(Error::Decoder(frame, "damaged".to_owned()));
        }
        self.0.decode(clip, frame, pass)
    }

    fn close(&mut self, clip: &Clip, unit: UnitId) {
        self.0.close(clip, unit);
    }

    fn name(&self) -> String {
        self.0.name()
    }
}

#[test]
fn a_damaged_frame_takes_along_what_needs_it_and_no_more() {
    for (frame, lost) in [(10, 5), (11, 4), (12, 3), (13, 1)] {
        let clip = clip(12);
        let cpu = Cpu::new(0, 100);
        let clock = cpu.clone();
        let costs = Costs::by_size(&clip, 5_000_000).unwrap();
        let decoder = Refuses(Synthetic::new(costs, move |ns| clock.spend(ns)), frame);
        let mut player = Player::new(clip, decoder, Headless, Options::default());
        VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
        let report = player.report();
        assert_eq!((report.refused, report.total().dropped), (1, lost), "{frame}: {report}");
        assert!(report.refusal.as_ref().unwrap().contains("damaged"));
    }
}

#[test]
fn who_has_far_too_little_goes_on_at_the_next_unit() {
    // Two units of 81 frames, one after the other, of which even the reference frames cost twice
    // the time there is; and sound beside them.
    let mut stream = made::chained(20, 60);
    stream.extend(made::chained(20, 60));
    let clip = Arc::new(Clip::parse(stream).unwrap());
    let cpu = Cpu::new(1_000_000_000, 100);
    let clocks = [cpu.clone(), cpu.clone()];
    let [of_video, of_sound] = clocks;
    let costs = Costs::by_size(&clip, 60_000_000).unwrap();
    let decoder = Synthetic::new(costs, move |ns| of_video.spend(ns));
    let mut player = Player::new(Arc::clone(&clip), decoder, Headless, Options::default());
    let work = move |_: &mut [i16]| of_sound.spend(200_000);
    let mut sound =
        Sound::new(vec![1; 480], 48_000, 10, Some(250), Scale::default(), work, Silent).unwrap();
    VirtualLoop::new(cpu).run(&mut [&mut player, &mut sound], u64::MAX);
    let report = player.report();
    assert_eq!(sound.played().underruns, 0);
    assert!(player.is_over() && report.disorder == 0);
    // Both units have a beginning, and what comes after is for the most part lost.
    assert_eq!(report.layer(Layer::Intra).shown, 2, "{report}");
    assert!(report.total().dropped > 100, "{report}");
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
