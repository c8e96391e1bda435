//! Cisco's OpenH264 as a system library: `libopenh264-7` of Debian 12, or a later one.
//!
//! Its decoder supports B-pyramids, and puts each picture out as soon as it is decoded. It refuses
//! a frame when a reference frame before it is missing, even one from which nothing is predicted;
//! hence the meaning of `needs` in [`Frame`](crate::clip::Frame).

use std::collections::HashMap;

use openh264::OpenH264API;
use openh264::decoder::{Decoder, DecoderConfig};
use openh264::formats::YUVSource;

use super::{Decode, Progress, UnitId};
use crate::picture::Picture;
use crate::{Clip, Error};

/// Names of the library versions whose decoder interface matches the bindings: 2.3 and 2.4 have the
/// first, 2.5 and 2.6 the second.
const NAMES: [&str; 2] = ["libopenh264.so.8", "libopenh264.so.7"];

/// Cisco's decoder: one instance for each unit in flight.
pub struct OpenH264 {
    name: &'static str,
    free: Vec<Decoder>,
    busy: HashMap<UnitId, Decoder>,
}

impl OpenH264 {
    /// Loads the library, which the system's loader finds.
    ///
    /// # Errors
    ///
    /// [`Error::NoDecoder`] if it is not installed, or can't create a decoder.
    pub fn load() -> Result<Self, Error> {
        let mut said = String::new();
        for name in NAMES {
            match new_decoder(name) {
                Ok(decoder) => {
                    return Ok(Self { name, free: vec![decoder], busy: HashMap::new() });
                }
                Err(error) => said = error,
            }
        }
        Err(Error::NoDecoder(said))
    }

    /// Passes the parameters of `clip` to a decoder, for streams that contain them only once.
    fn open(&mut self, clip: &Clip) -> Result<Decoder, String> {
        let mut decoder = match self.free.pop() {
            Some(decoder) => decoder,
            None => new_decoder(self.name)?,
        };
        if !clip.head().is_empty() {
            decoder.decode(clip.head()).map_err(|error| error.to_string())?;
        }
        Ok(decoder)
    }
}

/// Copies the rows of a plane, without the padding after each.
fn plane(bytes: &[u8], stride: usize, width: usize, height: usize) -> Vec<u8> {
    let mut plane = Vec::with_capacity(width * height);
    for row in bytes.chunks(stride).take(height) {
        plane.extend_from_slice(&row[..width]);
    }
    plane
}

fn new_decoder(name: &str) -> Result<Decoder, String> {
    // SAFETY: the library of this name has the interface that the bindings are made from (the
    // decoder's part of `codec_api.h` and `codec_app_def.h` is the same in all of its versions),
    // and the system's loader finds the one for this architecture.
    let library = unsafe { OpenH264API::from_blob_path_unchecked(name) };
    let library = library.map_err(|error| error.to_string())?;
    Decoder::with_api_config(library, DecoderConfig::new()).map_err(|error| error.to_string())
}

impl Decode for OpenH264 {
    fn decode(&mut self, clip: &Clip, frame: usize, pass: u64) -> Result<Progress, Error> {
        let lost = |said: String| Error::Decoder(frame, said);
        let id = UnitId { pass, unit: clip.frames()[frame].unit };
        if !self.busy.contains_key(&id) {
            let decoder = self.open(clip).map_err(lost)?;
            self.busy.insert(id, decoder);
        }
        let decoder = self.busy.get_mut(&id).ok_or_else(|| lost("no decoder".to_owned()))?;
        let decoded = decoder.decode(clip.coded(frame)).map_err(|error| lost(error.to_string()))?;
        let decoded = decoded.ok_or_else(|| lost("there is no picture in it".to_owned()))?;
        let (width, height) = decoded.dimensions();
        let (of_luma, of_blue, of_red) = decoded.strides();
        Ok(Progress::Done(Picture {
            width,
            height,
            luma: plane(decoded.y(), of_luma, width, height),
            chroma: [
                plane(decoded.u(), of_blue, width / 2, height / 2),
                plane(decoded.v(), of_red, width / 2, height / 2),
            ],
        }))
    }

    fn close(&mut self, _: &Clip, unit: UnitId) {
        // The first frame of its next unit resets the decoder.
        self.free.extend(self.busy.remove(&unit));
    }

    fn name(&self) -> String {
        format!("OpenH264 ({})", self.name)
    }
}
