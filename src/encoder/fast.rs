//! The fast encoder: the same ids as the `tokenizers` crate, without its bookkeeping.
//!
//! The crate keeps for each byte of a text where it came from, and cuts those records anew at every
//! added token, at every match of a regex and at every token. Ids need none of it. This encoder goes
//! through the same stages over plain string slices:
//!
//! 1. added tokens, raw ([`added`](super::added)); 2. the normalizer, and normalized added tokens;
//! 3. pre-tokenization ([`split`](super::split)) into words; 4. BPE per word ([`bpe`](super::bpe)).
//!
//! Whether a backend can be encoded this way is decided when it is loaded, stage by stage, from the
//! live pipeline: what is not understood is refused with its name, and the `tokenizers` crate encodes.
//! Single texts go there as well: those over [`LONGEST`], where the crate has limits of its own, and
//! those that it cannot take apart. The self-check and the id oracle watch the rest.
//!
//! Threads share one encoder; each takes work space from a [`Pool`], for a call or for many texts.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokenizers::{ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

use super::added::{AddedTokens, Piece, Token};
use super::bpe::{self, Bpe, Model, Scratch};
use super::normalizer::{Normalizer, Parts};
use super::pool::Pool;
use super::split::{Gaps, Splitter};
use super::{HfEncoder, Part, Refusal};

/// Texts from this length on, in bytes, are encoded by the `tokenizers` crate: from several million
/// characters in one match on, its regex engine gives up.
const LONGEST: usize = 1 << 22;

/// GPT-2's split pattern, which the pre-tokenizer `ByteLevel` applies with `use_regex`.
const BYTE_LEVEL: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// See the module.
pub struct FastEncoder {
    raw: Option<AddedTokens>,
    normalizer: Normalizer,
    normalized: Option<AddedTokens>,
    /// The contents of normalized added tokens, as they are searched for.
    late: Vec<String>,
    words: Words,
    bpe: Bpe,
    pool: Pool<Scratch>,
}

/// How a plain piece becomes words.
enum Words {
    /// Stage by stage, each over the pieces of the one before.
    Split(Arc<[Splitter]>),
    /// One word, taken apart where no merge joins.
    Whole(Space),
}

/// What `Metaspace`, or a normalizer to the same end, does to the spaces of a piece.
///
/// Where they become U+2581, no piece has one afterwards, so it is all the same which of the two
/// characters stands for both. Here it is the space: text and vocabulary are spelled with it, no
/// character of an ordinary text changes, and nothing is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    /// Nothing.
    Kept,
    /// They become U+2581.
    Replaced,
    /// And one is put in front of the piece, if it has none.
    Prepended,
    /// And one is put in front of the piece if the text starts with it.
    PrependedFirst,
}

/// What a space becomes.
pub(super) const SPACE: char = '\u{2581}';

/// Where a piece of plain text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The text starts with it.
    First,
    /// Something comes before it.
    Inner,
    /// The text starts with it, but it is the rest of a piece whose beginning is encoded elsewhere.
    Rest,
}

/// What decides whether a plain piece may be encoded in two parts.
pub(crate) enum Whole<'e> {
    /// Stages of splitting.
    Split {
        stages: &'e Arc<[Splitter]>,
        /// NFC comes first.
        composed: bool,
        /// The contents of the tokens that are searched for between NFC and the stages.
        late: &'e [String],
    },
    /// The piece is one word, of ASCII characters that are mapped each for itself. Whether no merge
    /// joins two of them.
    Word(Box<dyn Fn(char, char) -> bool + 'e>),
}

/// A backend as far as the tables need it. What is searched for first, the added tokens, is asked of the
/// crate: it drops and renumbers some.
#[derive(Deserialize)]
struct Backend<'j> {
    normalizer: Option<NormalizerWrapper>,
    pre_tokenizer: Option<PreTokenizerWrapper>,
    #[serde(borrow)]
    model: Model<'j>,
}

/// What takes long to make, and needs nothing that the crate has loaded.
pub(super) struct Tables {
    normalizer: Normalizer,
    /// The normalizer without a last step that need not be done, unless something is searched behind it.
    early: Option<Normalizer>,
    words: Words,
    bpe: Bpe,
}

impl Tables {
    /// The tables of what `backend_tokenizer.to_str()` returned.
    pub(super) fn new(json: &str) -> Result<Self, Refusal> {
        let backend: Backend = serde_json::from_str(json)
            .map_err(|e| Refusal::new(format!("the model cannot be read: {e}")))?;
        let normalizer = Normalizer::new(backend.normalizer.as_ref());
        let mut early = None;
        let (words, bpe) = match Stages::of(backend.pre_tokenizer.as_ref(), &normalizer)? {
            Stages::Bytes(splitters) => {
                (Words::Split(splitters.into()), backend.model.byte_level()?)
            }
            Stages::Characters(mut space) => {
                early = normalizer.before_writing(" ", &SPACE.to_string());
                if early.is_some() && space == Space::Kept {
                    space = Space::Replaced;
                }
                let bpe = backend.model.characters(space != Space::Kept)?;
                (Words::Whole(space), bpe)
            }
        };
        Ok(Tables {
            normalizer,
            early,
            words,
            bpe,
        })
    }
}

