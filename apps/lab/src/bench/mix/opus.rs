//! Opus (RFC 6716), by the C library of its authors, where a machine has it: opened at run time, so
//! that the library is not needed to build the command.
//!
//! | | |
//! |---|---|
//! | a frame | 20 ms of one channel at 48 kHz: 960 samples of 16 bits, 1920 bytes |
//! | a packet | 160 bytes, always: 64 kbit/s, as much as G.711 has |
//! | the rest | for voice, and as hard a search as the library has if nothing is said |
//!
//! The decoded sound is close to the original, but not equal, so a frame is checked by its
//! loudness.

use std::f64::consts::TAU;
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute_copy;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// Number of samples of a frame.
pub const SAMPLES: usize = 960;
/// Number of bytes of a packet.
pub const BYTES: usize = 160;
/// Stack for threads that call the library: 64 KiB has been enough for version 1.3.1, but no
/// document promises that.
pub const STACK_BYTES: usize = 256 << 10;

const RATE: i32 = 48_000;
const BITS_PER_S: c_int = 64_000;
// Values of `opus_defines.h`.
const APPLICATION_VOIP: c_int = 2048;
const SET_BITRATE: c_int = 4002;
const SET_VBR: c_int = 4006;

const NAME: &CStr = c"libopus.so.0";

/// The functions of `opus.h` that are called.
pub struct Library {
    encoder_create: unsafe extern "C" fn(i32, c_int, c_int, *mut c_int) -> *mut c_void,
    encoder_ctl: unsafe extern "C" fn(*mut c_void, c_int, ...) -> c_int,
    encode: unsafe extern "C" fn(*mut c_void, *const i16, c_int, *mut u8, i32) -> i32,
    encoder_destroy: unsafe extern "C" fn(*mut c_void),
    decoder_create: unsafe extern "C" fn(i32, c_int, *mut c_int) -> *mut c_void,
    decode: unsafe extern "C" fn(*mut c_void, *const u8, i32, *mut i16, c_int, c_int) -> c_int,
    decoder_destroy: unsafe extern "C" fn(*mut c_void),
}

/// Returns the library, which stays open.
///
/// # Errors
///
/// A message that says how to get the library, if it is missing.
pub fn library() -> Result<&'static Library, String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::open(NAME)).as_ref().map_err(Clone::clone)
}

impl Library {
    fn open(name: &CStr) -> Result<Self, String> {
        let shown = name.to_string_lossy();
        // SAFETY: the name ends in zero; the library has no constructors.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!(
                "opus needs the library {shown}, which is missing; on Debian: apt install libopus0"
            ));
        }
        let find = |name: &CStr| {
            // SAFETY: the handle is that of a library that is never closed, and the name ends in
            // zero.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            let none = || format!("{shown} has no {}", name.to_string_lossy());
            NonNull::new(address).ok_or_else(none)
        };
        /// # Safety
        ///
        /// `F` is the type of a pointer to the function at this address.
        unsafe fn function<F: Copy>(address: NonNull<c_void>) -> F {
            const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
            // SAFETY: both are addresses, and the caller guarantees the type.
            unsafe { transmute_copy(&address) }
        }
        // SAFETY: these are the functions' types in `opus.h`, in all versions from 1.0 on;
        // `opus_int32` is `int` and `opus_int16` `short`.
        unsafe {
            Ok(Self {
                encoder_create: function(find(c"opus_encoder_create")?),
                encoder_ctl: function(find(c"opus_encoder_ctl")?),
                encode: function(find(c"opus_encode")?),
                encoder_destroy: function(find(c"opus_encoder_destroy")?),
                decoder_create: function(find(c"opus_decoder_create")?),
                decode: function(find(c"opus_decode")?),
                decoder_destroy: function(find(c"opus_decoder_destroy")?),
            })
        }
    }

    /// Makes a decoder. Calls of it must come in order, from any thread.
    pub fn decoder(&'static self) -> Decoder {
        // SAFETY: no error is asked for, and the numbers are valid.
        let state = unsafe { (self.decoder_create)(RATE, 1, std::ptr::null_mut()) };
        Decoder { library: self, state: NonNull::new(state).expect("memory for a decoder") }
    }

    /// Makes an encoder. Calls of it must come in order, from any thread.
    pub fn encoder(&'static self) -> Encoder {
        let null = std::ptr::null_mut();
        // SAFETY: no error is asked for, and the numbers are valid.
        let state = unsafe { (self.encoder_create)(RATE, 1, APPLICATION_VOIP, null) };
        let state = NonNull::new(state).expect("memory for an encoder");
        for (what, value) in [(SET_BITRATE, BITS_PER_S), (SET_VBR, 0)] {
            // SAFETY: the state is that of an encoder, and both requests take an `opus_int32`.
            let code = unsafe { (self.encoder_ctl)(state.as_ptr(), what, value) };
            assert_eq!(code, 0, "libopus refuses {what} {value}");
        }
        Encoder { library: self, state }
    }
}

/// Decodes packets to samples.
pub struct Decoder {
    library: &'static Library,
    state: NonNull<c_void>,
}

/// Encodes samples to packets.
pub struct Encoder {
    library: &'static Library,
    state: NonNull<c_void>,
}

// SAFETY: the state is a separate block of memory, not tied to a thread.
unsafe impl Send for Decoder {}
// SAFETY: the state is a separate block of memory, not tied to a thread.
unsafe impl Send for Encoder {}

