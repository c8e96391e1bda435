//! Programs on a real loop: order and completeness, under any load of the machine.

use std::sync::Arc;

use antiphon_coop::event_loop::{End, Loop, Name};

use crate::decode::{Costs, Synthetic, spin};
use crate::game::{Game, Rules};
use crate::program::Act;
use crate::sound::{Silent, Sound};
use crate::{Clip, Headless, Hosted, Options, Player, Scale, made};

#[test]
fn a_mixed_group_plays_to_its_end() {
    let clip = Arc::new(Clip::parse(made::layered(8, 60)).unwrap());
    let mut events = Loop::new().unwrap();
    let scale = Scale { look_ahead_ns: 200_000_000 };
    let options = Options { passes: Some(2), has_counter: true, scale, ..Options::default() };
    // One player for which half of the CPU is enough, and one that needs more than there is.
    let players = [4, 30].map(|ms| {
        let costs = Costs::by_size(&clip, ms * 1_000_000).unwrap();
        let player = Player::new(Arc::clone(&clip), Synthetic::new(costs, spin), Headless, options);
        Hosted::start(&mut events, player)
    });
    let sound =
        Sound::new(vec![1; 480], 48_000, 10, Some(50), scale, |_: &mut [i16]| spin(50_000), Silent);
    let sound = Hosted::start(&mut events, sound.unwrap());
    let rules = Rules { rate: 100, details: 4, ticks: Some(50), scale };
    let game = Hosted::start(&mut events, Game::new(rules, |_| spin(100_000)).unwrap());

    assert_eq!(events.run(), End::Done);

    for player in &players {
        let player = player.program();
        let report = player.report();
        assert!(player.is_over());
        assert_eq!(report.total().shown + report.total().dropped, 80, "{report}");
        assert_eq!(
            (report.disorder, report.read, report.refused),
            (0, report.total().shown, 0),
            "{report}"
        );
    }
    let played = sound.program().played().clone();
    assert_eq!(played.chunks + played.underruns, 50);
    assert_eq!(game.program().drawn().ticks, 50);
    let present = events.stats().iter().find(|s| s.name == Name::Given(Act::Present.name()));
    let shown: u64 = players.iter().map(|p| p.program().report().total().shown).sum();
    assert_eq!(present.unwrap().tardiness.count(), shown + 50 + 50);
}
