//! One call of a chat template: the messages, the other variables, and the clock.

use std::sync::Arc;

use minijinja::Value;

use crate::message::{Growing, Messages, Variables};
use crate::semantics::Dict;
use crate::shape::{self, Key, Words};

/// Name of the context entry that holds the texts for `strftime_now`; no template can spell it.
pub const CLOCK: &str = "strftime_now()";

/// What a template is rendered with, as owned values. Cheap to clone.
#[derive(Clone)]
pub struct Call {
    /// The conversation, with the list of it that the template sees.
    pub conversation: Growing,
    /// All other variables of the template.
    pub variables: Variables,
    /// Texts for `strftime_now` by format, as of this call.
    pub clock: Arc<Dict>,
}

/// A call for later: without the list, which the conversation needs back to go on cheaply.
#[derive(Clone)]
pub struct PastCall {
    messages: Messages,
    variables: Variables,
    clock: Arc<Dict>,
}

impl Call {
    /// The conversation.
    pub fn messages(&self) -> &Messages {
        self.conversation.messages()
    }

    /// The aspects of this call that a template with these `words` can branch on, but for those of the
    /// first `known` messages.
    pub fn shape(&self, words: &Words, known: usize) -> Vec<Key> {
        shape::keys(self.messages(), &self.variables, words, known)
    }

    /// The context of the template.
    pub fn context(&self) -> Value {
        let mut entries = Vec::with_capacity(self.variables.entries().len() + 2);
        // First, so that no variable of the caller can hide it.
        let clock = Value::from_dyn_object(Arc::clone(&self.clock));
        entries.push((Value::from(CLOCK), clock));
        let messages = Value::from_dyn_object(Arc::clone(self.conversation.values()));
        entries.push((Value::from("messages"), messages));
        entries.extend_from_slice(self.variables.entries());
        Value::from_object(Dict::new(entries))
    }

    /// The call for later.
    pub fn past(&self) -> PastCall {
        PastCall {
            messages: self.messages().clone(),
            variables: self.variables.clone(),
            clock: Arc::clone(&self.clock),
        }
    }
}

impl PastCall {
    /// The messages.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// The variables.
    pub fn variables(&self) -> &Variables {
        &self.variables
    }

    /// The call once more.
    pub fn again(&self) -> Call {
        Call {
            conversation: self.messages.clone().into(),
            variables: self.variables.clone(),
            clock: Arc::clone(&self.clock),
        }
    }
}
