//! A stored stream: a file whose frames are read one by one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::wire;
use crate::{Clip, Error};

/// A stored stream. The description of its frames is in memory, but not their bytes.
#[derive(Debug)]
pub struct Stored {
    file: File,
    clip: Arc<Clip>,
}

impl Stored {
    /// Opens a byte stream of H.264, and reads it once. Blocks until that is done.
    ///
    /// # Errors
    ///
    /// Those of [`Clip::open`]; also for a frame, or a head, that is too long to be sent.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::file(path))?;
        let clip = Clip::read(path)?;
        if clip.head().len() > wire::MOST_HEAD {
            return Err(Error::Stream(
                "the header before the first frame is too long to be announced",
                0,
            ));
        }
        if let Some(frame) = clip.frames().iter().find(|f| f.bytes.len() > wire::MOST_BYTES) {
            return Err(Error::Stream("a frame of more than 4 MiB", frame.bytes.start));
        }
        Ok(Self { file, clip: Arc::new(clip.without_bytes()) })
    }

    /// The clip, without the bytes of its frames.
    pub(super) fn clip(&self) -> &Arc<Clip> {
        &self.clip
    }

    /// Reads a frame and appends it to `to`. Blocks for as long as the disk takes.
    pub(super) fn read(&self, frame: usize, to: &mut Vec<u8>) -> std::io::Result<()> {
        let range = &self.clip.frames()[frame].bytes;
        let start = to.len();
        to.resize(start + range.len(), 0);
        let read = self.file.read_exact_at(&mut to[start..], range.start as u64);
        if read.is_err() {
            to.truncate(start);
        }
        read
    }
}
