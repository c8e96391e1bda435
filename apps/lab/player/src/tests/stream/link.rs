//! Simulates, in virtual time, a link of a given bandwidth, a disk and a CPU.

use std::sync::Arc;

use crate::clip::{Clip, Layer};
use crate::decode::{Costs, Decode, Synthetic};
use crate::importance::Scale;
use crate::player::Schedule;
use crate::program::{Act, Job, Program, Timeline};
use crate::stream::sender::Sender;
use crate::stream::{Quality, Sent};
use crate::{Cpu, Headless, Options, Player, Report, VirtualLoop, made};

/// The job that runs when the link has carried a frame, or has a new frame to carry.
const CARRIED: Job = Job { act: Act::Receive, number: u64::MAX };
/// The job that reads and sends a frame.
const READ: Job = Job { act: Act::Prepare, number: u64::MAX };
const WINDOW: Scale = Scale { look_ahead_ns: 1_000_000_000 };
const MARGIN_NS: u64 = 100_000_000;

/// One client, the server's side for it, and the link between them.
struct Link {
    player: Player<Box<dyn Decode>, Headless>,
    sender: Sender,
    clip: Arc<Clip>,
    cpu: Cpu,
    byte_ns: u64,
    read_ns: u64,
    /// The frame that the link is carrying.
    carried: Option<usize>,
    /// The frames that were read, with their times.
    log: Vec<(u64, usize)>,
    came: [u64; 4],
}

impl Link {
    /// A link of `kbit` kbit/s, with a disk that takes `read_ns` for a frame, and frames that cost
    /// `mean_ns` on average.
    fn new(
        clip: &Arc<Clip>,
        quality: Quality,
        kbit: u64,
        [read_ns, mean_ns]: [u64; 2],
        cpu: &Cpu,
    ) -> Self {
        let options = Options { scale: WINDOW, has_counter: true, ..Options::default() };
        let coming = Clip::announced(
            clip.head().to_vec(),
            &clip.outlines().unwrap(),
            clip.size(),
            clip.frame_ns(),
        );
        let clock = cpu.clone();
        let costs = Costs::by_size(clip, mean_ns).unwrap();
        let decoder: Box<dyn Decode> = Box::new(Synthetic::new(costs, move |ns| clock.spend(ns)));
        let sends = Options { margin_ns: MARGIN_NS, ..options };
        Self {
            player: Player::new(Arc::new(coming), decoder, Headless, options),
            sender: Sender::new(Arc::clone(clip), &sends, quality, cpu.now_ns()),
            clip: Arc::clone(clip),
            cpu: cpu.clone(),
            byte_ns: 8_000_000 / kbit,
            read_ns,
            carried: None,
            log: Vec::new(),
            came: [0; 4],
        }
    }

    fn go_on(&mut self, timeline: &mut dyn Timeline) {
        if self.carried.is_some() {
            return;
        }
        self.sender.advance(timeline.now_ns());
        match self.sender.first() {
            // A server with its own machine does not wait for the programs here.
            Some(_) if self.read_ns == 0 => timeline.timer(timeline.now_ns(), READ),
            Some((importance, _)) => timeline.best_effort(importance, READ),
            None => {}
        }
        if let Some(next_ns) = self.sender.next_ns() {
            timeline.timer(next_ns, CARRIED);
        }
    }

    fn read(&mut self, timeline: &mut dyn Timeline) {
        let now_ns = timeline.now_ns();
        self.sender.advance(now_ns);
        let Some((_, frame)) = self.sender.first() else { return };
        self.log.push((now_ns, frame));
        self.cpu.spend(self.read_ns);
        self.sender.sent(frame);
        self.carried = Some(frame);
        let took_ns = self.clip.frames()[frame].bytes.len() as u64 * self.byte_ns;
        timeline.timer(self.cpu.now_ns() + took_ns, CARRIED);
    }

    fn arrive(&mut self, timeline: &mut dyn Timeline) {
        if let Some(frame) = self.carried.take() {
            let bytes = self.clip.coded(frame).to_vec();
            if let Some(layer) = self.player.arrive(frame, bytes, timeline) {
                self.came[layer as usize] += 1;
            }
        }
        self.go_on(timeline);
    }
}

impl Program for Link {
    fn start(&mut self, timeline: &mut dyn Timeline) {
        self.player.start(timeline);
        self.go_on(timeline);
    }

    fn run(&mut self, job: Job, timeline: &mut dyn Timeline) {
        match job {
            CARRIED => self.arrive(timeline),
            READ => self.read(timeline),
            _ => self.player.run(job, timeline),
        }
    }
}

/// The result of a link.
struct Run {
    report: Report,
    sent: [Sent; 4],
    came: [u64; 4],
    log: Vec<(u64, usize)>,
}

impl Run {
    fn shown(&self) -> [u64; 4] {
        Layer::ALL.map(|layer| self.report.layer(layer).shown)
    }

