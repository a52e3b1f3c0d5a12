//! From rendered text to token ids at the cost of what is new.
//!
//! [`Engine::encode`] goes through a text once, in five steps:
//!
//! 1. **Descend.** From the root of the namespace along the most recent children, comparing bytes.
//!    Chunks are fetched in batches under the lock and compared outside of it.
//! 2. **Settle.** The nodes passed were made for other texts; a node may be used only if its end is
//!    a cut *in this text*. With `l` common bytes, the nodes below the frontier of `l` may (proof in
//!    [`cuts`](crate::cuts)); the others, usually one or two, are set aside.
//! 3. **Scan.** From the last settled node on, the segments of this text are computed. Those set
//!    aside are accepted where they agree; else the child is looked up by hash, and from a child
//!    found that way the descent goes on (1).
//! 4. **Encode** what was not found: a segment that another path holds is taken from there, the rest
//!    and the open tail go to the encoder, without the lock.
//! 5. **Link** the new segments under the lock. The open tail is not kept: the text may grow and
//!    change its ids.
//!
//! Every position where ids are put together is a cut of this text, found by its own scan or by the
//! transfer rule, so the result is `E(text)` by factorization, whatever the trie held: a stale, an
//! evicted or a missing node costs time only. Nothing is linked before everything is encoded, so an
//! error or a panic of the encoder leaves no trace.
//!
//! Cost: one `memcmp` over what is known, and scan plus encoding of what is new and of the segment or two
//! before it. A text that is known to begin like an earlier one [goes on](Engine::resume) from a node of that
//! one's way: the same steps, on what follows that node.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cuts::{CutPolicy, Opening, Segment, Weakness};
use crate::encoder::{Encoder, Encoders, Part, available_threads};
use crate::error::Error;
use crate::places::{self, Piece};
use crate::trace::{Path, Trace};
use crate::trie::{Checkpoints, Chunk, Place, Step, Trie};

/// Ids of one text, and how many of them were not computed for this call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The ids of the whole text.
    pub ids: Vec<u32>,
    /// How many leading ids were taken from checkpoints of earlier texts.
    pub kept: usize,
}

impl From<Trace> for Encoded {
    fn from(trace: Trace) -> Self {
        Encoded {
            kept: trace.kept(),
            ids: trace.ids_from(0),
        }
    }
}

/// What an engine holds and what it has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Nodes of the trie.
    pub nodes: usize,
    /// Distinct chunks the nodes refer to.
    pub chunks: usize,
    /// Bytes of nodes and chunks.
    pub bytes: usize,
    /// The bound on `bytes`.
    pub budget: usize,
    /// Nodes evicted.
    pub evictions: u64,
    /// Texts encoded.
    pub texts: u64,
    /// Texts of which a beginning was known.
    pub hits: u64,
    /// Ids taken from checkpoints at the beginning of a text.
    pub kept_tokens: u64,
    /// Ids taken from checkpoints of the same segment in another place.
    pub shared_tokens: u64,
    /// Ids computed.
    pub encoded_tokens: u64,
}

/// One tokenizer backend with its checkpoints.
///
/// Shared by threads without further locking; see the module for what a call costs.
pub struct Engine {
    encoders: Encoders,
    policy: CutPolicy,
    checkpoints: Checkpoints,
    budget: usize,
    hasher: RandomState,
    counters: Counters,
    weakness: Weakness,
}

#[derive(Default)]
struct Counters {
    texts: AtomicU64,
    hits: AtomicU64,
    kept: AtomicU64,
    shared: AtomicU64,
    encoded: AtomicU64,
}

/// Nodes fetched under one lock: few at first, as the descent may end at once.
const FIRST_BATCH: usize = 16;
const LARGEST_BATCH: usize = 512;
/// Nodes that are looked at for one to go on from.
const FARTHEST_BACK: usize = 64;

impl Engine {
    /// Loads what `backend_tokenizer.to_str()` returned; `budget` bounds the checkpoints in bytes.
    ///
    /// # Errors
    /// If the backend cannot be loaded.
    pub fn from_json(json: &str, budget: usize) -> Result<Self, Error> {
        Self::load(json, budget, available_threads())
    }

