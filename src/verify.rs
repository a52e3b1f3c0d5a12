//! Ids against the oracle: a check when a backend is loaded, and sampled calls ever after.
//!
//! Cuts are a theorem and the encoder is deterministic, so ids should never differ from a full encode
//! by the `tokenizers` crate. This module looks anyway. [`Verified::new`] encodes a few dozen adversarial
//! texts both ways before the engine is trusted. Afterwards texts are sampled, warm paths
//! included, and encoded in full on a thread of its own, without the interpreter (see
//! [`sampler`](crate::sampler)). A difference switches incremental
//! encoding off for this backend: from then on every text is encoded in full.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cuts::{Cut, CutKind};
use crate::encoder::Part;
use crate::engine::{Engine, Statistics};
use crate::error::Error;
use crate::sampler::Sampler;
use crate::trace::{Path, Trace};

/// Divergences kept for reports.
const KEPT: usize = 8;

/// A text whose ids differ between the incremental path and a full encode.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The text; private to the user.
    pub text: String,
    /// What the incremental path gave.
    pub got: Vec<u32>,
    /// What a full encode gives.
    pub want: Vec<u32>,
    /// Where in the text, in characters, the first id of `want` that differs begins.
    pub offset: Option<usize>,
}

impl Divergence {
    /// Index of the first id that differs.
    pub fn first(&self) -> usize {
        let pairs = self.got.iter().zip(&self.want);
        pairs.take_while(|(a, b)| a == b).count()
    }
}

/// A fault put in on purpose, to prove that it would be found. It shows in texts that hold
/// [`FAULT_MARK`], so that the self-check passes. Never in use otherwise.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A chunk holds a wrong id.
    Chunk,
    /// The trie hands out a path with an id missing.
    Trie,
    /// The encoder gives a wrong last id.
    Encoder,
}

/// See [`Fault`].
#[doc(hidden)]
pub const FAULT_MARK: char = '\u{1f41b}';

/// An engine under observation.
pub struct Verified {
    engine: Engine,
    fault: Option<Fault>,
    baseline: Statistics,
    observation: Observation,
}

#[derive(Default)]
struct Observation {
    sampler: Sampler,
    checked: AtomicU64,
    incremental_off: AtomicBool,
    divergences: Mutex<Vec<Divergence>>,
}

/// What the id oracle has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Texts encoded again in full.
    pub checked: u64,
    /// Texts that differed.
    pub different: usize,
    /// Whether incremental encoding is still on.
    pub incremental: bool,
}

impl Verified {
    /// Puts `engine` under observation, after a check on adversarial texts.
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses one of those texts.
    pub fn new(engine: Engine) -> Result<Self, Error> {
        let mut verified = Verified {
            engine,
            fault: None,
            baseline: Statistics::default(),
            observation: Observation::default(),
        };
        verified.self_check()?;
        verified.baseline = verified.engine.statistics();
        Ok(verified)
    }

    /// The engine itself.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The ids of `text`; see [`Engine::trace`].
    ///
    /// # Errors
    /// If the `tokenizers` crate refuses the text.
    pub fn trace(&self, namespace: u64, text: &str) -> Result<Trace, Error> {
        if self.observation.incremental_off.load(Ordering::Relaxed) {
            return Ok(self.engine.encode_full(text)?.into());
        }
        let trace = self.engine.trace(namespace, text)?;
        match self.fault {
            Some(fault) if text.contains(FAULT_MARK) => Ok(fault.applied_to(&trace)),
            _ => Ok(trace),
        }
    }

