//! One call of a chat template: the messages, the other variables, and the clock.

use std::sync::Arc;

use minijinja::Value;

use crate::message::{Message, Variables};
use crate::semantics::Dict;
use crate::shape::{self, Key, Words};

/// Name of the context entry that holds the texts for `strftime_now`; no template can spell it.
pub const CLOCK: &str = "strftime_now()";

/// What a template is rendered with, as owned values. Cheap to clone, but for a reference a message.
#[derive(Clone)]
pub struct Call {
    /// The conversation.
    pub messages: Vec<Message>,
    /// All other variables of the template.
    pub variables: Variables,
    /// Texts for `strftime_now` by format, as of this call.
    pub clock: Arc<Dict>,
}

impl Call {
    /// The aspects of this call that a template with these `words` can branch on.
    pub fn shape(&self, words: &Words) -> Vec<Key> {
        shape::keys(&self.messages, &self.variables, words)
    }

    /// The context of the template.
    pub fn into_context(self) -> Value {
        let mut entries = Vec::with_capacity(self.variables.entries().len() + 2);
        // First, so that no variable of the caller can hide it.
        entries.push((Value::from(CLOCK), Value::from_dyn_object(self.clock)));
        let messages: Vec<Value> = self.messages.iter().map(|m| m.value().clone()).collect();
        entries.push((Value::from("messages"), Value::from_object(messages)));
        entries.extend_from_slice(self.variables.entries());
        Value::from_object(Dict::new(entries))
    }
}
