//! Growing chat conversations to token ids, exactly, at the cost of what is new.
//!
//! The rendered text is the key: a chat template is rendered natively ([`template`], with Python's
//! rules for values in [`semantics`]), the text is matched byte by byte against a prefix trie of what
//! was encoded before ([`trie`]), and only the tail behind the last safe cut ([`cuts`]) is encoded
//! ([`encoder`]). [`engine`] puts the four together; [`mask`] tells which tokens `generation` tags wrote.
//! Nothing here knows Python; the binding, behind the feature `python`, extracts, detaches, calls and wraps.

#![deny(unsafe_code)]

pub mod call;
pub mod cuts;
pub mod encoder;
pub mod engine;
pub mod error;
pub mod ledger;
pub mod lineage;
pub mod locate;
pub mod mask;
pub mod message;
pub mod places;
pub mod process;
pub mod sampler;
pub mod semantics;
pub mod shape;
pub mod template;
pub mod trace;
pub mod trie;
pub mod verify;

#[cfg(feature = "python")]
mod python;