    /// The ids of a text that begins like an earlier one; see [`Engine::resume`].
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
        let off = self.observation.incremental_off.load(Ordering::Relaxed);
        if off || self.fault.is_some() {
            return Ok(None);
        }
        self.engine.resume(namespace, earlier, common, text_from)
    }

    /// The same engine with a fault.
    #[doc(hidden)]
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Lets the id oracle look at a text and its ids, which are made for it, if it is this text's turn.
    pub fn observe(self: &Arc<Self>, seen: impl FnOnce() -> (String, Vec<u32>)) {
        let o = &self.observation;
        if o.incremental_off.load(Ordering::Relaxed) || !o.sampler.is_due() {
            return;
        }
        let (text, ids) = seen();
        Sampler::start(
            Arc::clone(self),
            |this| &this.observation.sampler,
            move |this| this.verify(text, ids),
        );
    }

    /// What was checked so far.
    pub fn verification(&self) -> Verification {
        Verification {
            checked: self.observation.checked.load(Ordering::Relaxed),
            different: self.divergences().len(),
            incremental: !self.observation.incremental_off.load(Ordering::Relaxed),
        }
    }

    /// The first few texts that differed.
    pub fn divergences(&self) -> Vec<Divergence> {
        self.observation
            .divergences
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Statistics of the engine since it was put under observation.
    pub fn statistics(&self) -> Statistics {
        let (now, base) = (self.engine.statistics(), &self.baseline);
        Statistics {
            evictions: now.evictions - base.evictions,
            texts: now.texts - base.texts,
            hits: now.hits - base.hits,
            kept_tokens: now.kept_tokens - base.kept_tokens,
            shared_tokens: now.shared_tokens - base.shared_tokens,
            encoded_tokens: now.encoded_tokens - base.encoded_tokens,
            ..now
        }
    }

    fn verify(&self, text: String, got: Vec<u32>) {
        // A text that the oracle refuses has no ids to compare with.
        if let Ok(want) = self.engine.encode_full(&text) {
            self.observation.checked.fetch_add(1, Ordering::Relaxed);
            if want != got {
                self.diverged(text, got, want);
            }
        }
    }

    fn diverged(&self, text: String, got: Vec<u32>, want: Vec<u32>) {
        let mut divergence = Divergence {
            text,
            got,
            want,
            offset: None,
        };
        let oracle = self.engine.encoders().oracle();
        divergence.offset = oracle.offset_of(&divergence.text, divergence.first());
        self.observation
            .incremental_off
            .store(true, Ordering::Relaxed);
        let mut kept = self
            .observation
            .divergences
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(divergence);
        }
    }

    /// Encodes adversarial texts through the trie, cuts them at every cut of the policy, and looks
    /// whether cuts that the frontier lets through are cuts of the other text as well.
    fn self_check(&self) -> Result<(), Error> {
        const NAMESPACE: u64 = u64::MAX;
        let texts = adversarial_texts(&self.engine.added_tokens());
        for (round, text) in texts.iter().enumerate() {
            let want = self.engine.encode_full(text)?;
            let mut outcomes = vec![self.engine.encode(NAMESPACE, text)?.ids];
            let cuts: Vec<_> = self.engine.policy().cuts(text, 0).collect();
            let seam = |cut: &&Cut| matches!(cut.kind, CutKind::Parted | CutKind::Unjoined);
            let at_token = cuts.iter().filter(|cut| !seam(cut)).nth(round % 4);
            let at_seam = cuts.iter().filter(seam).nth(round * 3 % 16);
            for cut in at_token.into_iter().chain(at_seam) {
                let mut parts = self.engine.encode_full(&text[..cut.at])?;
                let right = &text[cut.at..];
                if cut.kind == CutKind::Unjoined {
                    let rest = Part {
                        text: right,
                        rest: true,
                    };
                    let encoders = self.engine.encoders();
                    parts.extend(encoders.encode_all(&[rest])?.into_iter().flatten());
                } else {
                    parts.extend(self.engine.encode_full(right)?);
                }
                outcomes.push(parts);
            }
            self.observation.checked.fetch_add(1, Ordering::Relaxed);
            let wrong = outcomes.into_iter().find(|got| *got != want);
            let wrong = wrong.or_else(|| self.transfers_wrongly(text, round).then(Vec::new));
            if let Some(got) = wrong {
                self.diverged(text.clone(), got, want);
                break;
            }
        }
        self.engine.drop_namespace(NAMESPACE);
        Ok(())
    }

    /// Whether some cut of `text` passes for one of a text that parts from it, and is none there.
    fn transfers_wrongly(&self, text: &str, round: usize) -> bool {
        let policy = self.engine.policy();
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        // Every border of the last token and a few others: where beginnings of tokens are left over.
        starts.iter().rev().take(24 + round).any(|&length| {
            let other = format!("{}\n?", &text[..length]);
            let shared = common_prefix(text, &other);
            let frontier = policy.frontier(other.as_bytes(), shared);
            let there: Vec<usize> = policy.cuts(&other, 0).map(|cut| cut.at).collect();
            policy
                .cuts(text, 0)
                .filter(|cut| cut.kind != CutKind::Normalized)
                .filter(|cut| policy.transfers(Some(cut.anchor), frontier))
                .any(|cut| !there.contains(&cut.at))
        })
    }
}

