//! The ids of a text in the form in which the next text of a conversation takes them over.
//!
//! A text's ids are those of the checkpoints on its way through the trie, then those of its open tail. A
//! [`Trace`] keeps the way itself, not a copy of the ids: a vector that shares its memory with the trace
//! that it was continued from, so that a turn costs what it adds. Whoever wants ids in a row gets
//! them made; whoever wants the last few of them pays for those.
//!
//! Invariants: the texts of the nodes, one behind the other, begin the text; each node ends at a cut of it.

use std::sync::Arc;

use crate::lineage::Lineage;
use crate::trie::Step;

/// A node that a text passed, and how far it was at its end.
#[derive(Clone)]
pub struct Passed {
    /// The node.
    pub step: Step,
    /// Bytes of the text up to the end of the node.
    pub bytes: usize,
    /// Ids of the text up to the end of the node.
    pub ids: usize,
}

/// The nodes that a text passed.
#[derive(Clone, Default)]
pub struct Path(Lineage<Passed>);

impl Path {
    /// Goes on over one more node.
    pub fn push(&mut self, step: Step) {
        self.0.push(Passed {
            bytes: self.bytes() + step.chunk.text().len(),
            ids: self.ids() + step.chunk.ids().len(),
            step,
        });
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no node.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of the texts of its nodes.
    pub fn bytes(&self) -> usize {
        self.0.last().map_or(0, |passed| passed.bytes)
    }

    /// How many ids its nodes have.
    pub fn ids(&self) -> usize {
        self.0.last().map_or(0, |passed| passed.ids)
    }

    /// How many ids its first `count` nodes have.
    fn ids_of(&self, count: usize) -> usize {
        let last = count.checked_sub(1).and_then(|at| self.0.get(at));
        last.map_or(0, |passed| passed.ids)
    }

    /// The last node.
    pub fn last(&self) -> Option<&Step> {
        self.0.last().map(|passed| &passed.step)
    }

    /// The node at a place.
    pub fn get(&self, at: usize) -> Option<&Passed> {
        self.0.get(at)
    }

    /// Its first `count` nodes.
    #[must_use]
    pub fn take(&self, count: usize) -> Path {
        Path(self.0.take(count))
    }

    /// The nodes in order.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &Step> + ExactSizeIterator {
        self.0.iter().map(|passed| &passed.step)
    }

    /// How many leading nodes end by `bytes`.
    pub fn within(&self, bytes: usize) -> usize {
        self.0.leading(|passed| passed.bytes <= bytes)
    }
}

/// See the module.
#[derive(Clone, Default)]
pub struct Trace {
    path: Path,
    tail: Vec<u32>,
    kept: usize,
}

impl From<Vec<u32>> for Trace {
    /// Ids of which nothing else is known.
    fn from(ids: Vec<u32>) -> Self {
        Trace {
            tail: ids,
            ..Trace::default()
        }
    }
}

impl Trace {
    /// The ids of the nodes of `path`, then of `tail`; `kept` of them were not computed.
    pub fn new(path: Path, tail: Vec<u32>, kept: usize) -> Self {
        Trace { path, tail, kept }
    }

    /// The nodes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many leading ids were taken from checkpoints of earlier texts.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// How many ids.
    pub fn len(&self) -> usize {
        self.path.ids() + self.tail.len()
    }

    /// Whether there is no id.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands the ids from `start` on to `take`, in pieces and in order.
    pub fn each_from(&self, start: usize, mut take: impl FnMut(&[u32])) {
        let nodes = &self.path.0;
        let first = nodes.leading(|passed| passed.ids <= start);
        let mut skip = start - self.path.ids_of(first).min(start);
        for passed in nodes.skip(first) {
            take(passed.step.chunk.ids().get(skip..).unwrap_or_default());
            skip = 0;
        }
        take(self.tail.get(skip..).unwrap_or_default());
    }

    /// The ids from `start` on.
    pub fn ids_from(&self, start: usize) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.len().saturating_sub(start));
        self.each_from(start, |piece| ids.extend_from_slice(piece));
        ids
    }

    /// How many leading ids are equal to those of another trace.
    pub fn common_prefix(&self, other: &Trace) -> usize {
        let known = self.path.0.common(&other.path.0);
        let pairs = self.path.0.skip(known).zip(other.path.0.skip(known));
        let same = pairs.take_while(|(a, b)| Arc::ptr_eq(&a.step.chunk, &b.step.chunk));
        let shared = self.path.ids_of(known + same.count());
        let (ours, theirs) = (self.ids_from(shared), other.ids_from(shared));
        let pairs = ours.iter().zip(&theirs);
        shared + pairs.take_while(|(a, b)| a == b).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuts::Opening;
    use crate::trie::{Chunk, NodeId};

    fn trace(nodes: &[&[u32]], tail: &[u32]) -> Trace {
        let mut path = Path::default();
        for (at, ids) in nodes.iter().enumerate() {
            let chunk = Chunk::new("text", ids, at as u64, Opening::Fixed);
            path.push(Step {
                node: NodeId::default(),
                chunk: Arc::new(chunk),
            });
        }
        Trace::new(path, tail.to_vec(), 0)
    }

    /// Every start, within nodes, between them, in the tail and behind it.
    #[test]
    fn ids_from_any_start_are_those_of_the_whole() {
        let whole = [1, 2, 3, 4, 5, 6, 7];
        for trace in [
            trace(&[&[1, 2, 3], &[], &[4], &[5, 6]], &[7]),
            trace(&[], &whole),
            trace(&[&whole], &[]),
        ] {
            assert_eq!(trace.len(), whole.len());
            for start in 0..whole.len() + 2 {
                let want = whole.get(start..).unwrap_or_default();
                assert_eq!(trace.ids_from(start), want, "{start}");
            }
        }
    }

    #[test]
    fn common_prefixes_end_where_ids_differ() {
        let ours = trace(&[&[1, 2], &[3, 4]], &[5]);
        let mut grown = ours.clone();
        assert_eq!(ours.common_prefix(&grown), 5);
        grown.tail = vec![6, 7];
        assert_eq!(ours.common_prefix(&grown), 4);
        assert_eq!(ours.common_prefix(&trace(&[], &[1, 2, 3, 9])), 3);
        assert_eq!(ours.common_prefix(&trace(&[&[1]], &[2])), 2);
        assert_eq!(ours.common_prefix(&Trace::default()), 0);
    }

    #[test]
    fn nodes_are_found_by_their_ends() {
        let path = trace(&[&[1], &[2], &[3]], &[]).path;
        let found: Vec<usize> = [0, 3, 4, 7, 8, 12, 99].map(|b| path.within(b)).into();
        assert_eq!(found, [0, 0, 1, 1, 2, 3, 3]);
        assert_eq!((path.take(2).bytes(), path.take(9).len()), (8, 3));
    }
}
