//! Pictures that another thread shows.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use antiphon_coop::event_loop::Loop;
use antiphon_coop::{Split, SplitOptions};

use crate::apart::{Apart, Aside};
use crate::decode::{Costs, Synthetic, spin};
use crate::picture::{Kept, Picture, Screen};
use crate::{Clip, Cpu, Hosted, Options, Player, VirtualLoop, counter, made};

/// The numbers that were shown, as read from the pictures.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<usize>>>);

impl Screen for Seen {
    fn show(&mut self, picture: &Picture, number: usize) {
        assert_eq!(counter::read(picture), Some(number as u16));
        self.0.lock().unwrap().push(number);
    }
}

type Call = Box<dyn FnOnce(u64) + Send>;

/// A thread that the test steps by hand.
#[derive(Clone, Default)]
struct ByHand(Rc<RefCell<BTreeMap<u64, Call>>>);

impl Aside for ByHand {
    fn submit(&self, release_ns: u64, run: Box<dyn FnOnce(u64) + Send>) {
        self.0.borrow_mut().insert(release_ns, run);
    }
}

impl Aside for Split {
    fn submit(&self, release_ns: u64, run: Box<dyn FnOnce(u64) + Send>) {
        Self::submit(self, release_ns, run);
    }
}

#[test]
fn a_picture_comes_back_when_it_was_shown_and_if_its_screen_panics() {
    struct Broken;
    impl Screen for Broken {
        fn show(&mut self, _: &Picture, number: usize) {
            assert_ne!(number, 1, "as is meant");
        }
    }
    let thread = ByHand::default();
    let mut screen = Apart::new(Broken, Box::new(thread.clone()));
    let picture = Picture::gray(2, 2);
    for number in [0, 1, 2] {
        assert_eq!(screen.keep(number, picture.clone(), number as usize, 100 + number), None);
    }
    assert_eq!(screen.kept(), None);
    let due = std::mem::take(&mut *thread.0.borrow_mut());
    for (late_ns, (_, show)) in due.into_iter().enumerate() {
        // Unwind safe: the test continues with the broken screen.
        let show = std::panic::AssertUnwindSafe(|| show(late_ns as u64));
        assert_eq!(std::panic::catch_unwind(show).is_err(), late_ns == 1);
    }
    let kept: Vec<_> = std::iter::from_fn(|| screen.kept()).collect();
    let wanted = [0, 1, 2].map(|id| Kept { id, late_ns: id, picture: picture.clone() });
    assert_eq!(kept, wanted);
}

#[test]
fn a_screen_that_is_closed_or_broken_says_so_through_the_other_thread() {
    #[derive(Clone, Default)]
    struct Shut(Arc<AtomicBool>);
    impl Screen for Shut {
        fn show(&mut self, _: &Picture, _: usize) {
            self.0.store(true, Relaxed);
        }
        fn is_closed(&self) -> bool {
            self.0.load(Relaxed)
        }
        fn fault(&self) -> Option<String> {
            self.is_closed().then(|| "gone".to_owned())
        }
    }
    let thread = ByHand::default();
    let mut screen = Apart::new(Shut::default(), Box::new(thread.clone()));
    assert!(!screen.is_closed() && screen.fault().is_none());
    screen.keep(0, Picture::gray(2, 2), 0, 100);
    thread.0.borrow_mut().remove(&100).unwrap()(0);
    assert!(screen.is_closed());
    assert_eq!(screen.fault().as_deref(), Some("gone"));

    // A closed screen stops its player.
    let clip = Arc::new(Clip::parse(made::layered(12, 60)).unwrap());
    let cpu = Cpu::new(0, 100);
    let clock = cpu.clone();
    let costs = Costs::by_size(&clip, 1_000_000).unwrap();
    let decoder = Synthetic::new(costs, move |ns| clock.spend(ns));
    let mut player = Player::new(clip, decoder, screen, Options::default());
    VirtualLoop::new(cpu).run(&mut [&mut player], u64::MAX);
    assert!(player.is_over() && player.report().is_closed, "{}", player.report());
}

#[test]
fn a_player_whose_timers_are_in_a_thread_shows_each_frame_it_decodes() {
    let timers = match Split::start(SplitOptions::default()) {
        Ok(timers) => timers,
        Err(refused) => return eprintln!("skipped: {refused}"),
    };
    let clip = Arc::new(Clip::parse(made::layered(12, 60)).unwrap());
    let decoder = Synthetic::new(Costs::by_size(&clip, 2_000_000).unwrap(), spin);
    let seen = Seen::default();
    let screen = Apart::new(seen.clone(), Box::new(timers));
    let options = Options { has_counter: true, ..Options::default() };
    let mut events = Loop::new().unwrap();
    let player = Hosted::start(&mut events, Player::new(clip, decoder, screen, options));
    let _ = events.run();
    let player = player.program();
    let report = player.report();
    assert!(player.is_over(), "{report}");
    let shown = report.total().shown;
    assert_eq!((shown + report.total().dropped, report.read), (60, shown), "{report}");
    assert_eq!((report.disorder, report.tardiness.samples().len() as u64), (0, shown), "{report}");
    assert!(shown > 0, "{report}");
    let numbers = seen.0.lock().unwrap();
    assert!(numbers.len() as u64 == shown && numbers.is_sorted(), "{numbers:?}");
}