impl FastEncoder {
    /// An encoder of what `backend_tokenizer.to_str()` returned, which `oracle` has loaded.
    ///
    /// # Errors
    /// Why the pipeline is not one that is understood.
    pub fn new(json: &str, oracle: &HfEncoder) -> Result<Self, Refusal> {
        Self::of(Tables::new(json), oracle)
    }

    /// The same of tables made before.
    pub(super) fn of(tables: Result<Tables, Refusal>, oracle: &HfEncoder) -> Result<Self, Refusal> {
        let tokenizer = oracle.tokenizer();
        if !matches!(tokenizer.get_model(), ModelWrapper::BPE(_)) {
            return Err(Refusal::new("the model is not a BPE".into()));
        }
        let Tables {
            mut normalizer,
            early,
            words,
            bpe,
        } = tables?;
        let (raw, normalized, late) = added_tokens(tokenizer, &normalizer)?;
        // Normalized added tokens are searched for in what the last step writes.
        if let (Some(early), None) = (early, &normalized) {
            normalizer = early;
        }
        let scratch = bpe.scratch();
        Ok(FastEncoder {
            raw,
            normalizer,
            normalized,
            late,
            words,
            bpe,
            pool: Pool::of(scratch),
        })
    }

    /// Bytes that the tables take.
    pub fn bytes(&self) -> usize {
        self.bpe.bytes()
    }

    /// A text of words that the vocabulary lists first.
    pub fn familiar(&self) -> String {
        self.bpe.familiar()
    }

