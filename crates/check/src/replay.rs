//! Executions as texts, from which they can be replayed.
//!
//! A text lists the events in the order in which they took place, and the thread whose next step
//! failed: `0s 1w0+1 2r0@1.1 2x0+2 !2`. Each kind has a letter: `s` start, `r` read (location `@`
//! source), `w` write (location `+` place in its modification order so far), `x` write of a
//! read-modify-write, `f` `a` `l` `b` fence (sequentially consistent, acquire, release, both), `h`
//! heavy fence, `i` light one, `t` timeout, `c` choice. A capital `R` is a read that gave up
//! because nothing else could happen; `q` and `v` are the read and the write of a `store_unless`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::clock::{Id, SLOTS};
use crate::execution::Execution;
use crate::graph::{Event, Graph, Kind, What};

/// The execution as a text.
pub(crate) fn word(execution: &Execution) -> String {
    let mut text = String::new();
    let mut so_far = Vec::<Event>::new();
    for &stamp in &execution.order {
        let event = execution.graph.events[stamp as usize];
        // Writing to a string can't fail.
        let _ = write!(text, "{}{} ", event.id.thread, letter(&event));
        text.pop();
        let location = event.location;
        let _ = match event.kind {
            Kind::Read => write!(text, "{location}@{}", event.from),
            Kind::Write => {
                let earlier = so_far.iter().filter(|other| {
                    other.is_write() && other.location == location && other.rank < event.rank
                });
                write!(text, "{location}+{}", earlier.count() + 1)
            }
            Kind::Choice(_) => write!(text, "{}", event.value),
            _ => Ok(()),
        };
        text.push(' ');
        so_far.push(event);
    }
    let _ = write!(text, "!{}", execution.current);
    text
}

fn letter(event: &Event) -> char {
    match (event.kind, event.order) {
        (Kind::Start, _) => 's',
        (Kind::Read, _) if event.section => 'q',
        (Kind::Read, _) if event.forced => 'R',
        (Kind::Read, _) => 'r',
        (Kind::Write, _) if event.section => 'v',
        (Kind::Write, _) if event.exclusive => 'x',
        (Kind::Write, _) => 'w',
        (Kind::Fence, Ordering::Acquire) => 'a',
        (Kind::Fence, Ordering::Release) => 'l',
        (Kind::Fence, Ordering::AcqRel) => 'b',
        (Kind::Fence, _) => 'f',
        (Kind::Heavy, _) => 'h',
        (Kind::Light, _) => 'i',
        (Kind::Timeout, _) => 't',
        (Kind::Choice(_), _) => 'c',
    }
}

/// Parses a text: returns its graph, and the thread to continue with.
pub(crate) fn parse(word: &str) -> Result<(Graph, Option<usize>), String> {
    let mut graph = Graph::default();
    let mut counts = [0_u16; SLOTS];
    let mut last = None;
    for token in word.split_whitespace() {
        let bad = || format!("not a replay text: {token}");
        if let Some(thread) = token.strip_prefix('!') {
            last = Some(thread.parse().map_err(|_| bad())?);
            continue;
        }
        let at = token.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(bad)?;
        let thread: u16 = token[..at].parse().map_err(|_| bad())?;
        let count = counts.get_mut(usize::from(thread)).ok_or_else(bad)?;
        *count += 1;
        let id = Id { thread, index: *count };
        let event = parse_event(id, token.as_bytes()[at], &token[at + 1..]).ok_or_else(bad)?;
        if event.is_write() {
            graph.make_room(event.location, event.rank);
        }
        graph.events.push(event);
    }
    Ok((graph, last))
}

fn parse_event(id: Id, letter: u8, rest: &str) -> Option<Event> {
    let (kind, order) = match letter {
        b's' => (Kind::Start, Ordering::Relaxed),
        b'r' | b'R' | b'q' => (Kind::Read, Ordering::Relaxed),
        b'w' | b'x' | b'v' => (Kind::Write, Ordering::Relaxed),
        b'a' => (Kind::Fence, Ordering::Acquire),
        b'l' => (Kind::Fence, Ordering::Release),
        b'b' => (Kind::Fence, Ordering::AcqRel),
        b'f' => (Kind::Fence, Ordering::SeqCst),
        b'h' => (Kind::Heavy, Ordering::SeqCst),
        b'i' => (Kind::Light, Ordering::Relaxed),
        b't' => (Kind::Timeout, Ordering::Relaxed),
        b'c' => (Kind::Choice(What::Model), Ordering::Relaxed),
        _ => return None,
    };
    let mut event = Event::new(id, kind, order);
    event.forced = matches!(letter, b'R' | b't');
    event.exclusive = letter == b'x';
    event.section = matches!(letter, b'q' | b'v');
    match kind {
        Kind::Read => {
            let (location, from) = rest.split_once('@')?;
            let (thread, index) = from.split_once('.')?;
            event.location = location.parse().ok()?;
            event.from = Id { thread: thread.parse().ok()?, index: index.parse().ok()? };
        }
        Kind::Write => {
            let (location, rank) = rest.split_once('+')?;
            event.location = location.parse().ok()?;
            event.rank = rank.parse().ok()?;
        }
        Kind::Choice(_) => event.value = rest.parse().ok()?,
        _ => {}
    }
    Some(event)
}
