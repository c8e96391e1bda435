//! Decoded frames, and where they are shown.

/// A decoded frame: a byte of luma a pixel, and a quarter of that for each chroma (4:2:0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The width, in pixels.
    pub width: usize,
    /// The height, in pixels.
    pub height: usize,
    /// `width * height` bytes, row after row.
    pub luma: Vec<u8>,
    /// Blue and red differences, half as wide and half as high; empty if a decoder has none.
    pub chroma: [Vec<u8>; 2],
}

impl Picture {
    /// All gray.
    pub fn gray(width: usize, height: usize) -> Self {
        Self { width, height, luma: vec![128; width * height], chroma: [Vec::new(), Vec::new()] }
    }

    /// Becomes a copy of another one, in the room that it has.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        (self.width, self.height) = (other.width, other.height);
        self.luma.clone_from(&other.luma);
        self.chroma.clone_from(&other.chroma);
    }
}

/// A screen on which a player shows its pictures.
pub trait Screen {
    /// Shows frame `number` of its clip (in display order). Must be quick, and never block: it
    /// runs in a timer.
    fn show(&mut self, picture: &Picture, number: usize);

    /// Its user has closed it: the player is to stop. Never blocks.
    fn is_closed(&self) -> bool {
        false
    }

    /// Why nothing of it is seen any more; the player goes on. Never blocks.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Takes a picture that is due at `due_ns`, in nanoseconds of the loop's clock, to show it by
    /// itself, as `id`; or gives it back, so that it is shown by a timer of the player.
    fn keep(&mut self, id: u64, picture: Picture, number: usize, due_ns: u64) -> Option<Picture> {
        let _ = (id, number, due_ns);
        Some(picture)
    }

    /// The next of those that it has kept and shown, in the order in which they were.
    fn kept(&mut self) -> Option<Kept> {
        None
    }
}

/// A picture that a screen has shown by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The id that came with the picture.
    pub id: u64,
    /// How late it was shown, in nanoseconds.
    pub late_ns: u64,
    /// The picture.
    pub picture: Picture,
}

impl<S: Screen + ?Sized> Screen for Box<S> {
    fn show(&mut self, picture: &Picture, number: usize) {
        (**self).show(picture, number);
    }

    fn is_closed(&self) -> bool {
        (**self).is_closed()
    }

    fn fault(&self) -> Option<String> {
        (**self).fault()
    }

    fn keep(&mut self, id: u64, picture: Picture, number: usize, due_ns: u64) -> Option<Picture> {
        (**self).keep(id, picture, number, due_ns)
    }

    fn kept(&mut self) -> Option<Kept> {
        (**self).kept()
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Screen for Headless {
    fn show(&mut self, _: &Picture, _: usize) {}
}
