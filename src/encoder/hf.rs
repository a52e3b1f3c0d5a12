//! The oracle engine: the `tokenizers` crate, on a private copy of the backend.
//!
//! transformers leaves truncation, padding and `encode_special_tokens` set on the backend it shares
//! with its callers; the copy made here has none of them, so a text always has one encoding.

use std::sync::OnceLock;

use serde_json::Value;
use tokenizers::Tokenizer;

use super::Encoder;
use crate::error::Error;

/// Where a token begins and ends.
pub type Offsets = (usize, usize);

/// [`Encoder`] over the `tokenizers` crate.
pub struct HfEncoder {
    tokenizer: Tokenizer,
    local_offsets: OnceLock<bool>,
}

impl HfEncoder {
    /// Loads what `backend_tokenizer.to_str()` returned.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let mut tokenizer: Tokenizer = json
            .parse()
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