    /// Appends the ids of `text`. False, with `out` as it was, if the `tokenizers` crate has to.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) -> bool {
        let mut scratch = self.take_scratch();
        let done = self.encode_part(Part { text, rest: false }, &mut scratch, out);
        self.give_back(scratch);
        done
    }

    /// The same for a part, with work space taken before.
    pub(super) fn encode_part(
        &self,
        part: Part<'_>,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> bool {
        if part.text.len() >= LONGEST {
            return false;
        }
        let place = if part.rest { Place::Rest } else { Place::First };
        let before = out.len();
        let done = self.encode_at(part.text, place, scratch, out);
        if !done {
            out.truncate(before);
        }
        done
    }

    /// Work space for one thread.
    pub(super) fn take_scratch(&self) -> Scratch {
        self.pool.take().unwrap_or_else(|| self.bpe.scratch())
    }

    /// Gives work space back.
    pub(super) fn give_back(&self, mut scratch: Scratch) {
        scratch.trim();
        self.pool.put(scratch);
    }

    /// What decides whether a plain piece may be encoded in two parts, for [`cuts`](crate::cuts).
    ///
    /// # Errors
    /// Why it never may.
    pub(crate) fn whole(&self) -> Result<Whole<'_>, &'static str> {
        let Some(parts) = self.normalizer.parts() else {
            return Err("the normalizer may look at more than one character");
        };
        match &self.words {
            Words::Split(stages) => Ok(Whole::Split {
                stages,
                composed: match parts {
                    Parts::Same => false,
                    Parts::Composed => true,
                    Parts::Mapped => return Err("the normalizer writes other characters"),
                },
                late: &self.late,
            }),
            Words::Whole(space) => {
                if self.bpe.takes_whole_words() {
                    return Err("a word that is a token is that token");
                }
                if parts == Parts::Composed {
                    return Err("the normalizer composes characters");
                }
                if self.normalized.is_some() {
                    return Err(
                        "there are normalized added tokens, behind which a word begins anew",
                    );
                }
                let mapped = |c: char| {
                    let text = self
                        .normalizer
                        .apply_to_rest(c.encode_utf8(&mut [0; 4]))
                        .into_owned();
                    match space {
                        Space::Kept => text,
                        _ => spaced(&text, false).into_owned(),
                    }
                };
                let ends: Vec<(Option<char>, Option<char>)> = (0..128_u8)
                    .map(|byte| {
                        let text = mapped(byte.into());
                        (text.chars().next(), text.chars().next_back())
                    })
                    .collect();
                Ok(Whole::Word(Box::new(move |first, second| {
                    let last = ends.get(first as usize).and_then(|ends| ends.1);
                    let next = ends.get(second as usize).and_then(|ends| ends.0);
                    matches!((last, next), (Some(a), Some(b)) if self.bpe.are_apart(a, b))
                })))
            }
        }
    }

    fn encode_at(
        &self,
        text: &str,
        place: Place,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) -> bool {
        let Some(tokens) = &self.raw else {
            return self.plain(text, place, scratch, out);
        };
        let mut done = true;
        let scanned = tokens.scan(text, |piece| match piece {
            Piece::Token(id) => out.push(id),
            Piece::Plain(start, end) => {
                let place = if start == 0 { place } else { Place::Inner };
                done &= self.plain(&text[start..end], place, scratch, out);
            }
        });
        done && scanned.is_ok()
    }

    /// A piece without raw added tokens.
    fn plain(&self, text: &str, place: Place, scratch: &mut Scratch, out: &mut Vec<u32>) -> bool {
        let text: &Cow<'_, str> = &match place {
            Place::Rest => self.normalizer.apply_to_rest(text),
            Place::First | Place::Inner => self.normalizer.apply(text),
        };
        if text.len() > bpe::LONGEST {
            return false;
        }
        let Some(tokens) = &self.normalized else {
            self.words(text, place, scratch, out);
            return true;
        };
        let scanned = tokens.scan(text, |piece| match piece {
            Piece::Token(id) => out.push(id),
            Piece::Plain(start, end) => {
                let place = if start == 0 { place } else { Place::Inner };
                self.words(&text[start..end], place, scratch, out);
            }
        });
        scanned.is_ok()
    }

    /// A piece without added tokens. One of which the normalizer left nothing is dropped, as by the
    /// crate: nothing is put in front of it either.
    fn words(&self, text: &str, place: Place, scratch: &mut Scratch, out: &mut Vec<u32>) {
        if text.is_empty() {
            return;
        }
        match &self.words {
            Words::Split(stages) => {
                self.split(stages, text, 0, text.len(), scratch, out);
                self.bpe.finish(text, scratch, out);
            }
            Words::Whole(space) => {
                let prepend = match space {
                    Space::Kept | Space::Replaced => false,
                    Space::Prepended => place != Place::Rest,
                    Space::PrependedFirst => place == Place::First,
                };
                match space {
                    Space::Kept => self.bpe.encode_parts(text, scratch, out),
                    _ => self.bpe.encode_parts(&spaced(text, prepend), scratch, out),
                }
            }
        }
    }

    /// Hands the words of `text[start..end]` to the model.
    fn split(
        &self,
        stages: &[Splitter],
        text: &str,
        start: usize,
        end: usize,
        scratch: &mut Scratch,
        out: &mut Vec<u32>,
    ) {
        let Some((stage, rest)) = stages.split_first() else {
            return self.bpe.encode(text, start, end, scratch, out);
        };
        stage.split(&text[start..end], |a, b| match rest {
            [] => self.bpe.encode(text, start + a, start + b, scratch, out),
            rest => self.split(rest, text, start + a, start + b, scratch, out),
        });
    }
}

/// The text spelled with spaces; with one in front, if it is to have one there.
fn spaced(text: &str, prepend: bool) -> Cow<'_, str> {
    let prepend = prepend && !text.starts_with([' ', SPACE]);
    match (prepend, text.contains(SPACE)) {
        (false, false) => Cow::Borrowed(text),
        (true, false) => Cow::Owned(format!(" {text}")),
        (false, true) => Cow::Owned(text.replace(SPACE, " ")),
        (true, true) => Cow::Owned(format!(" {text}").replace(SPACE, " ")),
    }
}

/// The added tokens of both scans, and the contents that the second one searches for.
type Scans = (Option<AddedTokens>, Option<AddedTokens>, Vec<String>);

/// The added tokens of both scans.
fn added_tokens(tokenizer: &Tokenizer, normalizer: &Normalizer) -> Result<Scans, Refusal> {
    let (mut raw, mut normalized) = (Vec::new(), Vec::new());
    for (id, token) in tokenizer.get_added_tokens_decoder() {
        if token.single_word {
            return Err(Refusal::new("an added token is single_word".into()));
        }
        let flags = Token {
            id,
            lstrip: token.lstrip,
            rstrip: token.rstrip,
        };
        if token.normalized {
            let content = normalizer.apply(&token.content).into_owned();
            normalized.push((content, flags));
        } else {
            raw.push((token.content, flags));
        }
    }
    let late = normalized
        .iter()
        .map(|(content, _)| content.clone())
        .collect();
    Ok((AddedTokens::new(raw)?, AddedTokens::new(normalized)?, late))
}

/// What pre-tokenization was found to be.
enum Stages {
    Bytes(Vec<Splitter>),
    Characters(Space),
}

