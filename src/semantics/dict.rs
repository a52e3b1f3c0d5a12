//! An insertion-ordered mapping with string keys: the `dict` that templates see.
//!
//! Own type, not minijinja's map, for two reasons: methods and attributes must win over keys as they
//! do in Python, and a message has a handful of keys, for which a scan beats hashing.

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use std::sync::Arc;

/// A Python `dict` with string keys. Immutable, as everything is under jinja2's immutable sandbox.
#[derive(Debug)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
}

impl Dict {
    /// A dict of `entries`, whose keys are strings and differ from each other.
    pub fn new(entries: Vec<(Value, Value)>) -> Self {
        Dict { entries }
    }

    /// The entries in insertion order.
    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries
            .iter()
            .find(|(k, _)| k.as_str() == Some(key))
            .map(|(_, v)| v)
    }
}

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key.as_str()?).cloned()
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.iter().map(|(k, _)| k.clone()).collect())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries.len())
    }
}
