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
mod parallel;
mod split;

pub use fast::FastEncoder;
pub use hf::{HfEncoder, Offsets};
pub use split::Refusal;

use std::fmt;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

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
    threads: usize,
    loading: [Duration; 2],
}

impl Encoders {
    /// Loads what `backend_tokenizer.to_str()` returned.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        let start = Instant::now();
        let oracle = HfEncoder::from_json(json)?;
        let parsed = start.elapsed();
        Ok(Encoders {
            fast: FastEncoder::new(json, &oracle),
            oracle,
            threads: thread::available_parallelism().map_or(1, usize::from),
            loading: [parsed, start.elapsed() - parsed],
        })
    }

    /// The same with another bound on the threads at work in this process, the calling one included.
    /// The default is the processors that the process may use, by affinity and cgroup quota.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZero<usize>) -> Self {
        self.threads = threads.get();
        self
    }

    /// What loading took: the `tokenizers` crate, then the tables of the fast encoder.
    pub fn loading(&self) -> [Duration; 2] {
        self.loading
    }

    /// The ids of each text, in order; long ones on several threads.
    ///
    /// # Errors
    /// If the backend refuses one of the texts.
    pub fn encode_all(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, Error> {
        parallel::encode_all(self, texts, self.threads)
    }

    /// How many threads may encode at a time in this process.
    pub fn threads(&self) -> usize {
        self.threads
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

impl fmt::Display for Encoders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "encoder:       {}", self.name())?;
        match &self.fast {
            Ok(fast) => write!(f, ", tables of {:.1} MB", fast.bytes() as f64 * 1e-6)?,
            Err(why) => write!(f, ": {why}")?,
        }
        write!(f, "\nthreads:       at most {}", self.threads)
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