impl Decoder {
    /// Decodes a packet. Returns `None` if it is not a packet of a frame.
    pub fn decode(&mut self, packet: &[u8]) -> Option<[i16; SAMPLES]> {
        let mut samples = [0; SAMPLES];
        let (state, length) = (self.state.as_ptr(), i32::try_from(packet.len()).ok()?);
        // SAFETY: the state is that of a decoder, and borrowed; both buffers have the given
        // lengths.
        let count = unsafe {
            let to = samples.as_mut_ptr();
            (self.library.decode)(state, packet.as_ptr(), length, to, SAMPLES as c_int, 0)
        };
        (count == SAMPLES as c_int).then_some(samples)
    }
}

impl Encoder {
    /// Encodes a frame as a packet. Returns `None` if the library fails.
    pub fn encode(&mut self, samples: &[i16; SAMPLES]) -> Option<Vec<u8>> {
        let mut packet = vec![0; BYTES];
        // SAFETY: the state is that of an encoder, and borrowed; both buffers have the given
        // lengths.
        let length = unsafe {
            let (state, to) = (self.state.as_ptr(), packet.as_mut_ptr());
            (self.library.encode)(state, samples.as_ptr(), SAMPLES as c_int, to, BYTES as i32)
        };
        packet.truncate(usize::try_from(length).ok()?);
        Some(packet)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the decoder owns the state, and does not use it again.
        unsafe { (self.library.decoder_destroy)(self.state.as_ptr()) }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the encoder owns the state, and does not use it again.
        unsafe { (self.library.encoder_destroy)(self.state.as_ptr()) }
    }
}

/// Amplitude of the tone, in units of a sample.
const LOUD: f64 = 8000.0;
/// Packets of a second.
const PACKETS: usize = 50;
/// Number of first packets whose decoded samples do not have the full loudness yet.
const FIRST: u32 = 4;

/// Returns packet `number` of a speaker that utters a tone for ever; packets repeat each second.
/// The first call takes some 20 ms, and requires the library.
pub fn said(number: u32) -> &'static [u8] {
    static SAID: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    let said = SAID.get_or_init(|| {
        let mut encoder = library().expect("it was looked for before").encoder();
        // After a second, the packets repeat approximately.
        let all = (0..2 * PACKETS).map(|number| encoder.encode(&tone(number)));
        all.skip(PACKETS).map(|packet| packet.expect("a packet of a tone")).collect()
    });
    &said[number as usize % PACKETS]
}

/// Returns whether a frame is as loud as that tone.
pub fn is_tone(number: u32, samples: &[i16; SAMPLES]) -> bool {
    number < FIRST || (0.7..1.4).contains(&(loudness(samples) * 2.0_f64.sqrt() / LOUD))
}

fn tone(number: usize) -> [i16; SAMPLES] {
    let step = TAU * 440.0 / f64::from(RATE);
    std::array::from_fn(|at| (LOUD * (step * (number * SAMPLES + at) as f64).sin()) as i16)
}

fn loudness(samples: &[i16; SAMPLES]) -> f64 {
    let squares = samples.iter().map(|&sample| f64::from(sample).powi(2));
    (squares.sum::<f64>() / SAMPLES as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the library, or prints a message that the test is skipped.
    fn there() -> Option<&'static Library> {
        library().inspect_err(|why| eprintln!("NOT TESTED: {why}")).ok()
    }

    #[test]
    fn what_is_missing_is_told_and_how_to_get_it() {
        let why = Library::open(c"libopus-that-nobody-has.so.0").map(drop);
        assert!(why.is_err_and(|why| why.contains("apt install libopus0")));
        let other = Library::open(c"libc.so.6").map(drop);
        assert_eq!(other, Err("libc.so.6 has no opus_encoder_create".to_owned()));
    }

    #[test]
    fn a_tone_is_as_loud_as_before_and_silence_is_not() {
        let Some(library) = there() else { return };
        let mut decoder = library.decoder();
        for number in 0..3 * PACKETS as u32 {
            let packet = said(number);
            assert_eq!(packet.len(), BYTES, "{number}");
            let back = decoder.decode(packet).expect("a frame");
            assert!(is_tone(number, &back), "{number}: {}", loudness(&back));
        }
        assert!(is_tone(FIRST, &tone(1)) && !is_tone(FIRST, &[0; SAMPLES]));
        assert!(!is_tone(FIRST, &tone(1).map(|it| 2 * it)));
    }

    /// At least half of the energy of a decoder's output is at the input's pitch.
    #[test]
    fn a_mix_comes_back_at_its_pitch() {
        let Some(library) = there() else { return };
        let (mut encoder, mut decoder) = (library.encoder(), library.decoder());
        for number in 0..20 {
            let packet = encoder.encode(&tone(number)).expect("a packet");
            assert_eq!(packet.len(), BYTES);
            let back = decoder.decode(&packet).expect("a frame");
            let at = |hertz: f64| {
                let step = TAU * hertz / f64::from(RATE);
                let along = |turn: fn(f64) -> f64| {
                    let all = back.iter().enumerate();
                    all.map(|(at, &it)| f64::from(it) * turn(step * at as f64)).sum::<f64>()
                };
                along(f64::sin).hypot(along(f64::cos)) / SAMPLES as f64
            };
            // A frame has 8.8 periods of the tone, and 20 of 1 kHz.
            let (here, elsewhere) = (at(440.0), at(1000.0));
            assert!(number < 4 || here > 0.35 * LOUD && elsewhere < 0.1 * LOUD, "{here}");
        }
    }

    #[test]
    fn what_is_no_packet_is_no_frame() {
        let Some(library) = there() else { return };
        assert_eq!(library.decoder().decode(&[0xff; 3]), None);
    }
}
