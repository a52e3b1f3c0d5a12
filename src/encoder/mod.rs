//! The seam between the engine and whatever turns text into token ids.
//!
//! An [`Encoder`] is a pure function of the text: the ids of `encode(text, add_special_tokens=False)`
//! of the backend it was made from, with no truncation, no padding and no dropout. Everything above
//! (cuts, trie, engine) relies on nothing else.

mod hf;

pub use hf::HfEncoder;

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
