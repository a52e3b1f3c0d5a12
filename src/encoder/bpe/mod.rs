//! Byte-pair encoding of one word.
//!
//! The rule: a word starts as its smallest symbols; again and again the pair of neighbours with the
//! lowest rank is joined, the leftmost of equals, until no pair has one. That rule, and nothing else,
//! is run here; most words never get that far:
//!
//! - A word that *is* a token, and to which the rule gives just that token, is looked up. For which
//!   tokens that holds is found when the vocabulary is loaded, by running the rule on each.
//! - A word met before is remembered.
//!
//! *Symbols* are bytes (byte-level vocabularies spell each byte as a character), or characters with
//! a token per byte for those the vocabulary lacks (`byte_fallback`). Which vocabularies are
//! understood is decided in [`model`]; others are refused.
//!
//! Cost: a few nanoseconds for a token; for other words O(n²) in symbols up to [`SHORT`], beyond that
//! O(n log n) by a heap.

mod model;
mod pairs;
mod words;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

pub(super) use model::{Joins, Model};
use pairs::{MOST_MERGES, Merge, NO_MERGE, NO_RANK, Pairs, Rule};
use words::{MOST_IDS, Memory, Tokens};

use super::Refusal;

/// A vocabulary with its merges.
pub(super) struct Bpe {
    symbols: Symbols,
    pairs: Pairs,
    tokens: Tokens,
}

/// What a word starts as.
enum Symbols {
    /// One token per byte.
    Bytes(Box<[u32; 256]>),
    /// One token per character, or one per byte of a character that has none.
    Characters {
        tokens: HashMap<char, u32>,
        bytes: Box<[u32; 256]>,
    },
}

/// Memory and work space of one call at a time.
pub(super) struct Scratch {
    memory: Memory,
    ids: Vec<u32>,
    merges: Vec<Merge>,
    links: Vec<Link>,
    heap: BinaryHeap<Reverse<(u32, u32)>>,
}

/// Neighbours of a symbol in a long word.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

/// Up to so many symbols the lowest rank is found by looking at all of them.
const SHORT: usize = 64;
/// No neighbour, or a symbol that was joined to the one before.
const NONE: u32 = u32::MAX;
const GONE: u32 = u32::MAX - 1;

impl Scratch {
    pub(super) fn new() -> Self {
        Scratch {
            memory: Memory::new(),
            ids: Vec::new(),
            merges: Vec::new(),
            links: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    /// Gives back what an unusually long word took.
    pub(super) fn trim(&mut self) {
        const KEPT: usize = 1 << 16;
        if self.ids.capacity() > KEPT {
            self.ids = Vec::new();
            self.merges = Vec::new();
            self.links = Vec::new();
            self.heap = BinaryHeap::new();
        }
    }
}

impl Bpe {
    fn new(
        symbols: Symbols,
        rules: Vec<Rule>,
        tokens: Vec<(Box<str>, u32)>,
        whole: bool,
    ) -> Result<Self, Refusal> {
        if tokens.iter().any(|(_, id)| *id >= MOST_IDS) {
            return Err(Refusal::new("the vocabulary has ids from 2^24 on".into()));
        }
        if rules.len() >= MOST_MERGES {
            return Err(Refusal::new("the model has too many merges".into()));
        }
        let mut bpe = Bpe {
            symbols,
            pairs: Pairs::new(rules),
            tokens: Tokens::new(Vec::new()),
        };
        let mut scratch = Scratch::new();
        let closed = tokens
            .into_iter()
            .filter(|(word, id)| whole || bpe.by_rule(word, &mut scratch) == [*id])
            .map(|(word, id)| (word.into_boxed_bytes(), id))
            .collect();
        bpe.tokens = Tokens::new(closed);
        Ok(bpe)
    }

    /// Bytes that the tables take.
    pub(super) fn bytes(&self) -> usize {
        self.pairs.bytes() + self.tokens.bytes()
    }

    /// Appends the ids of a word, which must not be empty.
    #[inline]
    pub(super) fn encode(&self, word: &str, scratch: &mut Scratch, out: &mut Vec<u32>) {
        if let Some(id) = self.tokens.get(word.as_bytes()) {
            out.push(id);
            return;
        }
        match scratch.memory.get(word.as_bytes()) {
            Ok(ids) => out.extend_from_slice(ids),
            Err(vacancy) => {
                let before = out.len();
                out.extend_from_slice(self.by_rule(word, scratch));
                scratch.memory.put(vacancy, word.as_bytes(), &out[before..]);
            }
        }
    }

    /// The ids that the rule gives a word.
    fn by_rule<'s>(&self, word: &str, scratch: &'s mut Scratch) -> &'s [u32] {
        self.start(word, &mut scratch.ids);
        if scratch.ids.len() <= SHORT {
            self.merge_short(&mut scratch.ids);
        } else {
            self.merge_long(scratch);
        }
        &scratch.ids
    }

