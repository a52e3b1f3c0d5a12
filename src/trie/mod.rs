//! The prefix trie of checkpoints: what was encoded before, keyed by rendered text alone.
//!
//! A path from a namespace's root spells the beginning of a text, one closed segment per node. A
//! node refers to a [`Chunk`], the text of its segment with its ids. Chunks are hash-consed: equal
//! segments of different texts, or of one text before and after an edit, share one chunk, so
//! finding a chunk saves the encoding even where the path to it is new.
//!
//! The trie knows nothing about cuts. Whether the end of a node is a cut *in the text at hand* is
//! decided by the engine; here a node is a claim about the text it was made for.
//!
//! Invariants
//! - The segment of a node started at a cut in the text that linked it, and so did those of all its
//!   ancestors, in that same text.
//! - A child is found by `(parent, hash of its text)`. The hash is keyed, and a found text is
//!   always compared; where two texts collide the second one is simply not kept.
//! - The children of a node form a list, the most recently used one first.
//! - Only leaves are evicted, the least recently used first; a node that becomes a leaf counts as
//!   used when its last child was.
//! - `bytes` covers nodes, chunks and their share of the maps.
//!
//! Nodes live in an arena with free slots, linked by index: dropping a path of a million nodes
//! needs no stack. All operations are O(1) or O(log leaves) per node touched; nobody holds the lock
//! around a `Trie` while comparing texts of unknown length or encoding.

mod checkpoints;
mod chunk;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::mem::size_of;
use std::sync::Arc;

pub use checkpoints::Checkpoints;
pub use chunk::Chunk;
use chunk::Chunks;

/// A node of a trie, which may be gone by the time it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeId {
    slot: u32,
    serial: u64,
}

/// One node on the way down a trie.
#[derive(Clone)]
pub struct Step {
    /// The node.
    pub node: NodeId,
    /// What it holds.
    pub chunk: Arc<Chunk>,
}

/// Where a walk stands: at the root of a namespace, or at a node.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The start of all texts of a namespace.
    Root(u64),
    /// The end of a node's segment.
    Node(NodeId),
}

/// How much a trie holds, and what it let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Nodes, without the roots of namespaces.
    pub nodes: usize,
    /// Distinct chunks.
    pub chunks: usize,
    /// Bytes, as counted against the budget.
    pub bytes: usize,
    /// Nodes evicted since the process started.
    pub evictions: u64,
}

/// No node: the end of a list, or the parent of a root.
const NONE: u32 = u32::MAX;

struct Node {
    /// Unique over the life of the trie, to tell a node from a later one in the same slot.
    serial: u64,
    parent: u32,
    /// The most recently used child.
    first_child: u32,
    previous: u32,
    next: u32,
    /// When it was last used; orders leaves only.
    stamp: u64,
    content: Content,
}

/// What a node stands for.
enum Content {
    /// The root of a namespace.
    Root(u64),
    /// A segment.
    Segment(Arc<Chunk>),
    /// A free slot.
    Free,
}

/// A node with its entries in the children map and among the leaves, hash tables being half full.
const NODE_BYTES: usize = size_of::<Node>()
    + 2 * (size_of::<(u32, u64)>() + size_of::<u32>())
    + 2 * size_of::<(u64, u32)>();

/// The checkpoints of one engine. See the module.
#[derive(Default)]
pub struct Trie {
    nodes: Vec<Node>,
    free: Vec<u32>,
    roots: HashMap<u64, u32>,
    children: HashMap<(u32, u64), u32>,
    /// Leaves by the time of their last use.
    leaves: BTreeMap<u64, u32>,
    chunks: Chunks,
    node_bytes: usize,
    clock: u64,
    serials: u64,
    evictions: u64,
}

impl Trie {
    /// A trie whose nodes are told apart from those of another `series`, up to 2^56 of them.
    pub fn of_series(series: u8) -> Self {
        Trie {
            serials: u64::from(series) << 56,
            ..Trie::default()
        }
    }

    /// Appends up to `limit` nodes below `place` to `path`, following the most recent children.
    pub fn follow(&self, place: Place, limit: usize, path: &mut Vec<Step>) {
        let Some(slot) = self.slot_of(place) else {
            return;
        };
        let mut slot = self.nodes[slot as usize].first_child;
        for _ in 0..limit {
            if slot == NONE {
                break;
            }
            let node = &self.nodes[slot as usize];
            if let Content::Segment(chunk) = &node.content {
                path.push(Step {
                    node: NodeId {
                        slot,
                        serial: node.serial,
                    },
                    chunk: Arc::clone(chunk),
                });
            }
            slot = node.first_child;
        }
    }

