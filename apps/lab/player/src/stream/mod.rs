//! Streaming: a server that sends the frames there is time for, and clients that play what they
//! receive.
//!
//! ```text
//!    a file ──read──► server ──TCP──► client ──► player ──► screen
//!            frames by importance,       frames by importance,
//!            until they expire           until they expire
//! ```
//!
//! A server holds one stored stream for many clients. For each client it sends the frames of a
//! window by [importance](crate::importance), as a [player](crate::player) decodes them, and does
//! not even read frames that have expired. The speed of a link is not measured: the socket accepts
//! what it can carry, and has little room, so the next frame is chosen late. So with less of the
//! network or of the disk the least important frames are dropped before they are sent, and with
//! less of the CPU before they are decoded; both by the same scale, so the same frames are dropped
//! first.
//!
//! ```
//! use antiphon_coop::event_loop::Loop;
//! use antiphon_player::decode::{Costs, Synthetic, spin};
//! use antiphon_player::stream::{Client, ClientOptions, Quality, Server, ServerOptions, Stored};
//! use antiphon_player::{Headless, Layer, made};
//!
//! let file = std::env::temp_dir().join(format!("a-stream-{}.h264", std::process::id()));
//! std::fs::write(&file, made::layered(6, 60))?;
//! let mut events = Loop::new()?;
//! let any = "127.0.0.1:0".parse()?;
//! let one = ServerOptions { serves: Some(1), window_ms: 300, ..ServerOptions::default() };
//! let left = |served: &_| println!("{served}");
//! let address = Server::start(&mut events, any, Stored::open(&file)?, one, left)?;
//!
//! let options = ClientOptions { quality: Quality::Reference, ..ClientOptions::default() };
//! let client = Client::start(&mut events, address, options, |clip| {
//!     let decoder = Synthetic::new(Costs::by_size(clip, 100_000)?, spin);
//!     Ok((Box::new(decoder), Headless))
//! })?;
//! let _ = events.run();
//!
//! println!("{}", client.player().ok_or("nothing came")?.program().report());
//! assert!(client.received().is_whole);
//! assert_eq!(client.received().layer(Layer::Disposable), 0);
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All of it runs on [event loops](antiphon_coop::event_loop); a server and its clients may share
//! one. Reading a frame is work with the frame's importance: over several clients, the most
//! important frame is read first.
//!
//! | file | contents |
//! |---|---|
//! | `wire` | the messages between server and client |
//! | `quality` | the layers that a client requests |
//! | `stored` | a stream in a file, read frame by frame |
//! | `sender` | the choice of the next frame to send |
//! | `server`, `peer` | a server on a loop, and each of its clients |
//! | `served` | the server's record of each client |
//! | `client` | a client on a loop, and its player |
//! | `bucket` | the rate limit of a simulated slow link |
//!
//! # The protocol
//!
//! Version 1. Numbers are little-endian; fields marked 0 must be 0.
//!
//! A client sends these 8 bytes at the beginning, and nothing after them (a client that closes its
//! half has left):
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `aphC` |
//! | 4 | 2 | version |
//! | 6 | 1 | [quality](Quality): 0 all, 1 reference, 2 predicted, 3 intra |
//! | 7 | 1 | 0 |
//!
//! The server answers with 40 bytes, of which those from 8 on are 0 unless the client is welcome:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | `aphS` |
//! | 4 | 2 | version |
//! | 6 | 1 | 0 welcome, 1 the server speaks another version, 2 no room |
//! | 7 | 1 | 0 |
//! | 8 | 4 | frames of the stream: 1 to 2²⁰ |
//! | 12 | 4 | width, in pixels: 1 to 16 384 |
//! | 16 | 4 | height |
//! | 20 | 4 | window, in milliseconds: 10 to 60 000 |
//! | 24 | 8 | how long a frame is shown, in nanoseconds: a millisecond to 10 s |
//! | 32 | 4 | bytes of the head: up to 2¹⁶ |
//! | 36 | 4 | 0 |
//!
//! Then comes the head, which is what precedes the first frame in the stream; then three bytes for
//! each frame, in decode order (bits 0–1: layer, 0 `b`, 1 `B`, 2 `P`, 3 `I`; bit 2: a unit begins
//! with it; then two bytes, signed: its place in display order, less that in decode order); then
//! messages:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | 1 a frame, 2 the end |
//! | 1 | 3 | 0 |
//! | 4 | 4 | the frame's number in decode order, or 0 |
//! | 8 | 4 | how many bytes of it follow: 1 to 2²², or 0 |
//!
//! Frames come in any order, and frames that don't come are not mentioned. Nothing follows the end.
//! A side that receives anything else closes the connection; a count is trusted only when the data
//! that it counts has arrived.
//!
//! After Krasic, Saubhasik, Sinha and Goel, "Fair and Timely Scheduling via Cooperative Polling"
//! (EuroSys 2009), §4.2, and the Priority-Progress of QStream, which it refers to.

mod bucket;
mod client;
mod peer;
mod quality;
pub(crate) mod sender;
mod served;
mod server;
mod stored;
pub(crate) mod wire;

pub use self::bucket::Bucket;
pub use self::client::{Client, ClientOptions, Received};
pub use self::quality::Quality;
pub use self::sender::Sent;
pub use self::served::{Parting, Served};
pub use self::server::{Server, ServerOptions};
pub use self::stored::Stored;
pub use self::wire::VERSION;
