//! Decoded frames, and the screens that show them.

/// A decoded frame: one byte of luma per pixel, and a quarter of that for each chroma (4:2:0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The width, in pixels.
    pub width: usize,
    /// The height, in pixels.
    pub height: usize,
    /// `width * height` bytes, row after row.
    pub luma: Vec<u8>,
    /// Blue and red differences, half as wide and half as high; empty if the decoder yields none.
    pub chroma: [Vec<u8>; 2],
}

impl Picture {
    /// A gray picture.
    pub fn gray(width: usize, height: usize) -> Self {
        Self { width, height, luma: vec![128; width * height], chroma: [Vec::new(), Vec::new()] }
    }

    /// Becomes a copy of `other`, reusing its own buffers.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        (self.width, self.height) = (other.width, other.height);
        self.luma.clone_from(&other.luma);
        self.chroma.clone_from(&other.chroma);
    }
}

/// A screen on which a player shows its pictures.
pub trait Screen {
    /// Shows frame `number` of its clip (in display order). Must be quick, and never block: it runs
    /// in a timer.
    fn show(&mut self, picture: &Picture, number: usize);

    /// Returns whether the user has closed the screen: the player must then stop. Never blocks.
    fn is_closed(&self) -> bool {
        false
    }

    /// Why its pictures are no longer visible; the player goes on. Never blocks.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Takes a picture that is due at `due_ns`, in nanoseconds of the loop's clock, and later shows
    /// it by itself, as `id`; or returns the picture, which is then shown by a timer of the player.
    fn keep(&mut self, id: u64, picture: Picture, number: usize, due_ns: u64) -> Option<Picture> {
        let _ = (id, number, due_ns);
        Some(picture)
    }

    /// The next picture that it has kept and then shown, in the order in which they were shown.
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

/// A screen that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Screen for Headless {
    fn show(&mut self, _: &Picture, _: usize) {}
}
