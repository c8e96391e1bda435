//! The record of a client that has left a server.

use std::fmt;
use std::net::SocketAddr;

use super::{Quality, Sent};
use crate::Layer;

/// How a client left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parting {
    /// All that was to be sent was sent or dropped.
    Played,
    /// The client closed its connection.
    HungUp,
    /// The client sent something else than a greeting, or something after it.
    Garbage,
    /// The client speaks another version.
    OtherVersion,
    /// The client said nothing.
    Silent,
    /// The client did not take anything for too long.
    Stalled,
    /// Its connection failed, and how.
    Failed(String),
}

/// The frames that a client was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The client's address.
    pub peer: SocketAddr,
    /// The quality that it asked for.
    pub quality: Quality,
    /// Frames by layer, the least first.
    pub layers: [Sent; 4],
    /// Frames that could not be read, and why the first one could not.
    pub unread: Option<(u64, String)>,
    /// How it left.
    pub parting: Parting,
}

impl Served {
    /// The frames of a layer.
    pub fn layer(&self, layer: Layer) -> Sent {
        self.layers[layer as usize]
    }

    /// Bytes of all frames that were sent.
    pub fn bytes(&self) -> u64 {
        self.layers.iter().map(|layer| layer.bytes).sum()
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}:", self.peer, self.quality)?;
        for layer in Layer::ALL.into_iter().filter(|&layer| layer >= self.quality.least()) {
            let Sent { sent, dropped, .. } = self.layer(layer);
            write!(f, " {} {sent}/{},", layer.letter(), sent + dropped)?;
        }
        write!(f, " {} bytes; ", self.bytes())?;
        if let Some((frames, why)) = &self.unread {
            write!(f, "{frames} frames could not be read ({why}); ")?;
        }
        match &self.parting {
            Parting::Played => f.write_str("to the end"),
            Parting::HungUp => f.write_str("it hung up"),
            Parting::Garbage => f.write_str("it sent an invalid message"),
            Parting::OtherVersion => f.write_str("it speaks another version"),
            Parting::Silent => f.write_str("it did not say what it wants"),
            Parting::Stalled => f.write_str("it stopped reading"),
            Parting::Failed(why) => f.write_str(why),
        }
    }
}
