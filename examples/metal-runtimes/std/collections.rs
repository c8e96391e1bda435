//! Collections. There is no source of random numbers for hashes: a `HashMap` is a tree, whose keys
//! must be ordered.

pub use memory::collections::{BTreeMap, VecDeque, btree_map};

/// A map; ordered here.
pub type HashMap<K, V> = BTreeMap<K, V>;