impl Stages {
    fn of(
        pre_tokenizer: Option<&PreTokenizerWrapper>,
        normalizer: &Normalizer,
    ) -> Result<Self, Refusal> {
        let json = serde_json::to_value(pre_tokenizer)
            .map_err(|e| Refusal::new(format!("the pre-tokenizer cannot be read: {e}")))?;
        let mut parts = Vec::new();
        flatten(&json, &mut parts);
        // A split at a character that the normalizer leaves none of does nothing.
        parts.retain(|part| {
            let at = part["pattern"]["String"].as_str();
            !(part["type"] == "Split" && at.is_some_and(|at| normalizer.removes(at)))
        });
        match parts.split_last() {
            None => Ok(Stages::Characters(Space::Kept)),
            Some((last, [])) if last["type"] == "Metaspace" => {
                Ok(Stages::Characters(space(last, normalizer)?))
            }
            Some((last, splits)) if last["type"] == "ByteLevel" => {
                if last["add_prefix_space"] != Value::Bool(false) {
                    return Err(Refusal::new("the pre-tokenizer adds a prefix space".into()));
                }
                let mut stages: Vec<Splitter> =
                    splits.iter().map(splitter).collect::<Result<_, _>>()?;
                // The crate takes an absent flag for a set one.
                if last["use_regex"] != Value::Bool(false) {
                    stages.push(Splitter::new(BYTE_LEVEL, Gaps::Kept)?);
                }
                Ok(Stages::Bytes(stages))
            }
            Some((last, _)) => Err(unknown(last)),
        }
    }
}

fn unknown(part: &Value) -> Refusal {
    let name = part["type"].as_str().unwrap_or("of an unknown kind");
    Refusal::new(format!("the pre-tokenizer is or ends with {name}"))
}

/// The parts of a pre-tokenizer, sequences resolved.
fn flatten(json: &Value, parts: &mut Vec<Value>) {
    match (json["type"].as_str(), json["pretokenizers"].as_array()) {
        (Some("Sequence"), Some(inner)) => inner.iter().for_each(|part| flatten(part, parts)),
        (None, _) => {}
        _ => parts.push(json.clone()),
    }
}

fn splitter(part: &Value) -> Result<Splitter, Refusal> {
    match part["type"].as_str() {
        Some("Digits") => Splitter::digits(part["individual_digits"] == Value::Bool(true)),
        Some("Split") => {
            let gaps = match (part["behavior"].as_str(), part["invert"].as_bool()) {
                (Some("Isolated"), Some(_)) => Gaps::Kept,
                (Some("Removed"), Some(true)) => Gaps::Dropped,
                _ => return Err(Refusal::new("a split does not isolate its matches".into())),
            };
            match part["pattern"]["Regex"].as_str() {
                Some(pattern) => Splitter::new(pattern, gaps),
                None => Err(Refusal::new("a split has no regex".into())),
            }
        }
        _ => Err(unknown(part)),
    }
}

fn space(part: &Value, normalizer: &Normalizer) -> Result<Space, Refusal> {
    if part["replacement"] != Value::String(SPACE.into()) {
        return Err(Refusal::new("Metaspace writes another space".into()));
    }
    if part["split"] != Value::Bool(false) {
        return Err(Refusal::new("Metaspace splits".into()));
    }
    match part["prepend_scheme"].as_str() {
        Some("always") => Ok(Space::Prepended),
        Some("never") => Ok(Space::Replaced),
        // Which piece comes first is asked of the original text.
        Some("first") if normalizer.is_identity() => Ok(Space::PrependedFirst),
        _ => Err(Refusal::new("Metaspace prepends at unknown places".into())),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::encoder::{Encoders, Worker};

    /// A tokenizer of `a`, `b`, `ab` and a token for each byte.
    fn encoders() -> Encoders {
        let bytes: String = (0..256)
            .map(|b| format!(r#""<0x{b:02X}>": {b}, "#))
            .collect();
        let json = format!(
            r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": null, "post_processor": null, "decoder": null, "model": {{"type": "BPE",
            "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": true, "ignore_merges": false,
            "vocab": {{{bytes} "a": 256, "b": 257, "ab": 258}}, "merges": [["a", "b"]]}}}}"#
        );
        Encoders::from_json(&json).expect("a backend")
    }

    #[test]
    fn work_space_is_given_back_unless_there_was_a_panic() {
        let encoders = encoders();
        let fast = encoders.fast().expect("a fast encoder");
        drop(Worker::new(&encoders));
        let first = fast.pool.take().expect("what was given back");
        assert!(fast.pool.take().is_none());
        fast.give_back(first);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _worker = Worker::new(&encoders);
            panic!("in the middle of a text");
        }));
        assert!(panicked.is_err());
        assert!(fast.pool.take().is_none());
        let mut ids = Vec::new();
        assert!(fast.encode("abc", &mut ids));
        assert_eq!(ids, [258, 0x63]);
    }
}
