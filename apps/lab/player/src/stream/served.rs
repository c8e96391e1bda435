//! The record of a client that has left a server.

use std::fmt;
use std::net::SocketAddr;

use super::{Quality, Sent};
use crate::Layer;

/// The way in which a client left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parting {
    /// All frames were sent or dropped.
    Played,
    /// The client closed its connection.
    HungUp,
    /// The client sent something other than a greeting, or more than a greeting.
    Garbage,
    /// The client speaks another version.
    OtherVersion,
    /// The client sent no greeting in time.
    Silent,
    /// The client took no bytes for too long.
    Stalled,
    /// The connection failed, with this error.
    Failed(String),
}

/// The record of a client that has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The client's address.
    pub peer: SocketAddr,
    /// The quality that it requested.
    pub quality: Quality,
    /// Frame counts by layer, the least important first.
    pub layers: [Sent; 4],
    /// Number of frames that could not be read, and the error of the first one.
    pub unread: Option<(u64, String)>,
    /// How it left.
    pub parting: Parting,
}

impl Served {
    /// The frame counts of a layer.
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
