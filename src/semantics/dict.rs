//! An insertion-ordered mapping with string keys: the `dict` that templates see.
//!
//! Own type, not minijinja's map, for two reasons: methods and attributes must win over keys as they
//! do in Python, and a message has a handful of keys, for which a scan beats hashing. Bigger dicts
//! carry an index.

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use std::collections::HashMap;
use std::sync::Arc;

/// From this many entries on, a hash index is built.
const INDEXED_FROM: usize = 17;

/// A Python `dict` with string keys. Immutable, as everything is under jinja2's immutable sandbox.
#[derive(Debug)]
pub struct Dict {
    entries: Vec<(Value, Value)>,
    index: Option<HashMap<Box<str>, usize>>,
}

impl Dict {
    /// A dict of `entries`, whose keys are strings and differ from each other.
    pub fn new(entries: Vec<(Value, Value)>) -> Self {
        let index = (entries.len() >= INDEXED_FROM).then(|| {
            let keys = entries.iter().enumerate();
            keys.filter_map(|(at, (key, _))| Some((key.as_str()?.into(), at)))
                .collect()
        });
        Dict { entries, index }
    }

    /// A dict of `entries` in which a later entry replaces the value of an earlier one with the
    /// same key, as in a dict display. `None` if a key is not a plain string.
    pub(super) fn from_pairs(pairs: impl IntoIterator<Item = (Value, Value)>) -> Option<Self> {
        let mut entries: Vec<(Value, Value)> = Vec::new();
        let mut seen: HashMap<Box<str>, usize> = HashMap::new();
        for (key, value) in pairs {
            let text = key.as_str().filter(|_| !key.is_safe() && !is_bytes(&key))?;
            match seen.get(text) {
                Some(&at) => entries[at].1 = value,
                None => {
                    seen.insert(text.into(), entries.len());
                    entries.push((key, value));
                }
            }
        }
        Some(Dict::new(entries))
    }

    /// The entries in insertion order.
    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }

    /// The value under `key`.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        if let Some(index) = &self.index {
            return index.get(key).map(|&at| &self.entries[at].1);
        }
        self.entries
            .iter()
            .find(|(k, _)| k.as_str() == Some(key))
            .map(|(_, v)| v)
    }
}

fn is_bytes(value: &Value) -> bool {
    value.kind() == minijinja::value::ValueKind::Bytes
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_dicts_find_what_small_ones_find() {
        for size in [0, 1, INDEXED_FROM - 1, INDEXED_FROM, 1000] {
            let keys = (0..size).map(|at| (Value::from(format!("key {at}")), Value::from(at)));
            let dict = Dict::new(keys.collect());
            assert_eq!(dict.index.is_some(), size >= INDEXED_FROM);
            for at in 0..size {
                assert_eq!(dict.get(&format!("key {at}")), Some(&Value::from(at)));
            }
            assert_eq!(dict.get("key"), None);
        }
    }
}
