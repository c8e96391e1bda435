//! Requests for lines: begun, queued, picked and ended, in simulated time.

use crate::Arbitration;
use crate::costs::{Costs, hit_ns};
use crate::events::Event;
use crate::line::{By, Kind, LineId, Request, Served, Source};
use crate::random::Random;
use crate::world::World;

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Issued {
    /// The request is done at that time; no event will report it.
    At(u64),
    /// The request has the line until then; its issuer schedules the end or ends it.
    Alone(u64),
    /// The request waits for the line.
    Queued,
}

impl World {
    /// The cost of an access that hits, in whole nanoseconds: rounded up or down so that the mean
    /// is the machine's figure.
    pub(crate) fn hit_ns(&mut self, thread: usize, kind: Kind) -> u64 {
        let (ns, machine) = (hit_ns(&self.machine, kind), &self.machine);
        let rest_ps = &mut self.threads[thread].rest_ps;
        *rest_ps += match kind {
            Kind::ReadModifyWrite => machine.rmw_rest_ps,
            Kind::Load | Kind::Store => machine.hit_rest_ps,
        };
        let whole_ns = (*rest_ps + 500).div_euclid(1_000);
        *rest_ps -= whole_ns * 1_000;
        ns.saturating_add_signed(whole_ns)
    }

    /// Requests a line, now.
    pub(crate) fn request(&mut self, label: LineId, core: u32, kind: Kind, by: By) -> Issued {
        let line = self.lines.get_mut(label);
        if line.hits(core, kind, self.now_ns) {
            self.counts.hits += 1;
            let took_ns = match by {
                By::Access(thread) => self.hit_ns(thread as usize, kind),
                By::Touch(_) | By::Buffer(_) => hit_ns(&self.machine, kind),
            };
            return Issued::At(self.now_ns + took_ns);
        }
        let request = Request { core, kind, by, passed: 0 };
        if line.is_busy() {
            line.queue.push_back(request);
            return Issued::Queued;
        }
        match self.begin(label, request) {
            Served::At(done_ns) => Issued::At(done_ns),
            Served::Alone(done_ns) => Issued::Alone(done_ns),
        }
    }

    fn begin(&mut self, label: LineId, request: Request) -> Served {
        let Self { machine, distances, links, random, now_ns, .. } = self;
        let mut costs = Costs { machine, distances, links, random, now_ns: *now_ns };
        let (served, source) = self.lines.get_mut(label).begin(request, &mut costs);
        match source {
            Source::Hit => self.counts.hits += 1,
            Source::Local => self.counts.local_transfers += 1,
            Source::Remote => self.counts.remote_transfers += 1,
            Source::Memory => self.counts.memory_reads += 1,
        }
        served
    }

    /// Ends the request that has the line, and begins as many waiting requests as possible.
    pub(crate) fn end_request(&mut self, label: LineId) -> Request {
        let done = self.lines.get_mut(label).end(&self.distances, self.now_ns);
        // LINE-1: until a request has the line exclusively, or none is left.
        while let Some(next) = self.pick(label) {
            match self.begin(label, next) {
                Served::At(done_ns) => self.is_done_at(next.by, done_ns),
                Served::Alone(done_ns) => {
                    self.events.push(done_ns, Event::Served { line: label });
                    break;
                }
            }
        }
        done
    }

    /// Schedules the end of a request that does not have its line exclusively.
    fn is_done_at(&mut self, by: By, done_ns: u64) {
        match by {
            By::Access(thread) => self.resume_at(thread as usize, done_ns),
            By::Touch(thread) => self.touched(thread, done_ns),
            By::Buffer(thread) => self.events.push(done_ns, Event::Stored { thread }),
        }
    }

    fn pick(&mut self, label: LineId) -> Option<Request> {
        let Self { model, random, lines, machine, .. } = self;
        let line = lines.get_mut(label);
        let place = match model.arbitration {
            Arbitration::Fifo => 0,
            Arbitration::Random => any(line.queue.len(), random),
            Arbitration::Nearest { bypass } => {
                // No request has been passed more often than the oldest, which came before all
                // others.
                if line.queue.front()?.passed >= bypass {
                    0
                } else {
                    let holder = line.holder();
                    let far = |to: u32| holder.map_or(0, |from| machine.transfer_ns(from, to));
                    let places = line.queue.iter().enumerate();
                    places.min_by_key(|(_, request)| far(request.core))?.0
                }
            }
        };
        line.queue.iter_mut().take(place).for_each(|request| request.passed += 1);
        line.queue.remove(place)
    }
}

fn any(of: usize, random: &mut Random) -> usize {
    if of < 2 { 0 } else { random.up_to(of as u64 - 1) as usize }
}
