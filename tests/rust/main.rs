//! Integration tests of the core: no Python, no network, no files but the optional real models.
//!
//! The oracle of every test is one call of the `tokenizers` crate over the whole text.
//! `TURNTRIE_ROUNDS` sets the number of random cases per tokenizer, `TURNTRIE_SEED` the first seed,
//! `TURNTRIE_MODELS` a folder of real tokenizers (`*/tokenizer.json` or `*.json`).

mod chunks;
mod encoders;
mod eviction;
mod exactness;
mod faults;
mod forks;
mod harness;
mod matching;
mod models;
mod mutants;
mod pathologies;
mod policies;
mod rng;
mod texts;
mod threads;
mod verification;
mod zoo;
