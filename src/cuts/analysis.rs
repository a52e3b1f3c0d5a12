//! From the live backend to a [`CutPolicy`].
//!
//! The backend is asked, never a file: transformers rebuilds pipelines when it loads them, and the
//! `tokenizers` crate itself drops and renumbers added tokens. What is not understood costs cuts,
//! never exactness: the rule at raw added tokens needs nothing from normalizer, pre-tokenizer and
//! model except that the model is a pure function.

use serde_json::Value;
use tokenizers::{AddedToken, ModelWrapper};

use super::frontier::Frontier;
use super::{CutPolicy, MIN_SEGMENT, MIN_SEGMENT_SLOW, Pipeline, Seams, Strip, Tokens, Weakness};
use crate::encoder::{Encoders, Finder};
use crate::error::Error;

impl CutPolicy {
    /// The policy of what `backend_tokenizer.to_str()` returned.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        Self::of(&Encoders::from_json(json)?)
    }

    /// The policy of a loaded backend.
    ///
    /// # Errors
    /// If no automaton can be built over the added tokens.
    pub fn of(encoders: &Encoders) -> Result<Self, Error> {
        Self::weakened(encoders, Weakness::None)
    }

    /// The policy with one rule switched off.
    #[doc(hidden)]
    pub fn weakened(encoders: &Encoders, weakness: Weakness) -> Result<Self, Error> {
        let tokenizer = encoders.oracle().tokenizer();
        // By id, for a reproducible automaton: the backend keeps them in a hash map.
        let mut added: Vec<(u32, AddedToken)> =
            tokenizer.get_added_tokens_decoder().into_iter().collect();
        added.sort_unstable_by_key(|(id, _)| *id);
        // Raw ones are searched in the raw text, late ones in what the normalizer made of it.
        let (late, raw): (Vec<_>, Vec<_>) = added
            .into_iter()
            .map(|(_, token)| token)
            .partition(|token| token.normalized);

        let normalizer = serde_json::to_value(tokenizer.get_normalizer()).map_err(unreadable)?;
        let pre_tokenizer =
            serde_json::to_value(tokenizer.get_pre_tokenizer()).map_err(unreadable)?;
        let all = || raw.iter().chain(&late);
        let pipeline = Pipeline {
            normalizer: outline(&normalizer, "normalizers"),
            pre_tokenizer: outline(&pre_tokenizer, "pretokenizers"),
            model: model_name(tokenizer.get_model()).to_owned(),
            raw: raw.len(),
            normalized: late.len(),
            left_strips: all().filter(|t| t.lstrip).count(),
            right_strips: all().filter(|t| t.rstrip).count(),
            single_words: all().filter(|t| t.single_word).count(),
        };

        let mut refusals = Vec::new();
        let mut at_raw = !raw.is_empty();
        let mut at_normalized = !late.is_empty();
        let mut inside = true;
        if !at_raw && !at_normalized {
            refusals.push("there are no added tokens".to_owned());
        }
        if let Some(why) = impurity(tokenizer.get_model()) {
            refusals.push(why);
            (at_raw, at_normalized, inside) = (false, false, false);
        }
        if pipeline.single_words > 0 && weakness != Weakness::NoSingleWord {
            refusals.push(format!(
                "{} added tokens are single_word, which looks at the text around a cut",
                pipeline.single_words
            ));
            (at_raw, at_normalized, inside) = (false, false, false);
        }
        if at_normalized && !is_identity(&normalizer) && weakness != Weakness::NormalizedAlways {
            refusals.push(format!(
                "not at the {} normalized added tokens: the normalizer changes the text first",
                late.len()
            ));
            at_normalized = false;
        }

        if inside && late.iter().any(|token| token.lstrip || token.rstrip) {
            refusals.push("not inside plain text: normalized added tokens strip blanks".to_owned());
            inside = false;
        }
        let blanks = raw.iter().any(|token| token.lstrip);
        let seams = if inside {
            Seams::new(encoders, blanks, weakness)
                .map_err(|why| refusals.push(format!("not inside plain text: {why}")))
                .ok()
        } else {
            None
        };

        Ok(CutPolicy {
            seams,
            frontier: Frontier::new(raw.iter().map(|t| t.content.as_str())),
            raw: at_raw.then(|| Tokens::new(&raw, weakness)).transpose()?,
            normalized: at_normalized
                .then(|| Tokens::new(&late, weakness))
                .transpose()?,
            min_segment: match encoders.fast() {
                Ok(_) => MIN_SEGMENT,
                Err(_) => MIN_SEGMENT_SLOW,
            },
            pipeline,
            refusals,
            weakness,
        })
    }
}

impl Tokens {
    fn new(tokens: &[AddedToken], weakness: Weakness) -> Result<Self, Error> {
        let contents: Vec<&str> = tokens.iter().map(|t| t.content.as_str()).collect();
        if contents.contains(&"") {
            return Err(Error::new("an added token is empty".to_owned()));
        }
        let finder = Finder::new(&contents)
            .map_err(|e| Error::new(format!("no automaton over the added tokens: {e}")))?;
        let strips = tokens
            .iter()
            .map(|t| Strip {
                left: t.lstrip && weakness != Weakness::NoStripLeft,
                right: t.rstrip,
            })
            .collect();
        Ok(Tokens { finder, strips })
    }
}

fn unreadable(e: impl std::fmt::Display) -> Error {
    Error::new(format!("the tokenizer backend cannot be read: {e}"))
}

/// Whether a normalizer leaves every text as it is.
fn is_identity(normalizer: &Value) -> bool {
    match normalizer {
        Value::Null => true,
        _ if normalizer["type"] == "Sequence" => normalizer["normalizers"]
            .as_array()
            .is_some_and(|parts| parts.iter().all(is_identity)),
        _ => false,
    }
}

/// Why the model might give one piece of text different ids at different times.
fn impurity(model: &ModelWrapper) -> Option<String> {
    match model {
        ModelWrapper::BPE(bpe) => bpe
            .dropout
            .map(|p| format!("the model drops merges at random (dropout {p})")),
        ModelWrapper::Unigram(unigram) => unigram
            .alpha
            .map(|alpha| format!("the model samples (alpha {alpha})")),
        ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_) => None,
    }
}

fn model_name(model: &ModelWrapper) -> &'static str {
    match model {
        ModelWrapper::BPE(_) => "BPE",
        ModelWrapper::Unigram(_) => "Unigram",
        ModelWrapper::WordPiece(_) => "WordPiece",
        ModelWrapper::WordLevel(_) => "WordLevel",
    }
}

/// The types of a component and of its parts: `Sequence(Split, ByteLevel)`.
fn outline(component: &Value, parts: &str) -> String {
    let Some(name) = component["type"].as_str() else {
        return "none".to_owned();
    };
    match component[parts].as_array() {
        Some(inner) => {
            let inner: Vec<String> = inner.iter().map(|part| outline(part, parts)).collect();
            format!("{name}({})", inner.join(", "))
        }
        None => name.to_owned(),
    }
}