    /// The share of each layer that was not sent in time, the most important layer first.
    fn unsent(&self) -> [f64; 4] {
        Layer::ALL.map(|layer| {
            let Sent { sent, dropped, .. } = self.sent[layer as usize];
            dropped as f64 / (sent + dropped).max(1) as f64
        })
    }
}

const START_NS: u64 = 1_000_000_000;

/// Plays over several links at once, which share a disk and a CPU.
fn play(clip: &Arc<Clip>, links: &[(Quality, u64)], costs: [u64; 2]) -> Vec<Run> {
    let cpu = Cpu::new(START_NS, 100);
    let mut links: Vec<_> =
        links.iter().map(|&(quality, kbit)| Link::new(clip, quality, kbit, costs, &cpu)).collect();
    let mut programs: Vec<_> = links.iter_mut().map(|link| link as &mut dyn Program).collect();
    VirtualLoop::new(cpu).run(&mut programs, u64::MAX);
    links.into_iter().map(|link| finished(link, clip)).collect()
}

/// Checks the properties that hold for all links.
fn finished(link: Link, clip: &Clip) -> Run {
    let report = link.player.report().clone();
    assert!(link.player.is_over() && link.sender.next_ns().is_none());
    assert_eq!(link.player.held_bytes(), 0, "{report}");
    assert_eq!(report.total().shown + report.total().dropped, clip.frames().len() as u64);
    assert_eq!((report.disorder, report.misread, report.unread), (0, 0, 0), "{report}");
    let run = Run { report, sent: link.sender.layers(), came: link.came, log: link.log };
    in_order(&run.log, clip);
    run
}

/// Checks SEND-1 to SEND-3, from the frames that were read and their times.
fn in_order(log: &[(u64, usize)], clip: &Clip) {
    let options = Options { scale: WINDOW, margin_ns: MARGIN_NS, ..Options::default() };
    let mut schedule = Schedule::new(Arc::new(clip.clone()), &options);
    schedule.start(START_NS);
    let mut sent_ns = vec![None; clip.frames().len()];
    for &(now_ns, frame) in log {
        assert!(now_ns < schedule.end_ns(frame as u64), "{frame} had expired");
        assert!(sent_ns[frame].replace(now_ns).is_none(), "{frame} twice");
        let needed = clip.frames()[frame].needs;
        assert!(needed.is_none_or(|needed| sent_ns[needed].is_some()), "{frame} alone");
    }
    let is_intra = |frame: &usize| clip.frames()[*frame].layer == Layer::Intra;
    let lost: Vec<_> = (0..clip.frames().len())
        .filter(|frame| is_intra(frame) && sent_ns[*frame].is_none())
        .map(|frame| (schedule.arrival_ns(frame as u64), schedule.expiry_ns(frame as u64), frame))
        .collect();
    for &(now_ns, frame) in log.iter().filter(|(_, frame)| !is_intra(frame)) {
        for &(arrival_ns, expiry_ns, intra) in &lost {
            let waited = (arrival_ns..expiry_ns).contains(&now_ns);
            let is_less = schedule.importance(frame as u64) > schedule.importance(intra as u64);
            assert!(!(waited && is_less), "{frame} was sent, and the I {intra} was not");
        }
    }
}

fn clip(units: usize) -> Arc<Clip> {
    Arc::new(Clip::parse(made::layered(units, 60)).unwrap())
}

#[test]
fn with_enough_of_the_link_all_comes_and_is_shown() {
    for clip in [clip(48), Arc::new(Clip::parse(made::chained(60, 60)).unwrap())] {
        let run = &play(&clip, &[(Quality::All, 500)], [0, 1000])[0];
        assert_eq!(run.report.total().dropped, 0, "{}", run.report);
        assert_eq!(run.came.iter().sum::<u64>(), clip.frames().len() as u64);
    }
}

#[test]
fn the_table_of_the_documentation_is_right() {
    let clip = clip(144);
    for (kbit, wanted) in TABLE {
        let run = &play(&clip, &[(Quality::All, kbit)], [0, 1000])[0];
        assert_eq!(run.shown(), wanted, "{kbit} kbit/s");
        // Frames that arrived were shown, except those that arrived for other frames after their
        // own time had passed.
        let came: u64 = run.came.iter().sum();
        assert_eq!(came, run.report.total().shown + run.report.late, "{kbit} kbit/s");
    }
}

/// The rate in kbit/s, and the number of frames shown of each layer.
const TABLE: [(u64, [u64; 4]); 6] = [
    (320, [144, 144, 144, 288]),
    (280, [144, 144, 144, 167]),
    (240, [144, 144, 111, 32]),
    (200, [144, 120, 23, 9]),
    (160, [144, 44, 8, 3]),
    (120, [118, 11, 2, 0]),
];

