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
mod bytes;
mod fast;
mod finder;
mod hf;
mod normalizer;
mod parallel;
mod pool;
mod split;

pub use fast::FastEncoder;
use fast::Tables;
pub(crate) use fast::Whole;
pub(crate) use finder::Finder;
pub use hf::{HfEncoder, Offsets};
pub(crate) use normalizer::stays;
pub use split::Refusal;
pub(crate) use split::{Seam, Splitter};

use std::fmt;
use std::num::NonZero;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use bpe::Scratch;

/// A text to encode for itself.
#[derive(Clone, Copy, Debug)]
pub struct Part<'t> {
    /// The text.
    pub text: &'t str,
    /// Whether it begins with the rest of a plain piece, whose beginning another part ends with.
    pub rest: bool,
}

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
    /// Loads what `backend_tokenizer.to_str()` returned, for as many threads as there are processors that
    /// the process may use, by affinity and cgroup quota.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn from_json(json: &str) -> Result<Self, Error> {
        Self::load(json, available_threads())
    }

    /// The same with another bound on the threads at work in this process, the calling one included.
    ///
    /// # Errors
    /// If the `tokenizers` crate cannot load it.
    pub fn load(json: &str, threads: NonZero<usize>) -> Result<Self, Error> {
        let threads = threads.get();
        let (oracle, tables) = parallel::both(
            || timed(|| HfEncoder::from_json(json)),
            || timed(|| Tables::new(json)),
            threads,
        );
        let (oracle, parsed) = (oracle.0?, oracle.1);
        let (fast, joined) = timed(|| FastEncoder::of(tables.0, &oracle));
        Ok(Encoders {
            fast,
            oracle,
            threads,
            loading: [parsed, tables.1 + joined],
        })
    }

    /// What loading took: the `tokenizers` crate, and at the same time the tables of the fast encoder.
    pub fn loading(&self) -> [Duration; 2] {
        self.loading
    }

    /// The ids of each part, in order; long ones on several threads.
    ///
    /// # Errors
    /// If one of the parts is refused.
    pub fn encode_all(&self, parts: &[Part<'_>]) -> Result<Vec<Vec<u32>>, Error> {
        parallel::encode_all(|| Worker::new(self), parts, self.threads)
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

/// Encodes parts on one thread, all with the same work space.
struct Worker<'e> {
    fast: Option<(&'e FastEncoder, Scratch)>,
    oracle: &'e HfEncoder,
}

impl<'e> Worker<'e> {
    fn new(encoders: &'e Encoders) -> Self {
        let fast = encoders.fast().ok();
        Worker {
            fast: fast.map(|fast| (fast, fast.take_scratch())),
            oracle: &encoders.oracle,
        }
    }
}

impl parallel::Worker for Worker<'_> {
    fn encode(&mut self, part: Part<'_>, out: &mut Vec<u32>) -> Result<(), Error> {
        if let Some((fast, scratch)) = &mut self.fast
            && fast.encode_part(part, scratch, out)
        {
            return Ok(());
        }
        if part.rest {
            // Then nobody is wrong, and the whole text has to be encoded.
            return Err(Error::new("the crate encodes whole pieces".to_owned()));
        }
        self.oracle.encode(part.text, out)
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // What a panic leaves behind in it would become part of the next text.
        if let Some((fast, scratch)) = self.fast.take()
            && !thread::panicking()
        {
            fast.give_back(scratch);
        }
    }
}

/// The processors that the process may use.
pub(crate) fn available_threads() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
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
