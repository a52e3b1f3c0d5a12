//! The seam between the engine and whatever turns text into token ids.
//!
//! An [`Encoder`] is a pure function of the text: the ids of `encode(text, add_special_tokens=False)`
//! of the backend it was made from, with no truncation, no padding and no dropout. Everything above
//! (cuts, trie, engine) relies on nothing else.
//!
//! There are two. [`HfEncoder`] is the `tokenizers` crate itself, and the oracle. [`FastEncoder`]
//! understands byte-level and sentencepiece-like BPE and refuses every other pipeline. [`Encoders`]
//! holds both and takes the fast one where there is one.

mod added;
mod bpe;
mod fast;
mod hf;
mod normalizer;
mod split;

pub use fast::FastEncoder;
pub use hf::HfEncoder;
pub use split::Refusal;

use crate::error::Error;

/// A pure function from text to token ids.
pub trait Encoder: Send + Sync {
    /// Appends the ids of `text` to `out`. On an error `out` is left as it was.
    ///
    /// # Errors
    /// If the backend refuses the text.
    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<(), Error>;

    /// The name shown to users.
    fn name(&self) -> &'static str;
}

/// The encoders of one backend.
pub struct Encoders {
    oracle: HfEncoder,
    fast: Result<FastEncoder, Refusal>,
}

impl Encoders {
    /// Loads what `backend_tokenizer.to_str()` returned.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let oracle = HfEncoder::from_json(json)?;
        Ok(Encoders {
            fast: FastEncoder::new(json, &oracle),
            oracle,
        })
    }

    /// The `tokenizers` crate.
    pub fn oracle(&self) -> &HfEncoder {
        &self.oracle
    }

    /// The fast encoder, or why there is none for this backend.
    pub fn fast(&self) -> Result<&FastEncoder, &Refusal> {
        self.fast.as_ref()
    }
}

impl Encoder for Encoders {
    fn encode(&self, text: &str, out: &mut Vec<u32>) -> Result<(), Error> {
        match &self.fast {
            Ok(fast) if fast.encode(text, out) => Ok(()),
            _ => self.oracle.encode(text, out),
        }
    }

    fn name(&self) -> &'static str {
        match &self.fast {
            Ok(_) => "turntrie",
            Err(_) => self.oracle.name(),
        }
    }
}