    /// The child of `place` whose text has this hash, if there is one; the text is not compared.
    /// It becomes the most recent child.
    pub fn child(&mut self, place: Place, hash: u64) -> Option<Step> {
        let parent = self.slot_of(place)?;
        let slot = *self.children.get(&(parent, hash))?;
        self.move_to_front(slot);
        let node = &self.nodes[slot as usize];
        match &node.content {
            Content::Segment(chunk) => Some(Step {
                node: NodeId {
                    slot,
                    serial: node.serial,
                },
                chunk: Arc::clone(chunk),
            }),
            Content::Root(_) | Content::Free => None,
        }
    }

    /// The chunk whose text has this hash, if there is one; the text is not compared.
    pub fn chunk(&self, hash: u64) -> Option<Arc<Chunk>> {
        self.chunks.get(hash)
    }

    /// Links the path of a text: the nodes it went through, then chunks below the last of them.
    /// Returns the nodes of those chunks, as far as they could be linked.
    ///
    /// Nodes that were evicted meanwhile are linked again, nodes that another thread linked are
    /// used. The whole path counts as used now. Evicts until no more than `budget` bytes are held.
    pub fn link<'s>(
        &mut self,
        namespace: u64,
        path: impl DoubleEndedIterator<Item = &'s Step>,
        new: &[Arc<Chunk>],
        budget: usize,
    ) -> Vec<NodeId> {
        let mut evicted = Vec::new();
        let mut start = None;
        for step in path.rev() {
            if self.slot_of(Place::Node(step.node)).is_some() {
                start = Some(step.node.slot);
                break;
            }
            evicted.push(&step.chunk);
        }
        if start.is_none() && evicted.is_empty() && new.is_empty() {
            return Vec::new();
        }
        let start = start.unwrap_or_else(|| self.root(namespace));
        let known = evicted.len();
        let chunks = evicted.into_iter().rev().chain(new);

        let stamp = self.tick();
        let mut slot = start;
        let mut linked = Vec::with_capacity(new.len());
        for (at, chunk) in chunks.enumerate() {
            match self.child_or_new(slot, chunk, stamp) {
                Some(child) => slot = child,
                None => break,
            }
            if at >= known {
                let serial = self.nodes[slot as usize].serial;
                linked.push(NodeId { slot, serial });
            }
        }
        self.touch(slot, stamp);
        self.remove_if_bare_root(start);
        self.shrink_to(budget);
        linked
    }

    /// Removes all nodes of a namespace.
    pub fn drop_namespace(&mut self, namespace: u64) {
        let Some(&root) = self.roots.get(&namespace) else {
            return;
        };
        // Down to a leaf, remove it, on from its parent: no recursion, each node visited twice.
        let mut slot = root;
        while self.roots.get(&namespace) == Some(&root) {
            let child = self.nodes[slot as usize].first_child;
            if child == NONE {
                let parent = self.nodes[slot as usize].parent;
                self.remove_leaf(slot);
                slot = parent;
                if slot == NONE {
                    break;
                }
            } else {
                slot = child;
            }
        }
    }

    /// Removes everything. Nodes handed out before are gone for good.
    pub fn clear(&mut self) {
        *self = Trie {
            clock: self.clock,
            serials: self.serials,
            evictions: self.evictions,
            ..Trie::default()
        };
    }

    /// How much is held.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            nodes: self.nodes.len() - self.free.len() - self.roots.len(),
            chunks: self.chunks.len(),
            bytes: self.bytes(),
            evictions: self.evictions,
        }
    }

    fn bytes(&self) -> usize {
        self.node_bytes + self.chunks.bytes()
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn slot_of(&self, place: Place) -> Option<u32> {
        match place {
            Place::Root(namespace) => self.roots.get(&namespace).copied(),
            Place::Node(id) => self
                .nodes
                .get(id.slot as usize)
                .filter(|node| node.serial == id.serial && !matches!(node.content, Content::Free))
                .map(|_| id.slot),
        }
    }

    fn root(&mut self, namespace: u64) -> u32 {
        if let Some(&slot) = self.roots.get(&namespace) {
            return slot;
        }
        let slot = self.insert(NONE, 0, Content::Root(namespace));
        self.roots.insert(namespace, slot);
        slot
    }

    /// The child of `parent` that holds this chunk's text. None if another text has its hash.
    fn child_or_new(&mut self, parent: u32, chunk: &Arc<Chunk>, stamp: u64) -> Option<u32> {
        if let Some(&slot) = self.children.get(&(parent, chunk.hash())) {
            return match &self.nodes[slot as usize].content {
                Content::Segment(there) if there.is_same(chunk) => {
                    self.move_to_front(slot);
                    Some(slot)
                }
                _ => None,
            };
        }
        let chunk = self.chunks.retain(chunk)?;
        let hash = chunk.hash();
        if self.is_leaf(parent) {
            self.leaves.remove(&self.nodes[parent as usize].stamp);
        }
        let slot = self.insert(parent, stamp, Content::Segment(chunk));
        self.push_front(parent, slot);
        self.children.insert((parent, hash), slot);
        self.leaves.insert(stamp, slot);
        Some(slot)
    }

    fn insert(&mut self, parent: u32, stamp: u64, content: Content) -> u32 {
        self.serials += 1;
        let node = Node {
            serial: self.serials,
            parent,
            first_child: NONE,
            previous: NONE,
            next: NONE,
            stamp,
            content,
        };
        self.node_bytes += NODE_BYTES;
        if let Some(slot) = self.free.pop() {
            self.nodes[slot as usize] = node;
            return slot;
        }
        self.nodes.push(node);
        // A node costs more than a hundred bytes: memory ends long before 2^32 of them.
        u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
    }

    /// Whether a node is among the leaves: a segment without children.
    fn is_leaf(&self, slot: u32) -> bool {
        let node = &self.nodes[slot as usize];
        node.first_child == NONE && matches!(node.content, Content::Segment(_))
    }

    fn touch(&mut self, slot: u32, stamp: u64) {
        if self.is_leaf(slot) {
            self.leaves.remove(&self.nodes[slot as usize].stamp);
            self.leaves.insert(stamp, slot);
        }
        self.nodes[slot as usize].stamp = stamp;
    }

    fn push_front(&mut self, parent: u32, slot: u32) {
        let first = self.nodes[parent as usize].first_child;
        self.nodes[slot as usize].previous = NONE;
        self.nodes[slot as usize].next = first;
        if first != NONE {
            self.nodes[first as usize].previous = slot;
        }
        self.nodes[parent as usize].first_child = slot;
    }

    fn detach(&mut self, slot: u32) {
        let (parent, previous, next) = {
            let node = &self.nodes[slot as usize];
            (node.parent, node.previous, node.next)
        };
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        if previous != NONE {
            self.nodes[previous as usize].next = next;
        } else if parent != NONE {
            self.nodes[parent as usize].first_child = next;
        }
    }

    fn move_to_front(&mut self, slot: u32) {
        let node = &self.nodes[slot as usize];
        let parent = node.parent;
        if node.previous != NONE && parent != NONE {
            self.detach(slot);
            self.push_front(parent, slot);
        }
    }

    /// Removes a node without children, and its root if it was the last of its namespace.
    fn remove_leaf(&mut self, slot: u32) {
        let (parent, stamp) = {
            let node = &self.nodes[slot as usize];
            (node.parent, node.stamp)
        };
        self.detach(slot);
        let content = std::mem::replace(&mut self.nodes[slot as usize].content, Content::Free);
        match content {
            Content::Segment(chunk) => {
                self.leaves.remove(&stamp);
                self.children.remove(&(parent, chunk.hash()));
                self.chunks.release(&chunk);
            }
            Content::Root(namespace) => {
                self.roots.remove(&namespace);
            }
            Content::Free => return,
        }
        self.free.push(slot);
        self.node_bytes -= NODE_BYTES;
        if parent == NONE {
            return;
        }
        if self.is_leaf(parent) {
            let node = &mut self.nodes[parent as usize];
            node.stamp = node.stamp.max(stamp);
            self.leaves.insert(node.stamp, parent);
        }
        self.remove_if_bare_root(parent);
    }

    fn remove_if_bare_root(&mut self, slot: u32) {
        let node = &self.nodes[slot as usize];
        if node.first_child == NONE && matches!(node.content, Content::Root(_)) {
            self.remove_leaf(slot);
        }
    }

    fn shrink_to(&mut self, budget: usize) {
        while self.bytes() > budget {
            let Some((_, &slot)) = self.leaves.first_key_value() else {
                break;
            };
            self.remove_leaf(slot);
            self.evictions += 1;
        }
    }
}