    /// The same with another bound on threads; see [`Encoders::load`].
    ///
    /// # Errors
    /// If the backend cannot be loaded.
    pub fn load(json: &str, budget: usize, threads: NonZero<usize>) -> Result<Self, Error> {
        Self::of(Encoders::load(json, threads)?, budget, Weakness::None, None)
    }

    /// An engine with a rule switched off, or another segment length: for tests and measurements.
    ///
    /// # Errors
    /// If the backend cannot be loaded.
    #[doc(hidden)]
    pub fn weakened(
        json: &str,
        budget: usize,
        weakness: Weakness,
        min_segment: Option<usize>,
    ) -> Result<Self, Error> {
        Self::of(Encoders::from_json(json)?, budget, weakness, min_segment)
    }

    fn of(
        encoders: Encoders,
        budget: usize,
        weakness: Weakness,
        min_segment: Option<usize>,
    ) -> Result<Self, Error> {
        let mut policy = CutPolicy::weakened(&encoders, weakness)?;
        if let Some(bytes) = min_segment {
            policy = policy.with_min_segment(bytes);
        }
        Ok(Engine {
            encoders,
            policy,
            checkpoints: Checkpoints::new(),
            budget,
            hasher: RandomState::new(),
            counters: Counters::default(),
            weakness,
        })
    }

    /// The bound on the bytes of checkpoints.
    pub fn budget(&self) -> usize {
        self.budget
    }

