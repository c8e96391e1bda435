//! MIDI 1.0 as bytes: messages, running status, and framing (MIDI 1.0 Detailed Specification,
//! "Data Format").

/// A message of one of 16 channels, or a clock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A key goes down: channel, key, velocity.
    NoteOn(u8, u8, u8),
    /// A key goes up: channel, key, velocity.
    NoteOff(u8, u8, u8),
    /// Channel, controller, value.
    Control(u8, u8, u8),
    /// Channel, program.
    Program(u8, u8),
    /// One of 24 in a quarter note; may stand between any two bytes.
    Clock,
}

const NOTE_OFF: u8 = 0x80;
const NOTE_ON: u8 = 0x90;
const CONTROL: u8 = 0xB0;
const PROGRAM: u8 = 0xC0;
const CLOCK: u8 = 0xF8;
/// From this value on a byte is a status.
const STATUS: u8 = 0x80;
/// From this value on a status is of the system.
const SYSTEM: u8 = 0xF0;
/// From this value on a status of the system stands alone, anywhere.
const REAL_TIME: u8 = 0xF8;

/// Makes bytes of messages; leaves out a status that is the last one's.
#[derive(Debug, Default)]
pub struct Encoder {
    status: Option<u8>,
}

impl Encoder {
    /// The bytes of a message, behind those before.
    pub fn encode(&mut self, message: Message) -> Vec<u8> {
        let (status, data) = match message {
            Message::Clock => return vec![CLOCK],
            Message::NoteOn(channel, key, velocity) => (NOTE_ON | channel, vec![key, velocity]),
            Message::NoteOff(channel, key, velocity) => (NOTE_OFF | channel, vec![key, velocity]),
            Message::Control(channel, number, value) => (CONTROL | channel, vec![number, value]),
            Message::Program(channel, program) => (PROGRAM | channel, vec![program]),
        };
        let said = self.status.replace(status) == Some(status);
        (!said).then_some(status).into_iter().chain(data).collect()
    }
}

/// Makes messages of bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    status: Option<u8>,
    first: Option<u8>,
}

impl Decoder {
    /// The message that ends with this byte. What is of no message here is passed over: data
    /// without a status, messages of the system, other statuses.
    pub fn decode(&mut self, byte: u8) -> Option<Message> {
        if byte >= REAL_TIME {
            return (byte == CLOCK).then_some(Message::Clock);
        }
        if byte >= STATUS {
            // A status of the system ends the running status, and the following bytes belong to it.
            self.status = Some(byte).filter(|&byte| byte < SYSTEM);
            self.first = None;
            return None;
        }
        let status = self.status?;
        let channel = status & 0x0F;
        if status & 0xF0 == PROGRAM {
            return Some(Message::Program(channel, byte));
        }
        let Some(first) = self.first.take() else {
            // 0xD0 has one byte of data, and is not made here.
            self.first = Some(byte).filter(|_| status & 0xF0 != 0xD0);
            return None;
        };
        match status & 0xF0 {
            NOTE_ON => Some(Message::NoteOn(channel, first, byte)),
            NOTE_OFF => Some(Message::NoteOff(channel, first, byte)),
            CONTROL => Some(Message::Control(channel, first, byte)),
            _ => None,
        }
    }
}
