//! The oracle engine: the `tokenizers` crate, on a private copy of the backend.
//!
//! transformers leaves truncation, padding and `encode_special_tokens` set on the backend it shares
//! with its callers; the copy made here has none of them, so a text always has one encoding.

use std::sync::OnceLock;

use serde_json::Value;
use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer,
    TokenizerImpl,
};

use super::Encoder;
use crate::error::Error;

/// Where a token begins and ends.
pub type Offsets = (usize, usize);

/// [`Encoder`] over the `tokenizers` crate.
pub struct HfEncoder {
    tokenizer: Tokenizer,
    local_offsets: OnceLock<bool>,
}

/// What the crate makes of a backend.
///
/// Of a model it first makes a tree of values, to see which kind it is, and then the model. For the kind
/// that nearly all are, the crate is asked for that kind at once: the same code reads the same text, without
/// the tree, in half the time. If it is another kind, that fails, and the crate finds out.
fn load(json: &str) -> tokenizers::Result<Tokenizer> {
    type OfBpe = TokenizerImpl<
        BPE,
        NormalizerWrapper,
        PreTokenizerWrapper,
        PostProcessorWrapper,
        DecoderWrapper,
    >;
    match serde_json::from_str::<OfBpe>(json) {
        Ok(tokenizer) => Ok(tokenizer.into()),
        Err(_) => json.parse(),
    }
}

impl HfEncoder {
    /// Loads what `backend_tokenizer.to_str()` returned.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let mut tokenizer = load(json)
            .map_err(|e| Error::new(format!("the tokenizer backend cannot be loaded: {e}")))?;
        tokenizer
            .with_truncation(None)
            .map_err(|e| Error::new(e.to_string()))?;
        tokenizer.with_padding(None);
        Ok(HfEncoder {
            tokenizer,
            local_offsets: OnceLock::new(),
        })
    }

    /// The private copy of the backend.
    pub(crate) fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Where in `text`, in characters, its id of this index begins. Costs more than encoding it.
    pub fn offset_of(&self, text: &str, index: usize) -> Option<usize> {
        let encoding = self.tokenizer.encode_char_offsets(text, false).ok()?;
        encoding.get_offsets().get(index).map(|(start, _)| *start)
    }

    /// The ids of `text`, and where each begins and ends in it, in characters. Costs more than encoding.
    ///
    /// # Errors
    /// If the backend refuses the text.
    pub fn encode_with_offsets(&self, text: &str) -> Result<(Vec<u32>, Vec<Offsets>), Error> {
        let encoding = self
            .tokenizer
            .encode_char_offsets(text, false)
            .map_err(|e| Error::new(format!("the tokenizer refuses the text: {e}")))?;
        Ok((encoding.get_ids().to_vec(), encoding.get_offsets().to_vec()))
    }

    /// Whether no offset depends on where in a text its token stands, but for being moved by it.
    pub fn has_local_offsets(&self) -> bool {
        *self.local_offsets.get_or_init(|| {
            let added = self.tokenizer.get_added_tokens_decoder();
            let processor = serde_json::to_value(self.tokenizer.get_post_processor());
            added.values().all(|token| !token.rstrip)
                && processor.is_ok_and(|p| !trims_unless_first(&p))
        })
    }

    /// Number of ids, added tokens included.
    pub fn vocab_size(&self) -> usize {
        self.tokenizer.get_vocab_size(true)
    }
}

/// Whether a post-processor, or one within, trims blanks but not the one it put at the start.
fn trims_unless_first(processor: &Value) -> bool {
    match processor {
        Value::Object(fields) => {
            let is_set = |name: &str| fields.get(name).and_then(Value::as_bool) == Some(true);
            is_set("trim_offsets") && is_set("add_prefix_space")
                || fields.values().any(trims_unless_first)
        }
        Value::Array(items) => items.iter().any(trims_unless_first),
        _ => false,
    }
}

impl Encoder for HfEncoder {
    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<(), Error> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|e| Error::new(format!("the tokenizer refuses the text: {e}")))?;
        out.extend_from_slice(encoding.get_ids());
        Ok(())
    }

    fn name(&self) -> &'static str {
        "tokenizers"
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::Tokenizer;

    use super::load;

    /// What the crate itself loads, or its error.
    fn spelled(tokenizer: tokenizers::Result<Tokenizer>) -> Result<String, String> {
        tokenizer
            .and_then(|tokenizer| tokenizer.to_string(false))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_loaded_is_what_the_crate_loads() {
        let bpe = |model: &str| format!(r#""model": {{{model}}}"#);
        let vocab = r#""vocab": {"a": 0, "b": 1, "ab": 2, "<t>": 3, "é": 4}"#;
        let models = [
            bpe(&format!(
                r#""type": "BPE", {vocab}, "merges": [["a", "b"]]"#
            )),
            bpe(&format!(r#""type": "BPE", {vocab}, "merges": ["a b"]"#)),
            bpe(&format!(r#"{vocab}, "merges": ["a b"], "type": "BPE""#)),
            bpe(&format!(r#"{vocab}, "merges": ["a b"]"#)),
            bpe(&format!(
                r#""type": "BPE", "dropout": 0.1, "unk_token": "a", "fuse_unk": true, "byte_fallback": true,
                "ignore_merges": true, "continuing_subword_prefix": "", "end_of_word_suffix": "b",
                {vocab}, "merges": []"#
            )),
            bpe(&format!(
                r#""type": "BPE", {vocab}, "merges": [["a", "x"]]"#
            )),
            bpe(&format!(r#""type": "BPE", {vocab}"#)),
            bpe(&format!(
                r#""type": "WordLevel", "unk_token": "a", {vocab}"#
            )),
            bpe(&format!(
                r#""type": "WordPiece", "unk_token": "a", "continuing_subword_prefix": "",
                "max_input_chars_per_word": 9, {vocab}"#
            )),
            bpe(r#""type": "Unigram", "unk_id": 0, "vocab": [["a", -1.5], ["b", -2.0]]"#),
            bpe(r#""type": "Other", "vocab": {}"#),
            String::from(r#""version": "1.0""#),
        ];
        let added = r#"{"id": 3, "content": "<t>", "single_word": false, "lstrip": true, "rstrip": false,
            "normalized": false, "special": true}, {"id": 9, "content": "new", "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": true, "special": false}"#;
        let mut loaded = 0;
        for model in &models {
            for rest in [
                r#""added_tokens": []"#.to_owned(),
                format!(
                    r#""version": "1.0", "truncation": null, "padding": null, "added_tokens": [{added}],
                    "normalizer": {{"type": "NFC"}}, "pre_tokenizer": {{"type": "ByteLevel",
                    "add_prefix_space": false, "trim_offsets": true, "use_regex": true}},
                    "post_processor": null, "decoder": null"#
                ),
                r#""version": "2.0", "added_tokens": []"#.to_owned(),
            ] {
                let json = format!("{{{rest}, {model}}}");
                let ours = spelled(load(&json));
                assert_eq!(ours, spelled(json.parse()), "{json}");
                loaded += usize::from(ours.is_ok());
            }
        }
        assert!(loaded >= 14, "{loaded}");
    }
}
