//! Several loops, each on its own thread, for the events of one program that uses several CPUs.

use std::fmt;
use std::io;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use antiphon_runtime::event_loop as generic;

use super::{Context, Files, Handle, Loop, Stats};

/// Submits coloured events: see [`generic::Colours`].
pub type Colours = generic::Colours<Files>;

/// Several loops, each on a thread. Coloured events are called on any of them; events of one colour
/// are called one at a time, in their order.
///
/// ```
/// use std::sync::mpsc;
/// use antiphon_coop::event_loop::{Event, Loops, now_ns};
///
/// let loops = Loops::start(2)?;
/// // A timer is a loop's own, and is first there.
/// loops.handle(0).submit(Event::timer(now_ns() + 1_000_000, |_| println!("on time")))?;
/// // Two connections: what is done for one is done in order, and beside the other.
/// let (sender, receiver) = mpsc::channel();
/// for number in 0..6 {
///     let sender = sender.clone();
///     loops.submit(number % 2, 0, move |_| sender.send(number).expect("it waits"));
/// }
/// let mut done: Vec<_> = (0..6).map(|_| receiver.recv().expect("it is sent")).collect();
/// done.retain(|number| number % 2 == 0);
/// assert_eq!(done, [0, 2, 4]);
/// loops.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If the callback of a coloured event panics, its loop ends, and the other loops serve the rest.
/// The loops also stop when this value is dropped.
pub struct Loops {
    colours: Colours,
    handles: Vec<Handle>,
    threads: Vec<JoinHandle<Vec<Stats>>>,
}

impl Loops {
    /// Starts `loops` loops. Blocks until they run.
    ///
    /// # Errors
    ///
    /// If there are too many threads or open files.
    ///
    /// # Panics
    ///
    /// If `loops` is 0.
    pub fn start(loops: usize) -> io::Result<Self> {
        let mut all =
            Self { colours: Colours::new(loops), handles: Vec::new(), threads: Vec::new() };
        for number in 0..loops {
            let (tell, told) = mpsc::sync_channel(1);
            let colours = all.colours.clone();
            let serve = move || {
                let made = Loop::new().map(|mut events| {
                    colours.join(number, &mut events);
                    events
                });
                let mut events = match made {
                    Ok(events) => events,
                    Err(error) => {
                        // The caller that started this thread waits for that message.
                        let _ = tell.send(Err(error));
                        return Vec::new();
                    }
                };
                let _ = tell.send(Ok(events.handle()));
                // The loop runs until it is stopped.
                let _ = events.run();
                events.stats().to_vec()
            };
            let thread = thread::Builder::new().name(format!("antiphon-loop{number}"));
            all.threads.push(thread.spawn(serve)?);
            let handle = told.recv().unwrap_or_else(|_| Err(io::Error::other("it has ended")))?;
            all.handles.push(handle);
        }
        Ok(all)
    }

    /// See [`generic::Colours::submit`].
    pub fn submit<F>(&self, colour: u64, importance: u64, event: F)
    where
        F: FnOnce(&mut Context<'_>) + Send + 'static,
    {
        self.colours.submit(colour, importance, event);
    }

    /// See [`generic::Colours::submit_in_steps`].
    pub fn submit_in_steps<F>(&self, colour: u64, importance: u64, event: F)
    where
        F: FnMut(&mut Context<'_>) -> Option<u64> + Send + 'static,
    {
        self.colours.submit_in_steps(colour, importance, event);
    }

    /// Returns a handle that submits coloured events, for other threads and for events that submit
    /// more.
    #[must_use]
    pub fn colours(&self) -> Colours {
        self.colours.clone()
    }

    /// Returns a handle to loop `number`, for its timers and events that are not coloured.
    ///
    /// # Panics
    ///
    /// If there is no loop of that number.
    #[must_use]
    pub fn handle(&self, number: usize) -> &Handle {
        &self.handles[number]
    }

    /// Stops all loops, each after its current callback, and waits for them. Returns the figures of
    /// the events of each loop. Events that wait are dropped.
    ///
    /// # Panics
    ///
    /// If a callback has panicked, with its panic.
    pub fn stop(mut self) -> Vec<Vec<Stats>> {
        self.end().into_iter().map(|ended| ended.unwrap_or_else(|why| resume_unwind(why))).collect()
    }

    fn end(&mut self) -> Vec<thread::Result<Vec<Stats>>> {
        for handle in &self.handles {
            // A loop that no longer exists has stopped.
            let _ = handle.stop();
        }
        self.threads.drain(..).map(JoinHandle::join).collect()
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        // The thread of a panicked callback has printed the panic.
        drop(self.end());
    }
}

impl fmt::Debug for Loops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loops").field("loops", &self.threads.len()).finish_non_exhaustive()
    }
}
