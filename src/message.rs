//! A message of a conversation, and the other variables of a call, as a template sees them, with what
//! is computed from them once.
//!
//! Conversations grow, and each call passes all of their messages again, and the same tools. Whoever
//! recognises one from an earlier call hands over the same [`Message`] or [`Variables`], whose shape and
//! weight need no second look. They never change; what was changed is another one. Cheap to clone.
//!
//! A conversation is a [lineage](Lineage) of them ([`Messages`]), which the next turn shares, and, while it is
//! rendered, the list of values that the template sees ([`Growing`]).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use minijinja::Value;

use crate::lineage::Lineage;
use crate::semantics::Dict;
use crate::shape::{self, MessageShape, Words};

/// See the module.
#[derive(Clone, Debug)]
pub struct Message(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    value: Value,
    weight: u64,
    fingerprint: u64,
    /// The shape for the template that asked first: a conversation seldom meets two.
    shape: OnceLock<(u64, MessageShape)>,
}

impl Message {
    /// A message of converted fields.
    pub fn new(fields: Dict) -> Self {
        let value = Value::from_object(fields);
        let mut fingerprint = DefaultHasher::new();
        sample(&value, &mut fingerprint);
        Message(Arc::new(Inner {
            weight: weight(&value),
            fingerprint: fingerprint.finish(),
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

    /// Whether it seems to say the same as another one: certain if not, else a good guess.
    pub fn resembles(&self, other: &Message) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.fingerprint == other.0.fingerprint
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

/// The messages of a conversation. Cheap to clone, and to go on with after that: conversations share what
/// they have in common.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    list: Lineage<Message>,
    weight: u64,
}

impl Messages {
    /// Goes on with a message.
    pub fn push(&mut self, message: Message) {
        self.weight += message.weight();
        self.list.push(message);
    }

    /// How many messages.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The messages in order.
    pub fn iter(&self) -> impl Iterator<Item = &Message> + Clone {
        self.list.iter()
    }

    /// The message at a place.
    pub fn get(&self, at: usize) -> Option<&Message> {
        self.list.get(at)
    }

    /// The messages from a place on.
    pub fn skip(&self, count: usize) -> impl Iterator<Item = &Message> {
        self.list.skip(count)
    }

    /// Bytes of their texts, and some for everything else.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The first `count` messages.
    #[must_use]
    pub fn take(&self, count: usize) -> Messages {
        if count >= self.list.len() {
            return self.clone();
        }
        let dropped: u64 = self.skip(count).map(Message::weight).sum();
        Messages {
            weight: self.weight - dropped,
            list: self.list.take(count),
        }
    }

    /// How many leading messages [resemble](Message::resembles) those of `other`.
    pub fn resembling(&self, other: &Messages) -> usize {
        self.leading(other, Message::resembles)
    }

    /// How many leading messages are the very ones of `other`.
    pub fn common(&self, other: &Messages) -> usize {
        self.leading(other, |a, b| Arc::ptr_eq(&a.0, &b.0))
    }

    /// How many leading messages are pairwise equal; those that were pushed once need no look.
    fn leading(&self, other: &Messages, equal: impl Fn(&Message, &Message) -> bool) -> usize {
        let known = self.list.common(&other.list);
        let pairs = self.list.skip(known).zip(other.list.skip(known));
        known + pairs.take_while(|(a, b)| equal(a, b)).count()
    }
}

impl FromIterator<Message> for Messages {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut list = Messages::default();
        messages.into_iter().for_each(|message| list.push(message));
        list
    }
}

/// A conversation as it grows, with the list that a template sees. That list is lent: as long as nobody
/// else holds it when the conversation goes on, it is not copied.
#[derive(Clone, Debug, Default)]
pub struct Growing {
    messages: Messages,
    values: Arc<Vec<Value>>,
}

impl Growing {
    /// The messages.
    pub fn messages(&self) -> &Messages {
        &self.messages
    }

    /// What a template sees of them.
    pub fn values(&self) -> &Arc<Vec<Value>> {
        &self.values
    }

    /// Goes on with a message.
    pub fn push(&mut self, message: Message) {
        Arc::make_mut(&mut self.values).push(message.value().clone());
        self.messages.push(message);
    }

    /// Forgets all messages but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        if count < self.messages.len() {
            self.messages = self.messages.take(count);
            Arc::make_mut(&mut self.values).truncate(count);
        }
    }
}

impl From<Messages> for Growing {
    fn from(messages: Messages) -> Self {
        let values = messages.iter().map(|message| message.value().clone());
        Growing {
            values: Arc::new(values.collect()),
            messages,
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

/// Bytes of a text that its sample looks at, at its start and at its end.
const SAMPLE: usize = 64;

/// Feeds a hasher what is quickly seen of a value: texts by their lengths and ends, containers by their items.
fn sample(value: &Value, hasher: &mut DefaultHasher) {
    if let Some(text) = value.as_str() {
        let text = text.as_bytes();
        text.len().hash(hasher);
        text[..text.len().min(SAMPLE)].hash(hasher);
        text[text.len().saturating_sub(SAMPLE)..].hash(hasher);
    } else if let Some(dict) = value.downcast_object_ref::<Dict>() {
        for (key, value) in dict.entries() {
            key.as_str().hash(hasher);
            sample(value, hasher);
        }
    } else if let Some(items) = value.downcast_object_ref::<Vec<Value>>() {
        items.len().hash(hasher);
        items.iter().for_each(|item| sample(item, hasher));
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
