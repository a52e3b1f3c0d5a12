//! A message of a conversation, and the other variables of a call, as a template sees them, with what
//! is computed from them once.
//!
//! Conversations grow, and each call passes all of their messages again, and the same tools. Whoever
//! recognises one from an earlier call hands over the same [`Message`] or [`Variables`], whose shape and
//! weight need no second look. They never change; what was changed is another one. Cheap to clone.

use std::sync::{Arc, OnceLock};

use minijinja::Value;

use crate::semantics::Dict;
use crate::shape::{self, MessageShape, Words};

/// See the module.
#[derive(Clone, Debug)]
pub struct Message(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    value: Value,
    weight: u64,
    /// The shape for the template that asked first: a conversation seldom meets two.
    shape: OnceLock<(u64, MessageShape)>,
}

impl Message {
    /// A message of converted fields.
    pub fn new(fields: Dict) -> Self {
        let value = Value::from_object(fields);
        Message(Arc::new(Inner {
            weight: weight(&value),
            value,
            shape: OnceLock::new(),
        }))
    }

    /// What the template sees.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Bytes of its texts, and some for everything else.
    pub fn weight(&self) -> u64 {
        self.0.weight
    }

    /// Its shape, for a template with these words.
    pub fn shape(&self, words: &Words) -> MessageShape {
        let compute = || (words.id(), MessageShape::of(&self.0.value, words));
        let (id, shape) = self.0.shape.get_or_init(compute);
        if *id == words.id() {
            *shape
        } else {
            MessageShape::of(&self.0.value, words)
        }
    }
}

/// All variables of a template but the messages: tools, special tokens, switches.
#[derive(Clone, Debug)]
pub struct Variables(Arc<Entries>);

#[derive(Debug)]
struct Entries {
    entries: Vec<(Value, Value)>,
    /// The shape for the template that asked first.
    shape: OnceLock<(u64, u64)>,
}

impl Variables {
    /// Variables by name.
    pub fn new(entries: Vec<(Value, Value)>) -> Self {
        Variables(Arc::new(Entries {
            entries,
            shape: OnceLock::new(),
        }))
    }

    /// Names and values.
    pub fn entries(&self) -> &[(Value, Value)] {
        &self.0.entries
    }

    /// Their shape, for a template with these words.
    pub fn shape(&self, words: &Words) -> u64 {
        let compute = || (words.id(), shape::of_variables(&self.0.entries, words));
        let (id, shape) = self.0.shape.get_or_init(compute);
        if *id == words.id() {
            *shape
        } else {
            shape::of_variables(&self.0.entries, words)
        }
    }
}

/// Bytes of the texts in a value, and some for everything else.
pub(crate) fn weight(value: &Value) -> u64 {
    if let Some(text) = value.as_str() {
        return text.len() as u64;
    }
    if let Some(dict) = value.downcast_object_ref::<Dict>() {
        let entries = dict.entries().iter();
        return entries.map(|(_, value)| 16 + weight(value)).sum();
    }
    match value.downcast_object_ref::<Vec<Value>>() {
        Some(items) => items.iter().map(|item| 16 + weight(item)).sum(),
        None => 16,
    }
}
