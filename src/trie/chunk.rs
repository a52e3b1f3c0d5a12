//! Chunks: a segment's text with its ids, stored once however many nodes refer to it.
//!
//! The ids of a closed segment are a function of its text and of how it begins (see `cuts`,
//! Factorization), so a table by keyed hash of both is all that is needed to share them. Whoever finds a
//! chunk by hash compares both. The hash is salted with the namespace: namespaces share nothing. The
//! table counts the nodes that refer to a chunk and forgets it with the last one; readers that still
//! hold it are not disturbed.

use std::collections::HashMap;
use std::mem::size_of;
use std::sync::Arc;

use crate::cuts::Opening;

/// The text of a closed segment and its ids. Immutable.
pub struct Chunk {
    text: Box<str>,
    ids: Box<[u32]>,
    hash: u64,
    opening: Opening,
}

impl Chunk {
    /// A chunk of a text that begins in a certain way, and hashes to `hash` with it.
    pub fn new(text: &str, ids: &[u32], hash: u64, opening: Opening) -> Self {
        Chunk {
            text: text.into(),
            ids: ids.into(),
            hash,
            opening,
        }
    }

    /// The text of the segment.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The ids of the text.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// The keyed hash of namespace, text and opening.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How the text begins: what makes its start a cut.
    pub fn opening(&self) -> Opening {
        self.opening
    }

    /// Whether this is the chunk of a text that begins in this way.
    pub fn holds(&self, text: &str, opening: Opening) -> bool {
        self.opening == opening && *self.text == *text
    }

    /// Whether two chunks hold the same text, which begins in the same way.
    pub fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other) || self.holds(&other.text, other.opening)
    }

    /// What it takes in memory: the counts of an `Arc`, the header, both buffers, and its entry in
    /// the table (half full).
    fn bytes(&self) -> usize {
        2 * size_of::<usize>()
            + size_of::<Chunk>()
            + self.text.len()
            + size_of_val(&*self.ids)
            + 2 * size_of::<(u64, Entry)>()
    }
}

struct Entry {
    chunk: Arc<Chunk>,
    nodes: usize,
}

/// All chunks of a trie by the hash of their text.
#[derive(Default)]
pub(super) struct Chunks {
    entries: HashMap<u64, Entry>,
    bytes: usize,
}

impl Chunks {
    pub(super) fn get(&self, hash: u64) -> Option<Arc<Chunk>> {
        self.entries.get(&hash).map(|e| Arc::clone(&e.chunk))
    }

    /// Counts a node that refers to this chunk's text and returns the chunk to refer to. None if
    /// another text has the same hash.
    pub(super) fn retain(&mut self, chunk: &Arc<Chunk>) -> Option<Arc<Chunk>> {
        if let Some(entry) = self.entries.get_mut(&chunk.hash) {
            if !entry.chunk.is_same(chunk) {
                return None;
            }
            entry.nodes += 1;
            return Some(Arc::clone(&entry.chunk));
        }
        self.bytes += chunk.bytes();
        self.entries.insert(
            chunk.hash,
            Entry {
                chunk: Arc::clone(chunk),
                nodes: 1,
            },
        );
        Some(Arc::clone(chunk))
    }

    /// Uncounts a node that referred to this chunk.
    pub(super) fn release(&mut self, chunk: &Arc<Chunk>) {
        let Some(entry) = self.entries.get_mut(&chunk.hash) else {
            return;
        };
        entry.nodes -= 1;
        if entry.nodes == 0 {
            self.bytes -= chunk.bytes();
            self.entries.remove(&chunk.hash);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
