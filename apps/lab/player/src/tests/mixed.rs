//! Players, sound and a game in one group: one scale for all.

use std::sync::Arc;

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Synthetic};
use crate::game::{Game, Rules};
use crate::sound::{Silent, Sound};
use crate::{Cpu, Error, Headless, Options, Player, Scale, VirtualLoop, made};

#[test]
fn a_mixed_group_loses_details_only_and_alike() {
    let cpu = Cpu::new(1_000_000_000, 100);
    let spend = || {
        let clock = cpu.clone();
        move |ns: u64| clock.spend(ns)
    };
    let scale = Scale::default();
    let clip = Arc::new(Clip::parse(made::layered(120, 60)).unwrap());
    let player = |ms: u64| {
        let costs = Costs::by_size(&clip, ms * 1_000_000).unwrap();
        Player::new(Arc::clone(&clip), Synthetic::new(costs, spend()), Headless, Options::default())
    };
    // The players need 24 % and 48 % of the CPU, the sound 5 %, and the game 60 %: 137 % in all.
    let (mut light, mut heavy) = (player(4), player(8));
    let filter = spend();
    let mut sound = Sound::new(
        (0..4800).collect(),
        48_000,
        10,
        Some(1000),
        scale,
        move |_: &mut [i16]| filter(500_000),
        Silent,
    )
    .unwrap();
    let draw = spend();
    let rules = Rules { rate: 100, details: 11, ticks: Some(1000), scale };
    let mut game = Game::new(rules, move |_| draw(500_000)).unwrap();

    VirtualLoop::new(cpu).run(&mut [&mut light, &mut heavy, &mut sound, &mut game], 10_500_000_000);

    assert_eq!(sound.played().underruns, 0);
    assert!(sound.played().chunks > 900);
    assert_eq!(game.drawn().empty, 0);
    for player in [&light, &heavy] {
        let report = player.report();
        for layer in [Layer::Intra, Layer::Predicted, Layer::Bidirectional] {
            assert_eq!(report.layer(layer).dropped, 0, "{report}");
        }
    }
    let part = |player: &Player<_, _>| {
        let details = player.report().layer(Layer::Disposable);
        details.shown as f64 / (details.shown + details.dropped) as f64
    };
    let parts = [part(&light), part(&heavy), game.quality()];
    assert!(parts.iter().all(|&part| part > 0.1 && part < 0.95), "{parts:?}");
    let spread =
        parts.iter().copied().fold(0.0, f64::max) - parts.iter().copied().fold(1.0, f64::min);
    assert!(spread < 0.3, "{parts:?}");
    // Timers wait for a piece of half a millisecond, and for each other.
    for tardiness in [&sound.played().tardiness, &game.drawn().tardiness] {
        assert!(tardiness.quantile(1000) <= 1_000_000, "{}", tardiness.quantile(1000));
    }
}

#[test]
fn an_underrun_is_counted_and_heard_as_silence() {
    struct Heard(Vec<i16>);
    impl crate::sound::Sink for Heard {
        fn play(&mut self, samples: &[i16]) {
            self.0.push(samples[0]);
        }
    }
    let cpu = Cpu::new(0, 100);
    let clock = cpu.clone();
    // Each chunk of ten milliseconds costs twelve.
    let work = move |_: &mut [i16]| clock.spend(12_000_000);
    let scale = Scale { look_ahead_ns: 20_000_000 };
    let mut sound =
        Sound::new(vec![1; 480], 48_000, 10, Some(50), scale, work, Heard(Vec::new())).unwrap();
    VirtualLoop::new(cpu).run(&mut [&mut sound], u64::MAX);
    let played = sound.played();
    assert!(played.underruns > 0 && played.chunks > 0);
    assert_eq!(played.underruns + played.chunks, 50);
    let silent = sound.sink().0.iter().filter(|&&sample| sample == 0).count() as u64;
    assert_eq!(silent, played.underruns);
}

#[test]
fn a_sound_or_game_of_nothing_is_refused() {
    let sound = |samples, ms| {
        Sound::new(samples, 48_000, ms, None, Scale::default(), |_: &mut [i16]| {}, Silent)
    };
    assert!(matches!(sound(vec![0; 479], 10), Err(Error::Parameter(_))));
    assert!(matches!(sound(vec![0; 479], 0), Err(Error::Parameter(_))));
    let rules = Rules { rate: 0, details: 1, ticks: None, scale: Scale::default() };
    assert!(matches!(Game::new(rules, |_| {}), Err(Error::Parameter(_))));
}
