//! Faults of a player's parts, and their effects.

use std::sync::Arc;

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Decode, Progress, Synthetic, UnitId};
use crate::sound::{Silent, Sound};
use crate::{Cpu, Error, Headless, Options, Player, Scale, VirtualLoop, made};

fn clip(units: usize) -> Arc<Clip> {
    Arc::new(Clip::parse(made::layered(units, 60)).unwrap())
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
    // The last second is unaffected.
    assert_eq!(report.per_second[4], 60, "{:?}", report.per_second);
}

/// A decoder that refuses one frame of a clip.
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
    // Two consecutive units of 81 frames, whose reference frames alone cost twice the time there
    // is; and sound beside them.
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
    // Both units begin, and most of the rest is lost.
    assert_eq!(report.layer(Layer::Intra).shown, 2, "{report}");
    assert!(report.total().dropped > 100, "{report}");
}

#[test]
fn a_look_ahead_of_nothing_is_played() {
    let cpu = Cpu::new(0, 100);
    let clock = cpu.clone();
    let clip = clip(4);
    let decoder = Synthetic::new(Costs::by_size(&clip, 1000).unwrap(), move |ns| clock.spend(ns));
    let options = Options { scale: Scale { look_ahead_ns: 0 }, margin_ns: 0, ..Options::default() };
    let mut player = Player::new(clip, decoder, Headless, options);
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    assert!(player.is_over());
    let total = player.report().total();
    assert_eq!(total.shown + total.dropped, 20);
}
