//! Growing chat conversations to token ids, exactly, at the cost of what is new.

#![deny(unsafe_code)]

pub mod cuts;
pub mod encoder;
pub mod engine;
pub mod error;
pub mod semantics;
pub mod template;
pub mod trie;