    /// Number of ids, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.encoders.oracle().vocab_size()
    }

    /// The contents of the added tokens, by id.
    pub fn added_tokens(&self) -> Vec<String> {
        let mut tokens: Vec<_> = self
            .encoders
            .oracle()
            .tokenizer()
            .get_added_tokens_decoder()
            .into_iter()
            .collect();
        tokens.sort_unstable_by_key(|(id, _)| *id);
        tokens.into_iter().map(|(_, token)| token.content).collect()
    }

    /// The encoders of this backend.
    pub fn encoders(&self) -> &Encoders {
        &self.encoders
    }

    /// Where texts of this backend are cut, and why not elsewhere.
    pub fn policy(&self) -> &CutPolicy {
        &self.policy
    }

    /// The ids of `text`, reusing and leaving checkpoints in `namespace`.
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses the text.
    pub fn encode(&self, namespace: u64, text: &str) -> Result<Encoded, Error> {
        self.trace(namespace, text).map(Encoded::from)
    }

    /// The same, in the form in which the next text can [go on](Engine::resume) from it.
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses the text.
    pub fn trace(&self, namespace: u64, text: &str) -> Result<Trace, Error> {
        let traced = if self.budget == 0 || !self.policy.has_cuts() {
            let mut ids = Vec::new();
            self.encoders.encode(text, &mut ids)?;
            (Trace::from(ids), 0)
        } else {
            match self.walk(Walk::new(self, namespace, text))? {
                Some(traced) => traced,
                None => (Trace::from(self.encode_full(text)?), 0),
            }
        };
        Ok(self.counted(traced))
    }

    /// The ids of a text that begins with the same `common` bytes as the one that `earlier` is of, without a
    /// look at most of them. `text_from` gives the text from a byte on. None if there is no cut to go on from.
    ///
    /// Both texts agree up to the end of a node of `earlier`, and that end is a cut of this text by the
    /// transfer rule. So the ids before are those of that node and the ones before it, and what follows is
    /// encoded like a text of its own that begins as the rule says.
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses what follows.
    pub fn resume(
        &self,
        namespace: u64,
        earlier: &Trace,
        common: usize,
        text_from: impl FnOnce(usize) -> String,
    ) -> Result<Option<Trace>, Error> {
        if self.budget == 0 {
            return Ok(None);
        }
        let path = earlier.path();
        // The frontier is at most so far back; what it is exactly matters little.
        let frontier = common.saturating_sub(self.policy.hold_back());
        let within = path.within(frontier);
        let mut places = (within.saturating_sub(FARTHEST_BACK)..within).rev();
        let place = places.find_map(|at| {
            // The end of a node is a cut by what the next one begins with.
            let (passed, next) = (path.get(at)?, path.get(at + 1)?);
            let opening = next.step.chunk.opening();
            let anchor = opening.anchor().map(|anchor| passed.bytes + anchor);
            let holds = self.policy.transfers(anchor, frontier);
            holds.then_some((at + 1, passed.bytes, opening))
        });
        let Some((nodes, start, opening)) = place else {
            return Ok(None);
        };
        let text = text_from(start);
        let walk = Walk {
            path: path.take(nodes),
            opening,
            ..Walk::new(self, namespace, &text)
        };
        let traced = self.walk(walk)?;
        Ok(traced.map(|traced| self.counted(traced)))
    }

    /// The ids of `text` in one call of the `tokenizers` crate: the oracle.
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses the text.
    pub fn encode_full(&self, text: &str) -> Result<Vec<u32>, Error> {
        let mut ids = Vec::new();
        self.encoders.oracle().encode(text, &mut ids)?;
        Ok(ids)
    }

    /// The ids of `text`, and where they are around the characters `asked` for, which are sorted.
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses the text.
    pub fn places(&self, text: &str, asked: &[usize]) -> Result<(Encoded, Vec<Piece>), Error> {
        let placed = places::places(&self.encoders, &self.policy, text, asked)?;
        let (ids, pieces) = (placed.ids, placed.pieces);
        self.counters.count(ids.len(), 0, 0);
        Ok((Encoded { ids, kept: 0 }, pieces))
    }

    /// What is held, and what was done so far.
    pub fn statistics(&self) -> Statistics {
        let holdings = self.checkpoints.holdings();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            nodes: holdings.nodes,
            chunks: holdings.chunks,
            bytes: holdings.bytes,
            budget: self.budget,
            evictions: holdings.evictions,
            texts: load(&self.counters.texts),
            hits: load(&self.counters.hits),
            kept_tokens: load(&self.counters.kept),
            shared_tokens: load(&self.counters.shared),
            encoded_tokens: load(&self.counters.encoded),
        }
    }

    /// Forgets all checkpoints.
    pub fn clear(&self) {
        self.checkpoints.with(Trie::clear);
    }

    /// Forgets the checkpoints of one namespace.
    pub fn drop_namespace(&self, namespace: u64) {
        self.checkpoints.with(|trie| trie.drop_namespace(namespace));
    }

    /// The result, and how many ids behind the kept ones came from elsewhere in the trie.
    /// None if a part that is the rest of a word cannot be encoded apart.
    fn walk(&self, mut walk: Walk<'_, '_>) -> Result<Option<(Trace, usize)>, Error> {
        let text = walk.text;
        let unknown = walk.run();
        let mut kept = walk.path.ids();
        let mut shared = 0;

        let known_chunks = self.chunks_of(text, &unknown);
        let (tail, opening) = unknown
            .last()
            .map_or((walk.end, walk.opening), |(segment, _)| {
                (segment.end, segment.next)
            });
        let part = |start, end, opening: Opening| Part {
            text: &text[start..end],
            rest: opening.is_rest() && self.weakness != Weakness::RestIsWhole,
        };
        // What nobody knows, in the order of the text, and the open tail.
        let parts: Vec<Part> = unknown
            .iter()
            .zip(&known_chunks)
            .filter(|(_, known)| known.is_none())
            .map(|((segment, _), _)| part(segment.start, segment.end, segment.opening))
            .chain((tail < text.len()).then(|| part(tail, text.len(), opening)))
            .collect();
        let mut encoded = match self.encoders.encode_all(&parts) {
            Ok(encoded) => encoded.into_iter(),
            // Only the fast encoder knows the rest of a word, and it does not take every text.
            Err(_) if parts.iter().any(|part| part.rest) => return Ok(None),
            Err(error) => return Err(error),
        };

        let mut new = Vec::with_capacity(unknown.len());
        let mut all_known = true;
        for ((segment, hash), known) in unknown.iter().zip(known_chunks) {
            new.push(if let Some(chunk) = known {
                match all_known {
                    true => kept += chunk.ids().len(),
                    false => shared += chunk.ids().len(),
                }
                chunk
            } else {
                all_known = false;
                let ids = encoded.next().unwrap_or_default();
                let segment_text = &text[segment.start..segment.end];
                Arc::new(Chunk::new(segment_text, &ids, *hash, segment.opening))
            });
        }
        let mut tail: Vec<u32> = encoded.next().unwrap_or_default();

        let mut linked = Vec::new();
        if !(walk.path.is_empty() && new.is_empty()) {
            let link =
                |trie: &mut Trie| trie.link(walk.namespace, walk.path.steps(), &new, self.budget);
            linked = self.checkpoints.with(link).unwrap_or_default();
        }
        let mut path = walk.path;
        let unlinked = new.split_off(linked.len());
        for (node, chunk) in linked.into_iter().zip(new) {
            path.push(Step { node, chunk });
        }
        // Without a node there is nothing to go on from.
        for chunk in unlinked.iter().rev() {
            tail.splice(0..0, chunk.ids().iter().copied());
        }
        Ok(Some((Trace::new(path, tail, kept), shared)))
    }

    fn counted(&self, (trace, shared): (Trace, usize)) -> Trace {
        self.counters.count(trace.len(), trace.kept(), shared);
        trace
    }

    /// The chunks that hold the texts of these segments, wherever they stand.
    fn chunks_of(&self, text: &str, segments: &[(Segment, u64)]) -> Vec<Option<Arc<Chunk>>> {
        if segments.is_empty() {
            return Vec::new();
        }
        let mut found = self
            .checkpoints
            .with(|trie| {
                segments
                    .iter()
                    .map(|(_, hash)| trie.chunk(*hash))
                    .collect::<Vec<_>>()
            })
            .unwrap_or_default();
        found.resize(segments.len(), None);
        for (chunk, (segment, _)) in found.iter_mut().zip(segments) {
            let text = &text[segment.start..segment.end];
            if chunk
                .as_ref()
                .is_some_and(|c| !c.holds(text, segment.opening))
            {
                *chunk = None;
            }
        }
        found
    }
}

