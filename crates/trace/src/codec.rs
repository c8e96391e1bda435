//! Encoding and decoding of events. The table of codes is in [`file`](mod@crate::file).

use crate::event::{Event, What};

/// The two flags of an event.
const FIRST: u8 = 32;
const SECOND: u8 = 64;

/// Appends a number in LEB128.
pub(crate) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The unread rest of a payload.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl Rest<'_> {
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// Reads a number in LEB128; returns `None` if it is cut off, or has more than 64 bits.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 127);
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn place(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }
}

/// Appends an event that was `since_ns` after the previous one.
pub(crate) fn encode(bytes: &mut Vec<u8>, since_ns: u64, what: What) {
    let flags = |first: bool, second: bool| (u8::from(first) * FIRST) | (u8::from(second) * SECOND);
    let (flags, numbers): (u8, [Option<u64>; 2]) = match what {
        What::Begins | What::Ends => (0, [None; 2]),
        What::Waits { lock, site } => (0, [Some(lock.into()), Some(site.into())]),
        What::Takes { lock, site, shared, tried } => {
            (flags(shared, tried), [Some(lock.into()), Some(site.into())])
        }
        What::GivesUp { lock } | What::Releases { lock } => (0, [Some(lock.into()), None]),
        What::Sleeps { condition, site } => (0, [Some(condition.into()), Some(site.into())]),
        What::Wakes { condition, notified } => {
            (flags(notified, false), [Some(condition.into()), None])
        }
        What::Notifies { condition, all } => (flags(all, false), [Some(condition.into()), None]),
        What::Creates { thread } | What::Joins { thread } | What::Joined { thread } => {
            (0, [Some(thread.into()), None])
        }
        What::Off { blocked_ns, queued_ns } => (0, [Some(blocked_ns), Some(queued_ns)]),
        What::Asked { ns } => (0, [Some(ns), None]),
    };
    bytes.push(what.code() | flags);
    put(bytes, since_ns);
    for number in numbers.into_iter().flatten() {
        put(bytes, number);
    }
}

/// Reads the next event, after an event at `before_ns`; returns `None` if there is no valid event.
pub(crate) fn decode(rest: &mut Rest<'_>, before_ns: u64) -> Option<Event> {
    let head = rest.byte()?;
    let at_ns = before_ns.checked_add(rest.number()?)?;
    let (first, second) = (head & FIRST != 0, head & SECOND != 0);
    let code = head & !(FIRST | SECOND);
    let known = match code {
        4 => true,
        8 | 9 => !second,
        _ => !first && !second,
    };
    if !known {
        return None;
    }
    let what = match code {
        1 => What::Begins,
        2 => What::Ends,
        3 => What::Waits { lock: rest.place()?, site: rest.place()? },
        4 => What::Takes { lock: rest.place()?, site: rest.place()?, shared: first, tried: second },
        5 => What::GivesUp { lock: rest.place()? },
        6 => What::Releases { lock: rest.place()? },
        7 => What::Sleeps { condition: rest.place()?, site: rest.place()? },
        8 => What::Wakes { condition: rest.place()?, notified: first },
        9 => What::Notifies { condition: rest.place()?, all: first },
        10 => What::Creates { thread: rest.place()? },
        11 => What::Joins { thread: rest.place()? },
        12 => What::Joined { thread: rest.place()? },
        13 => What::Off { blocked_ns: rest.number()?, queued_ns: rest.number()? },
        14 => What::Asked { ns: rest.number()? },
        _ => return None,
    };
    Some(Event { at_ns, what })
}
