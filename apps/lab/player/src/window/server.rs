//! The connection to the X server: a window of fixed size that shows one picture.

use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::properties::WmSizeHints;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, Gravity, ImageFormat,
    ImageOrder, PropMode, Screen, Setup, VisualClass, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use super::pixels::convert;
use crate::Error;
use crate::picture::Picture;

/// Upper bound of a request's size without its pixels, in bytes.
const HEAD: usize = 64;

x11rb::atom_manager! {
    /// The names that window managers know.
    Atoms: AtomsCookie {
        WM_PROTOCOLS,
        WM_DELETE_WINDOW,
        _NET_WM_NAME,
        UTF8_STRING,
    }
}

/// A window of an X server, with its own connection.
pub(super) struct Server {
    connection: RustConnection,
    atoms: Atoms,
    window: u32,
    /// The picture to show: it is transferred in parts, and shown at once.
    pixmap: u32,
    context: u32,
    depth: u8,
    size: (u16, u16),
    pixels: Vec<u8>,
}

impl Server {
    /// Opens the window. Blocks until it exists.
    pub(super) fn open(
        display: Option<&str>,
        title: &str,
        size: (u16, u16),
    ) -> Result<Self, Error> {
        let (connection, screen) = x11rb::connect(display).map_err(|error| no_server(&error))?;
        let setup = connection.setup();
        let screen = &setup.roots[screen];
        has_usual_pixels(setup, screen)?;
        let (depth, root) = (screen.root_depth, screen.root);
        Self::make(connection, depth, root, title, size)
            .map_err(|error| Error::Display(error.to_string()))
    }

    fn make(
        connection: RustConnection,
        depth: u8,
        root: u32,
        title: &str,
        size: (u16, u16),
    ) -> Result<Self, ReplyOrIdError> {
        let atoms = Atoms::new(&connection)?.reply()?;
        let (window, pixmap, context) =
            (connection.generate_id()?, connection.generate_id()?, connection.generate_id()?);
        let (width, height) = size;
        let looks = CreateWindowAux::new()
            .bit_gravity(Gravity::NORTH_WEST)
            .background_pixel(0)
            .event_mask(EventMask::EXPOSURE | EventMask::STRUCTURE_NOTIFY);
        let class = WindowClass::INPUT_OUTPUT;
        connection
            .create_window(depth, window, root, 0, 0, width, height, 0, class, 0, &looks)?
            .check()?;
        connection.create_pixmap(depth, pixmap, window, width, height)?.check()?;
        let quiet = CreateGCAux::new().graphics_exposures(0).foreground(0);
        connection.create_gc(context, pixmap, &quiet)?.check()?;
        let whole = x11rb::protocol::xproto::Rectangle { x: 0, y: 0, width, height };
        connection.poly_fill_rectangle(pixmap, context, &[whole])?.check()?;

        let text = title.as_bytes();
        let names = [
            (u32::from(AtomEnum::WM_NAME), u32::from(AtomEnum::STRING)),
            (atoms._NET_WM_NAME, atoms.UTF8_STRING),
        ];
        for (name, kind) in names {
            connection.change_property8(PropMode::REPLACE, window, name, kind, text)?;
        }
        let protocols = [atoms.WM_DELETE_WINDOW];
        let kind = AtomEnum::ATOM;
        connection
            .change_property32(PropMode::REPLACE, window, atoms.WM_PROTOCOLS, kind, &protocols)?
            .check()?;
        let fixed = Some((i32::from(width), i32::from(height)));
        let hints = WmSizeHints { min_size: fixed, max_size: fixed, ..WmSizeHints::default() };
        hints.set_normal_hints(&connection, window)?.check()?;
        connection.map_window(window)?.check()?;
        Ok(Self { connection, atoms, window, pixmap, context, depth, size, pixels: Vec::new() })
    }

    /// The window's number.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Shows the top left of a picture, and blocks until the server has drawn it.
    pub(super) fn draw(&mut self, picture: &Picture) -> Result<(), String> {
        let width = picture.width.min(usize::from(self.size.0));
        let height = picture.height.min(usize::from(self.size.1));
        if width == 0 || height == 0 {
            return Ok(());
        }
        let highest_first = self.connection.setup().image_byte_order == ImageOrder::MSB_FIRST;
        convert(picture, (width, height), highest_first, &mut self.pixels);
        self.put(width).map_err(|error| gone(&error))?;
        self.connection.sync().map_err(|error| match error {
            ReplyError::ConnectionError(error) => gone(&error),
            ReplyError::X11Error(error) => format!("the X server refuses: {error:?}"),
        })
    }

    /// Transfers the converted pixels, in requests as long as the server accepts.
    fn put(&self, width: usize) -> Result<(), ConnectionError> {
        let row = 4 * width;
        let room = self.connection.maximum_request_bytes().saturating_sub(HEAD);
        let rows = (room / row).max(1);
        let mut y = 0;
        for part in self.pixels.chunks(rows * row) {
            // Both are at most those of the window.
            let (width, height) = (width as u16, (part.len() / row) as u16);
            let (format, depth) = (ImageFormat::Z_PIXMAP, self.depth);
            let (pixmap, context) = (self.pixmap, self.context);
            self.connection
                .put_image(format, pixmap, context, width, height, 0, y, 0, depth, part)?;
            y += height as i16;
        }
        self.copy()
    }

    fn copy(&self) -> Result<(), ConnectionError> {
        let (width, height) = self.size;
        let (from, to, by) = (self.pixmap, self.window, self.context);
        self.connection.copy_area(from, to, by, 0, 0, 0, 0, width, height)?;
        self.connection.flush()
    }

    /// Reads pending events without blocking; returns whether the window was closed.
    pub(super) fn is_closed(&self) -> Result<bool, String> {
        while let Some(event) = self.connection.poll_for_event().map_err(|error| gone(&error))? {
            match event {
                Event::ClientMessage(message)
                    if message.window == self.window
                        && message.data.as_data32()[0] == self.atoms.WM_DELETE_WINDOW =>
                {
                    return Ok(true);
                }
                Event::DestroyNotify(_) => return Ok(true),
                Event::Expose(_) => self.copy().map_err(|error| gone(&error))?,
                Event::Error(error) => return Err(format!("the X server refuses: {error:?}")),
                _ => {}
            }
        }
        Ok(false)
    }
}

fn no_server(error: &ConnectError) -> Error {
    Error::Display(format!("no X server can be reached: {error}"))
}

fn gone(error: &ConnectionError) -> String {
    format!("the X server has gone away: {error}")
}

/// Checks that pixels are four bytes: blue, green, red, and an unused one.
fn has_usual_pixels(setup: &Setup, screen: &Screen) -> Result<(), Error> {
    let mut formats = setup.pixmap_formats.iter();
    let has_four_bytes =
        formats.any(|format| format.depth == screen.root_depth && format.bits_per_pixel == 32);
    let mut visuals = screen.allowed_depths.iter().flat_map(|depth| &depth.visuals);
    let has_true_colours = visuals.any(|visual| {
        visual.visual_id == screen.root_visual
            && visual.class == VisualClass::TRUE_COLOR
            && [visual.red_mask, visual.green_mask, visual.blue_mask] == [0xff_0000, 0xff00, 0xff]
    });
    if has_four_bytes && has_true_colours {
        return Ok(());
    }
    let depth = screen.root_depth;
    Err(Error::Display(format!(
        "its screen has a depth of {depth}: use one of true colours with a depth of 24"
    )))
}
