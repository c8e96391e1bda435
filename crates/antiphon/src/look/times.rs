//! The part of the introspection answer about time, as JSON: hogs, and the latency of all tasks.

use std::fmt::Display;
use std::panic::Location;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};

use super::text::{array, fields, frame_object, object, or_null, string};
use crate::observe::{Frame, Latency, Part, Recording, Spawned, Timed, Times, users};
use crate::pool::Hog;

/// Number of places that have spawned tasks which are reported one by one; the others are reported
/// as a sum.
const PLACES: usize = 32;
/// Number of tasks that are reported one by one.
const WORST: usize = 16;

/// Formats the hogs, the latest first. `hogs` has the oldest first.
pub(super) fn hogs(hogs: &[Hog]) -> String {
    array(hogs.iter().rev().map(hog))
}

fn hog(Hog { thread, seen, ago, trace }: &Hog) -> String {
    let frames = trace.as_ref().map(|trace| trace.telling());
    let user = frames.as_ref().and_then(|frames| caller(frames)).map(frame_object);
    let frames = frames.map(|frames| array(frames.iter().map(frame_object)));
    object(&[
        ("thread", &string(thread)),
        ("for_ms", &seen.as_millis()),
        ("ago_ms", &or_null((!ago.is_zero()).then_some(ago.as_millis()))),
        ("user", &or_null(user)),
        ("frames", &or_null(frames)),
    ])
}

/// Returns the frame of the user's function that a task was in, or that has called the function
/// which the task was in, for example a C function that reads the clock. A C function has no
/// module, nor has any function of a program that has only line tables.
fn caller(frames: &[Frame]) -> Option<&Frame> {
    let first = frames.iter().position(|frame| frame.name.contains("::"));
    users(&frames[first.unwrap_or(0)..]).or_else(|| users(frames))
}

/// Formats the parts of the time of a pool's tasks.
pub(super) fn latency(recording: &Recording) -> String {
    let now_ns = Linux::now(Clock::Monotonic);
    let ended = recording.tasks.iter().filter(|task| task.is_over);
    let window_ms = ended.map(|task| now_ns.saturating_sub(task.until_ns) / 1_000_000).max();
    let all = recording.by_place(0).first().copied().unwrap_or_default();
    let by_place = recording.by_place(PLACES);
    let (each, others) = by_place.split_at(by_place.len().min(PLACES));
    let others = others.first().map(|it| within(&[("places", &it.places)], &sums(it)));
    within(
        &[
            ("window_ms", &or_null(window_ms)),
            (
                "by_place",
                &array(each.iter().map(|it| within(&[("place", &place(it.at))], &sums(it)))),
            ),
            ("others", &or_null(others)),
            ("worst", &array(worst(recording).into_iter().map(timed))),
        ],
        &sums(&all),
    )
}

/// Returns the tasks that were runnable for the longest without running, the longest first.
fn worst(recording: &Recording) -> Vec<&Timed> {
    let mut tasks: Vec<_> = recording.tasks.iter().collect();
    let by = |task: &&Timed| (std::cmp::Reverse(task.delayed_ns()), task.number);
    if tasks.len() > WORST {
        tasks.select_nth_unstable_by_key(WORST, by);
        tasks.truncate(WORST);
    }
    tasks.sort_unstable_by_key(by);
    tasks
}

fn timed(task: &Timed) -> String {
    let age_ns = task.until_ns.saturating_sub(task.sample.ready_ns);
    let parts = Part::ALL.map(|part| key(part, task.spent_ns(part)));
    within(
        &[
            ("number", &task.number),
            ("place", &place(task.spawned_at)),
            ("thread", &string(&task.thread)),
            ("is_fiber", &task.is_fiber),
            ("is_over", &task.is_over),
            ("age_ns", &age_ns),
        ],
        &parts.join(","),
    )
}

/// Formats the fields that sum up all tasks of a place.
fn sums(Spawned { live, delayed_ns, latency, .. }: &Spawned) -> String {
    let Latency { queued, running, waiting, runnable, hogged, .. } = latency;
    let times = |Times { p50_ns, p99_ns, max_ns, .. }: &Times| {
        object(&[("p50", p50_ns), ("p99", p99_ns), ("max", max_ns)])
    };
    let parts = Part::ALL.into_iter().zip([queued, running, waiting, runnable, hogged]);
    let parts = parts.map(|(part, of)| key(part, times(of)));
    let counts = fields(&[
        ("recorded", &queued.recorded),
        ("tasks", &queued.tasks),
        ("live", live),
        ("delayed_ns", delayed_ns),
    ]);
    std::iter::once(counts).chain(parts).collect::<Vec<_>>().join(",")
}

fn key(part: Part, value: impl Display) -> String {
    format!("\"{}_ns\":{value}", part.name())
}

fn place(at: Option<&Location<'_>>) -> String {
    or_null(at.map(|at| string(&at.to_string())))
}

/// Formats a JSON object of these fields, and of `others`, which are JSON already.
fn within(some: &[(&str, &dyn Display)], others: &str) -> String {
    format!("{{{},{others}}}", fields(some))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_calls_c_is_named_in_its_place() {
        let named = |names: &[&str]| {
            let frame = |name: &&str| Frame { name: (*name).to_owned(), place: None };
            let frames: Vec<_> = names.iter().map(frame).collect();
            caller(&frames).map(|frame| frame.name.clone())
        };
        let user = Some("bank::sum".to_owned());
        assert_eq!(named(&["0x7f25", "clock_gettime", "bank::sum", "bank::main"]), user);
        assert_eq!(named(&["clock_gettime", "antiphon::event::Latch::wait", "bank::sum"]), user);
        // As in a C program, or in one with bare names.
        assert_eq!(named(&["sum", "main"]), Some("sum".to_owned()));
        assert_eq!(named(&["sum", "antiphon::pool::join"]), Some("sum".to_owned()));
        assert_eq!(named(&[]), None);
    }
}