    /// The symbols that a word starts as.
    fn start(&self, word: &str, ids: &mut Vec<u32>) {
        ids.clear();
        match &self.symbols {
            Symbols::Bytes(tokens) => {
                ids.extend(word.bytes().map(|byte| tokens[usize::from(byte)]));
            }
            Symbols::Characters { tokens, bytes } => {
                for c in word.chars() {
                    if let Some(&id) = tokens.get(&c) {
                        ids.push(id);
                    } else {
                        let mut buffer = [0; 4];
                        let spelled = c.encode_utf8(&mut buffer).bytes();
                        ids.extend(spelled.map(|byte| bytes[usize::from(byte)]));
                    }
                }
            }
        }
    }

    fn merge_short(&self, ids: &mut Vec<u32>) {
        let mut merges = [NO_MERGE; SHORT];
        let mut count = ids.len();
        let symbols = &mut ids[..count.min(SHORT)];
        let pairs = count.saturating_sub(1);
        for (merge, pair) in merges.iter_mut().zip(symbols.windows(2)) {
            *merge = self.pairs.get(pair[0], pair[1]);
        }
        let merges = &mut merges[..pairs];
        loop {
            let mut lowest = NO_RANK;
            let mut at = 0;
            for (i, merge) in merges[..count.saturating_sub(1)].iter().enumerate() {
                if merge.rank < lowest {
                    (lowest, at) = (merge.rank, i);
                }
            }
            if lowest == NO_RANK {
                break;
            }
            symbols[at] = merges[at].id;
            symbols.copy_within(at + 2..count, at + 1);
            merges.copy_within(at + 1..count - 1, at);
            count -= 1;
            if at > 0 {
                merges[at - 1] = self.pairs.get(symbols[at - 1], symbols[at]);
            }
            if at + 1 < count {
                merges[at] = self.pairs.get(symbols[at], symbols[at + 1]);
            }
        }
        ids.truncate(count);
    }

    /// The same with a heap of pairs by rank and place. A pair in the heap whose symbols have changed
    /// since is known by its rank, which is no longer that of its place.
    fn merge_long(&self, scratch: &mut Scratch) {
        let Scratch {
            ids,
            merges,
            links,
            heap,
            ..
        } = scratch;
        let count = ids.len();
        merges.clear();
        merges.extend(ids.windows(2).map(|pair| self.pairs.get(pair[0], pair[1])));
        merges.push(NO_MERGE);
        links.clear();
        links.extend((0..count).map(|i| Link {
            previous: if i == 0 { NONE } else { i as u32 - 1 },
            next: if i + 1 == count { NONE } else { i as u32 + 1 },
        }));
        heap.clear();
        heap.extend(
            (0..)
                .zip(merges.iter())
                .filter(|(_, merge)| merge.rank != NO_RANK)
                .map(|(at, merge)| Reverse((merge.rank, at))),
        );
        while let Some(Reverse((rank, place))) = heap.pop() {
            let at = place as usize;
            if merges[at].rank != rank {
                continue;
            }
            let right = links[at].next as usize;
            ids[at] = merges[at].id;
            let after = links[right].next;
            links[at].next = after;
            links[right].next = GONE;
            merges[right] = NO_MERGE;
            merges[at] = NO_MERGE;
            if after != NONE {
                links[after as usize].previous = place;
                merges[at] = self.pairs.get(ids[at], ids[after as usize]);
            }
            let before = links[at].previous;
            if before != NONE {
                merges[before as usize] = self.pairs.get(ids[before as usize], ids[at]);
            }
            for changed in [place, before] {
                if changed != NONE && merges[changed as usize].rank != NO_RANK {
                    heap.push(Reverse((merges[changed as usize].rank, changed)));
                }
            }
        }
        let mut index = 0;
        ids.retain(|_| {
            index += 1;
            links[index - 1].next != GONE
        });
    }
}
