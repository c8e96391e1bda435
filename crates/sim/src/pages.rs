//! The placement of memory: the node of each page, which is the home of its lines.
//!
//! A page is 64 lines in the order in which the simulation first touches them. The host's pages are
//! unsuitable: the host's allocator decides which data share a page, differently in each process.

use crate::Placement;
use crate::line::LineId;

/// Number of lines of a page of 4 KiB.
const LINES: u32 = 64;

/// The homes of pages.
pub(crate) struct Pages {
    placement: Placement,
    nodes: u32,
    /// The home of each page that was accessed.
    homes: Vec<u32>,
}

impl Pages {
    /// # Panics
    ///
    /// If all pages are on a node that does not exist.
    pub(crate) fn new(placement: Placement, nodes: u32) -> Self {
        if let Placement::On(node) = placement {
            assert!(node < nodes, "no node {node}: there are {nodes}, from 0");
        }
        Self { placement, nodes, homes: Vec::new() }
    }

    /// The home of a line that is labelled now; `toucher` is the node of the thread that accesses
    /// it. `None` means always the node of the reading thread.
    pub(crate) fn home(&mut self, line: LineId, toucher: u32) -> Option<u32> {
        let page = line.0 / LINES;
        match self.placement {
            Placement::Near => None,
            Placement::On(node) => Some(node),
            Placement::Interleaved => Some(page % self.nodes),
            Placement::FirstTouch => {
                // Lines are labelled one by one, so a missing page is the next one.
                if page as usize == self.homes.len() {
                    self.homes.push(toucher);
                }
                Some(self.homes[page as usize])
            }
        }
    }
}