#[test]
fn the_less_the_link_carries_the_more_important_is_what_is_dropped() {
    let clip = clip(144);
    let mut before = [0.0; 4];
    for kbit in [400, 280, 240, 200, 150, 100] {
        let parts = play(&clip, &[(Quality::All, kbit)], [0, 1000])[0].unsent();
        assert!(parts.is_sorted_by(|a, b| *a <= b + 0.02), "{kbit}: {parts:?}");
        assert!(parts.iter().zip(before).all(|(now, then)| *now >= then - 0.02), "{parts:?}");
        before = parts;
    }
    assert!(before[0] > 0.1 && before[3] > 0.98, "{before:?}");
}

#[test]
fn with_less_of_the_cpu_too_what_came_is_dropped_by_the_same_order() {
    let clip = clip(144);
    // Frames cost 21 ms on average, of 16.7 ms; and some of the details are not even sent.
    let run = &play(&clip, &[(Quality::All, 280)], [0, 21_000_000])[0];
    let parts = Layer::ALL.map(|layer| {
        let count = run.report.layer(layer);
        count.dropped as f64 / (count.shown + count.dropped) as f64
    });
    assert!(parts.is_sorted_by(|a, b| *a <= b + 0.02), "{parts:?}");
    let details = Layer::Disposable;
    assert!(run.sent[details as usize].dropped > 0, "{:?}", run.sent);
    assert!(run.report.layer(details).shown < run.came[details as usize], "{}", run.report);
    assert_eq!(run.report.layer(Layer::Intra).dropped, 0, "{}", run.report);
}

#[test]
fn one_stream_has_three_qualities_at_once() {
    let clip = clip(96);
    let links = [(Quality::All, 400), (Quality::Reference, 250), (Quality::Intra, 100)];
    let runs = play(&clip, &links, [0, 1000]);
    let all = clip.frames().len() as u64;
    assert_eq!(runs[0].came.iter().sum::<u64>(), all);
    assert_eq!(runs[1].shown(), [96, 96, 96, 0]);
    // Only requested frames are sent, and of those as many as the link can carry.
    let [intra, others @ ..] = runs[2].shown();
    assert!((50..96).contains(&intra) && others == [0; 3], "{intra}");
    assert_eq!(runs[2].sent[Layer::Predicted as usize], Sent::default());
    // Each client gets what it gets alone.
    for (run, link) in runs.iter().zip(links) {
        assert_eq!(run.shown(), play(&clip, &[link], [0, 1000])[0].shown());
    }
}

#[test]
fn a_slow_disk_loses_the_details_of_all() {
    let clip = clip(96);
    // 180 frames per second are requested, and 125 can be read.
    let runs = play(&clip, &[(Quality::All, 2000); 3], [8_000_000, 1000]);
    for run in &runs {
        let parts = run.unsent();
        assert!(parts.is_sorted_by(|a, b| *a <= b + 0.02), "{parts:?}");
        assert!(parts[0] == 0.0 && parts[3] > 0.3, "{parts:?}");
    }
    let shown: Vec<_> = runs.iter().map(|run| run.report.total().shown as f64).collect();
    assert!(crate::jain(&shown) > 0.999, "{shown:?}");
}

#[test]
fn a_stream_of_long_units_is_streamed_too() {
    let clip = Arc::new(Clip::parse(made::chained(120, 60)).unwrap());
    let run = &play(&clip, &[(Quality::All, 140)], [0, 1000])[0];
    let parts = run.unsent();
    assert!(parts[0] == 0.0 && parts[3] > 0.1, "{parts:?}");
    assert!(run.report.layer(Layer::Predicted).shown > 0, "{}", run.report);
}

#[test]
fn what_a_server_that_is_gone_has_sent_is_played() {
    let clip = clip(48);
    let cpu = Cpu::new(START_NS, 100);
    let mut link = Link::new(&clip, Quality::All, 250, [0, 1000], &cpu);
    let mut events = VirtualLoop::new(cpu.clone());
    let mut cut = Cut { link: &mut link, at_ns: START_NS + 2_500_000_000, is_cut: false };
    events.run(&mut [&mut cut], u64::MAX);
    let report = link.player.report();
    assert!(link.player.is_over() && link.player.held_bytes() == 0);
    // The player has not waited for missing frames, but shown those that had arrived for the
    // following window.
    assert!(cpu.now_ns() < START_NS + 4_000_000_000, "{}", cpu.now_ns());
    assert!((60..200).contains(&report.total().shown), "{report}");
}

/// A link that fails at some time.
struct Cut<'a> {
    link: &'a mut Link,
    at_ns: u64,
    is_cut: bool,
}

impl Program for Cut<'_> {
    fn start(&mut self, timeline: &mut dyn Timeline) {
        self.link.start(timeline);
    }

    fn run(&mut self, job: Job, timeline: &mut dyn Timeline) {
        if self.is_cut && (job == CARRIED || job == READ) {
            return;
        }
        if timeline.now_ns() >= self.at_ns && !self.is_cut {
            self.is_cut = true;
            self.link.player.cut(timeline);
        }
        self.link.run(job, timeline);
    }
}
