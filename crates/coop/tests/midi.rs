//! Tests of the parts of the example `midi`: bytes, running status, the start of each byte, and the
//! port.

#[path = "../examples/midi/line.rs"]
mod line;
#[path = "../examples/midi/port.rs"]
mod port;
#[path = "../examples/midi/wire.rs"]
mod wire;

use std::io::{Read as _, Write as _};

use line::{BAUD, Line, tune};
use port::{Port, open_raw};
use wire::{Decoder, Encoder, Message};

fn decoded(bytes: &[u8]) -> Vec<Message> {
    let mut decoder = Decoder::default();
    bytes.iter().filter_map(|&byte| decoder.decode(byte)).collect()
}

#[test]
fn a_status_is_said_once() {
    let mut encoder = Encoder::default();
    let bytes = [
        (Message::NoteOn(2, 60, 100), &[0x92, 60, 100][..]),
        (Message::NoteOn(2, 64, 100), &[64, 100]),
        // A clock does not end the running status.
        (Message::Clock, &[0xF8]),
        (Message::NoteOn(2, 60, 0), &[60, 0]),
        (Message::NoteOn(3, 60, 1), &[0x93, 60, 1]),
        (Message::NoteOff(3, 60, 64), &[0x83, 60, 64]),
        (Message::Program(3, 7), &[0xC3, 7]),
        (Message::Program(3, 8), &[8]),
        (Message::Control(0, 1, 127), &[0xB0, 1, 127]),
    ];
    let mut all = Vec::new();
    for (message, expected) in bytes {
        let said = encoder.encode(message);
        assert_eq!(said, expected, "{message:?}");
        all.extend(said);
    }
    assert_eq!(decoded(&all), bytes.map(|(message, _)| message));
}

#[test]
fn a_clock_may_stand_within_a_message() {
    let messages = [Message::Clock, Message::NoteOn(0, 60, 5), Message::NoteOn(0, 61, 6)];
    assert_eq!(decoded(&[0x90, 60, 0xF8, 5, 61, 6]), messages);
}

#[test]
fn what_is_of_no_message_is_passed_over() {
    // Data first; a system message, which ends the running status; a status alone.
    let bytes = [5, 6, 0x90, 60, 0xF0, 1, 2, 3, 0xF7, 60, 5, 0x90, 0xB1, 7, 8, 0xD0, 9, 9, 0xFE];
    assert_eq!(decoded(&bytes), [Message::Control(1, 7, 8)]);
}

#[test]
fn bytes_begin_when_they_are_due_and_the_line_is_free() {
    let mut line = Line::new(31_250);
    assert_eq!((line.byte_ns(), line.next_ns()), (320_000, None));
    line.put(1_000_000, Message::NoteOn(0, 60, 100));
    line.put(1_100_000, Message::Clock);
    line.put(9_000_000, Message::Clock);
    let mut begun = Vec::new();
    while let Some(at_ns) = line.next_ns() {
        // The second byte is late: nothing begins before it is over.
        let late_ns = if begun.len() == 1 { 50_000 } else { 0 };
        begun.push((at_ns, line.begin(at_ns + late_ns).expect("a byte")));
    }
    let expected = [
        (1_000_000, 0x90),
        (1_320_000, 60),
        (1_690_000, 100),
        (2_010_000, 0xF8),
        (9_000_000, 0xF8),
    ];
    assert_eq!(begun, expected);
    assert!(line.begin(0).is_none());
    assert_eq!(Line::new(*BAUD.end()).byte_ns(), 10_000);
}

#[test]
fn messages_stay_in_order() {
    let mut line = Line::new(1_000_000);
    line.put(5_000, Message::Clock);
    line.put(1_000, Message::Program(0, 1));
    assert_eq!(line.next_ns(), Some(5_000));
    assert_eq!(line.begin(5_000), Some(0xF8));
    assert_eq!(line.next_ns(), Some(15_000));
}

#[test]
fn a_tune_is_in_order_and_fits_the_line() {
    let tune = tune(7, 1_000_000_000);
    assert!(tune.is_sorted_by_key(|(at_ns, _)| *at_ns) && tune[0].0 == 7);
    let mut line = Line::new(31_250);
    tune.iter().for_each(|&(at_ns, message)| line.put(at_ns, message));
    let (mut bytes, mut last_ns) = (Vec::new(), 0);
    while let Some(at_ns) = line.next_ns() {
        bytes.extend(line.begin(at_ns));
        last_ns = at_ns;
    }
    assert_eq!(decoded(&bytes), tune.iter().map(|(_, message)| *message).collect::<Vec<_>>());
    assert!(last_ns < 1_000_000_000, "more than the line carries");
}

#[test]
fn the_port_hands_on_all_bytes_as_they_are() {
    let port = match Port::open() {
        Ok(port) => port,
        Err(error) => return println!("skipped: no pseudo-terminal: {error}"),
    };
    let mut other = open_raw(&port.path).expect("the other end");
    let bytes: Vec<u8> = (0..=255).collect();
    (&port.driver).write_all(&bytes).expect("room");
    let mut read = vec![0; bytes.len()];
    other.read_exact(&mut read).expect("as many");
    assert_eq!(read, bytes);
    let error = open_raw(std::path::Path::new("/dev/null")).expect_err("no terminal");
    assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
}