impl Counters {
    fn count(&self, ids: usize, kept: usize, shared: usize) {
        let add = |counter: &AtomicU64, n: usize| {
            counter.fetch_add(n as u64, Ordering::Relaxed);
        };
        add(&self.texts, 1);
        add(&self.hits, usize::from(kept > 0));
        add(&self.kept, kept);
        add(&self.shared, shared);
        add(&self.encoded, ids - kept - shared);
    }
}

/// The way of one text through the trie.
struct Walk<'e, 't> {
    engine: &'e Engine,
    namespace: u64,
    text: &'t str,
    /// The nodes that may be used: all their ends are cuts of the text. Those that it begins with may lie
    /// before `text`, which is then the rest of it.
    path: Path,
    /// Where in `text` the last of them ends.
    end: usize,
    /// How the text from there on begins.
    opening: Opening,
}

impl<'e, 't> Walk<'e, 't> {
    fn new(engine: &'e Engine, namespace: u64, text: &'t str) -> Self {
        Walk {
            engine,
            namespace,
            text,
            path: Path::default(),
            end: 0,
            opening: Opening::Fixed,
        }
    }

    /// Walks as far as the trie knows the text; returns the closed segments behind, with hashes.
    fn run(&mut self) -> Vec<(Segment, u64)> {
        'descend: loop {
            let mut aside = self.descend().into_iter();
            let mut segments = self
                .engine
                .policy
                .segments(self.text, self.end, self.opening);
            while let Some(segment) = segments.next() {
                // The bytes agree as far as those set aside go; the ends may not.
                let same = aside.next().filter(|step| {
                    segment.start + step.chunk.text().len() == segment.end
                        && step.chunk.opening() == segment.opening
                });
                if let Some(step) = same {
                    self.advance(step, segment.next);
                    continue;
                }
                // Not on the way of the descent: the rest of it was for other texts.
                aside = Vec::new().into_iter();
                let hash = self.hash(segment);
                if let Some(step) = self.child(segment, hash) {
                    self.advance(step, segment.next);
                    continue 'descend;
                }
                let mut unknown = vec![(segment, hash)];
                unknown.extend(segments.map(|segment| (segment, self.hash(segment))));
                return unknown;
            }
            return Vec::new();
        }
    }

    /// Steps 1 and 2: along the most recent children as far as the bytes agree, then back to the
    /// last node whose end is a cut of this text. Returns the nodes set aside: their text agrees, but
    /// whether they end at cuts is not known.
    fn descend(&mut self) -> Vec<Step> {
        let bytes = self.text.as_bytes();
        let mut passed: Vec<Step> = Vec::new();
        let mut common = self.end;
        let mut limit = FIRST_BATCH;
        let parting = 'compare: loop {
            let place = passed.last().map_or(self.place(), |s| Place::Node(s.node));
            let mut batch = Vec::with_capacity(limit);
            self.engine
                .checkpoints
                .with(|trie| trie.follow(place, limit, &mut batch));
            let fetched = batch.len();
            for step in batch {
                let expected = step.chunk.text().as_bytes();
                let rest = &bytes[common..];
                if !rest.starts_with(expected) {
                    common += common_prefix(rest, expected);
                    break 'compare Some(step);
                }
                common += expected.len();
                passed.push(step);
            }
            if fetched < limit {
                break None;
            }
            limit = (2 * limit).min(LARGEST_BATCH);
        };

        // The end of a node is a cut by what the *next* node on the way begins with.
        let frontier = self.engine.policy.frontier(bytes, common);
        let mut end = self.end + passed.iter().map(|s| s.chunk.text().len()).sum::<usize>();
        let mut usable = passed.len();
        let mut next = parting.as_ref();
        while usable > 0 {
            let opening = next.map(|step| step.chunk.opening());
            let anchor = opening.and_then(Opening::anchor).map(|a| end + a);
            if next.is_some() && self.engine.policy.transfers(anchor, frontier) {
                self.opening = opening.unwrap_or_default();
                break;
            }
            usable -= 1;
            next = Some(&passed[usable]);
            end -= passed[usable].chunk.text().len();
        }
        let aside = passed.split_off(usable);
        passed.into_iter().for_each(|step| self.path.push(step));
        self.end = end;
        aside
    }

    fn place(&self) -> Place {
        self.path
            .last()
            .map_or(Place::Root(self.namespace), |step| Place::Node(step.node))
    }

    fn advance(&mut self, step: Step, next: Opening) {
        self.end += step.chunk.text().len();
        self.opening = next;
        self.path.push(step);
    }

    /// The key of a segment. Salted with the namespace, so that no chunk is shared between two:
    /// finding one would tell by its speed what another tenant has sent.
    fn hash(&self, segment: Segment) -> u64 {
        let text = &self.text[segment.start..segment.end];
        self.engine
            .hasher
            .hash_one((self.namespace, segment.opening, text))
    }

    /// The child of the last node that holds this segment.
    fn child(&self, segment: Segment, hash: u64) -> Option<Step> {
        let place = self.place();
        self.engine
            .checkpoints
            .with(|trie| trie.child(place, hash))
            .flatten()
            .filter(|step| {
                let text = &self.text[segment.start..segment.end];
                step.chunk.holds(text, segment.opening)
            })
    }
}

/// Length of the common prefix of two byte strings.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = a
        .chunks_exact(BLOCK)
        .zip(b.chunks_exact(BLOCK))
        .take_while(|(x, y)| x == y)
        .count()
        * BLOCK;
    blocks
        + a[blocks..]
            .iter()
            .zip(&b[blocks..])
            .take_while(|(x, y)| x == y)
            .count()
}
