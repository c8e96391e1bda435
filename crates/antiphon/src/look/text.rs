//! The answer to an introspection request, as JSON. The keys are listed in the module `look`.

use std::fmt::{Display, Write as _};
use std::process;

use antiphon_runtime::sched::{State, Working};

use super::serve::Known;
use super::{VERSION, times};
use crate::fiber::census::{Frame, Hosted, Place};

/// Maximum number of places that are reported.
const PLACES: usize = 256;

/// Formats an error as an answer.
pub(super) fn error(what: &str) -> String {
    object(&[("antiphon_look", &VERSION), ("error", &string(what))])
}

/// Formats the answer about all pools.
pub(super) fn pools(pools: &[Known]) -> String {
    let pools = array(pools.iter().map(pool));
    object(&[("antiphon_look", &VERSION), ("pid", &process::id()), ("pools", &pools)])
}

fn pool(Known { look, times, seen }: &Known) -> String {
    let queued = |worker: &Working| look.queued.get(worker.seat).copied();
    let workers = look.workers.iter().zip(times).map(|(worker, time)| {
        let time = time.map(|time| time.as_millis());
        // The queue stays with the seat.
        let queued = queued(worker).filter(|_| worker.state != State::Away).unwrap_or(0);
        let state = string(name(worker.state));
        let for_ms = or_null(time);
        object(&[
            ("worker", &worker.number),
            ("seat", &worker.seat),
            ("state", &state),
            ("for_ms", &for_ms),
            ("queued", &queued),
        ])
    });
    // A worker that still runs without a seat counts, because no other thread may update its time
    // any more.
    let goes_on = look.workers.iter().zip(times).filter(|(it, _)| it.state == State::Away);
    let goes_on = goes_on.filter_map(|(it, time)| it.since_ns.and(*time)).max();
    let goes_on_ns = goes_on.map_or(0, |time| time.as_nanos() as u64);
    let census = seen.census.as_ref();
    let hosts = census.into_iter().flat_map(|census| &census.threads).map(host);
    let places = census.map(|census| census.places()).unwrap_or_default();
    let stats = &seen.stats;
    object(&[
        ("name", &string(&seen.name)),
        ("threads", &seen.threads),
        ("spares", &seen.spares),
        ("workers", &array(workers)),
        ("shared", &look.shared),
        ("policy_has_tasks", &look.policy_has_tasks),
        ("tasks", &stats.tasks),
        ("refused", &stats.refused),
        ("searches", &stats.searches),
        ("steals", &stats.steals),
        ("rests", &stats.rests),
        ("hogs", &stats.hogs),
        ("longest_ns", &stats.longest_ns.max(goes_on_ns)),
        ("fibers", &census.is_some()),
        ("hosts", &array(hosts)),
        ("places", &array(places.iter().take(PLACES).map(place))),
        ("latest_hogs", &times::hogs(&seen.hogs)),
        ("latency", &or_null(seen.recording.as_ref().map(times::latency))),
    ])
}

fn name(state: State) -> &'static str {
    match state {
        State::Rests => "rests",
        State::Searches => "searches",
        State::Runs => "runs",
        State::Away => "away",
    }
}

fn host(Hosted { thread, answer, busy }: &Hosted) -> String {
    let answer = answer.as_ref();
    let busy = busy.as_ref().map(|trace| array(trace.telling().iter().map(frame_object)));
    object(&[
        ("thread", &string(thread)),
        ("ready", &or_null(answer.map(|answer| answer.ready))),
        ("waiting", &or_null(answer.map(|answer| answer.waiting))),
        ("with_deadline", &or_null(answer.map(|answer| answer.with_deadline))),
        ("for_files", &or_null(answer.map(|answer| answer.for_files))),
        ("busy", &or_null(busy)),
    ])
}

fn place(place: &Place) -> String {
    let named = |frame: Option<&Frame>| or_null(frame.map(frame_object));
    object(&[
        ("count", &place.count),
        ("has_deadline", &place.has_deadline),
        ("by", &named(place.by())),
        ("user", &named(place.user())),
        ("frames", &array(place.frames.iter().map(frame_object))),
    ])
}

pub(super) fn frame_object(Frame { name, place }: &Frame) -> String {
    let place = or_null(place.as_ref().map(|place| string(place)));
    object(&[("name", &string(name)), ("place", &place)])
}

/// Formats a JSON object of values that are JSON when displayed.
pub(super) fn object(some: &[(&str, &dyn Display)]) -> String {
    format!("{{{}}}", fields(some))
}

/// Formats the fields of a JSON object, without its braces.
pub(super) fn fields(some: &[(&str, &dyn Display)]) -> String {
    let fields = some.iter().map(|(key, value)| format!("\"{key}\":{value}"));
    fields.collect::<Vec<_>>().join(",")
}

pub(super) fn array(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

pub(super) fn or_null(value: Option<impl Display>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

pub(super) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control < ' ' => {
                write!(quoted, "\\u{:04x}", u32::from(control)).expect("memory");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_can_be_read_back() {
        assert_eq!(string("a \"b\"\\\n\u{1}ü"), "\"a \\\"b\\\"\\\\\\u000a\\u0001ü\"");
        let nothing: Option<u32> = None;
        assert_eq!(object(&[("one", &or_null(nothing)), ("two", &2)]), "{\"one\":null,\"two\":2}");
        assert_eq!(array([].into_iter()), "[]");
        assert_eq!(error("it"), "{\"antiphon_look\":1,\"error\":\"it\"}");
    }
}