fn common_prefix(a: &str, b: &str) -> usize {
    let pairs = a.char_indices().zip(b.chars());
    let same = pairs.take_while(|((_, x), y)| x == y).last();
    same.map_or(0, |((at, c), _)| at + c.len_utf8())
}

impl Fault {
    fn applied_to(self, trace: &Trace) -> Trace {
        let (mut ids, mut kept) = (trace.ids_from(0), trace.kept());
        match self {
            Fault::Chunk if kept > 0 => ids[0] ^= 1,
            Fault::Trie if kept > 0 => {
                kept -= 1;
                ids.remove(kept);
            }
            Fault::Encoder => {
                if let Some(last) = ids.last_mut() {
                    *last ^= 1;
                }
            }
            Fault::Chunk | Fault::Trie => {}
        }
        Trace::new(Path::default(), ids, kept)
    }
}

/// A growing, edited and branching text of added tokens, their beginnings, and what regexes, merges
/// and normalizers trip over.
fn adversarial_texts(added_tokens: &[String]) -> Vec<String> {
    const FRAGMENTS: [&str; 22] = [
        "user\n",
        "assistant\n\n",
        " \n",
        "\r\n",
        "\t\t",
        "   ",
        "hello world",
        "123456",
        "7",
        "it's",
        "é",
        "e\u{301}",
        "\u{1100}\u{1161}",
        "漢字",
        "かな",
        "👩🏽‍💻",
        "\u{a0}",
        "\u{2028}",
        "{\"a\": 1}",
        "def f(x):\n    return x\n",
        "<",
        "a-b_c.d/e",
    ];
    const TEXTS: usize = 28;
    // The first tokens of a vocabulary and its longest are the ones that templates use and that nest.
    let mut tokens: Vec<&str> = added_tokens.iter().take(12).map(String::as_str).collect();
    if let Some(longest) = added_tokens.iter().max_by_key(|t| t.len()) {
        tokens.push(longest);
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |n: usize| {
        // A linear congruential generator: the same texts in every process.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) as usize) % n.max(1)
    };
    let mut texts: Vec<String> = Vec::with_capacity(TEXTS);
    let mut text = String::new();
    for round in 0..TEXTS {
        if round % 7 == 6 {
            // Go on from an earlier text, cut anywhere.
            let earlier = &texts[below(texts.len())];
            text = earlier
                .chars()
                .take(below(earlier.chars().count() + 1))
                .collect();
        }
        for _ in 0..4 {
            text.push_str(FRAGMENTS[below(FRAGMENTS.len())]);
            if let Some(token) = tokens.get(below(tokens.len())) {
                match below(4) {
                    0 => text.extend(token.chars().take(below(token.chars().count()))),
                    _ => text.push_str(token),
                }
            }
        }
        texts.push(text.clone());
    }
    texts
}
