//! Runs programs on a real event loop.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use antiphon_runtime::event_loop::{Context, Event, EventId, EventLoop, Wait};

use crate::program::{Job, Program, Timeline};

/// A program that runs on an [`EventLoop`]. The loop counts its events by the names of their
/// [acts](crate::program::Act::name). Copies refer to the same program.
///
/// ```
/// use std::sync::Arc;
///
/// use antiphon_coop::event_loop::Loop;
/// use antiphon_player::decode::{Costs, Synthetic, spin};
/// use antiphon_player::{Clip, Headless, Hosted, Options, Player, made};
///
/// let clip = Arc::new(Clip::parse(made::layered(4, 120)).unwrap());
/// let decoder = Synthetic::new(Costs::by_size(&clip, 300_000).unwrap(), spin);
/// let mut events = Loop::new()?;
/// let player = Hosted::start(
///     &mut events,
///     Player::new(clip, decoder, Headless, Options::default()),
/// );
/// let _ = events.run();
/// println!("{}", player.program().report());
/// # assert!(player.program().is_over());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Hosted<P>(Rc<Host<P>>);

struct Host<P> {
    program: RefCell<P>,
    events: RefCell<HashMap<Job, EventId>>,
}

impl<P> Clone for Hosted<P> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<P: Program + 'static> Hosted<P> {
    /// Makes `events` start the program when the loop runs, before all events that are not due.
    pub fn start<W: Wait>(events: &mut EventLoop<W>, program: P) -> Self {
        let hosted = Self::of(program);
        let starts = hosted.clone();
        let begin =
            move |context: &mut Context<'_, W>| starts.with(context, |p, view| p.start(view));
        events.submit(Event::timer(W::now_ns(), begin).named("start"));
        hosted
    }

    /// Starts a program immediately, from within an event.
    pub(crate) fn begin<W: Wait>(context: &mut Context<'_, W>, program: P) -> Self {
        let hosted = Self::of(program);
        hosted.with(context, |program, view| program.start(view));
        hosted
    }

    fn of(program: P) -> Self {
        let (program, events) = (RefCell::new(program), RefCell::new(HashMap::new()));
        Self(Rc::new(Host { program, events }))
    }

    /// Calls `act` on the program, from within an event of another program.
    pub(crate) fn with<W: Wait, R>(
        &self,
        context: &mut Context<'_, W>,
        act: impl FnOnce(&mut P, &mut dyn Timeline) -> R,
    ) -> R {
        act(&mut self.0.program.borrow_mut(), &mut View { context, hosted: self })
    }

    /// The program.
    ///
    /// # Panics
    ///
    /// If the program is running: when called from its own screen, for example.
    pub fn program(&self) -> Ref<'_, P> {
        self.0.program.borrow()
    }

    fn run<W: Wait>(&self, job: Job, context: &mut Context<'_, W>) {
        self.0.events.borrow_mut().remove(&job);
        self.with(context, |program, view| program.run(job, view));
    }
}

/// The loop as a program sees it.
struct View<'a, 'c, W: Wait, P> {
    context: &'a mut Context<'c, W>,
    hosted: &'a Hosted<P>,
}

impl<W: Wait, P: Program + 'static> View<'_, '_, W, P> {
    fn replace(&mut self, job: Job, id: EventId) {
        if let Some(before) = self.hosted.0.events.borrow_mut().insert(job, id) {
            self.context.cancel(before);
        }
    }
}

impl<W: Wait, P: Program + 'static> Timeline for View<'_, '_, W, P> {
    fn now_ns(&self) -> u64 {
        self.context.now_ns()
    }

    fn until_ns(&self) -> Option<u64> {
        Some(self.context.until_ns())
    }

    fn timer(&mut self, release_ns: u64, job: Job) {
        let hosted = self.hosted.clone();
        let run = move |context: &mut Context<'_, W>| hosted.run(job, context);
        let id = self.context.submit(Event::timer(release_ns, run).named(job.act.name()));
        self.replace(job, id);
    }

    fn best_effort(&mut self, importance: u64, job: Job) {
        let hosted = self.hosted.clone();
        let run = move |context: &mut Context<'_, W>| hosted.run(job, context);
        let id = self.context.submit(Event::best_effort(importance, run).named(job.act.name()));
        self.replace(job, id);
    }

    fn cancel(&mut self, job: Job) {
        let id = self.hosted.0.events.borrow_mut().remove(&job);
        if let Some(id) = id {
            self.context.cancel(id);
        }
    }
}
