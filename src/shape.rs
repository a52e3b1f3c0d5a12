//! The shape of a call: what a chat template can branch on, without the contents.
//!
//! Rendering is proved construct by construct, and then checked against the reference once per shape:
//! a template is a program over roles, fields, types and a few switches, so two calls of the same
//! shape take the same branches. [`keys`] hashes, for each message, its role, which fields it has and
//! of what type, whether texts are empty, start or end in white space, or hold one of the template's
//! own search strings; for each neighbouring pair the two roles; and with every key the shape of the
//! remaining variables, small values included. Equal keys mean "already checked", so a key may be too
//! fine but should not be too coarse. Keys of dicts count by name only where the template spells the
//! name; the others are data, and count by the types of their values. Cost: O(messages), plus one
//! substring search per text and search string that may stand anywhere.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem::Finder;
use minijinja::Value;
use minijinja::value::ValueKind;

use crate::message::{Messages, Variables};
use crate::semantics::Dict;

/// Identifies one aspect of a call's shape, for one template.
pub type Key = u64;

/// A set of what is hashed in a few instructions.
pub(crate) type Set<T> = HashSet<T, BuildHasherDefault<Mix>>;

/// Hashes in a few instructions a word, since each call walks its whole conversation: a folded
/// multiplication of 64 by 64 bits. Not for input that wants to collide: whoever can choose a
/// conversation such that a check of it is skipped has spared nobody but himself that check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix(u64);

impl Mix {
    fn word(&mut self, word: u64) {
        const FACTOR: u128 = 0x9fb2_1c65_1e98_df25;
        let product = u128::from(self.0 ^ word) * FACTOR;
        #[expect(clippy::cast_possible_truncation, reason = "the two halves, folded")]
        let folded = (product as u64) ^ ((product >> 64) as u64);
        // Off zero, which would swallow the next word's multiplication.
        self.0 = folded.wrapping_add(0x2545_f491_4f6c_dd1d);
    }
}

impl Default for Mix {
    fn default() -> Self {
        Mix(0x517c_c1b7_2722_0a95)
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut buffer = [0; 8];
            buffer.copy_from_slice(word);
            self.word(u64::from_le_bytes(buffer));
        }
        let rest = words.remainder();
        let mut buffer = [0; 8];
        buffer[..rest.len()].copy_from_slice(rest);
        // At most seven bytes are left over: the eighth tells padding from zeros.
        buffer[7] = bytes.len().to_le_bytes()[0];
        self.word(u64::from_le_bytes(buffer));
    }

    fn write_u8(&mut self, value: u8) {
        self.word(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.word(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }

    fn finish(&self) -> u64 {
        // The low bits choose a bucket: every bit of the state counts in them.
        let mut last = *self;
        last.word(0);
        last.0
    }
}

/// The words of a template that can tell conversations apart.
#[derive(Debug)]
pub struct Words {
    id: u64,
    names: Set<String>,
    searches: Vec<(Search, Finder<'static>)>,
}

/// How a template looks for a string in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// At its beginning.
    Start,
    /// At its end.
    End,
    /// Anywhere.
    Anywhere,
}

/// More search strings than this are not told apart.
const MAX_SEARCHES: usize = 16;

impl Default for Words {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Words {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            names: Set::default(),
            searches: Vec::new(),
        }
    }
}

impl Words {
    /// Tells the words of one template from those of all others of this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Notes a name that the template may look up: an attribute or a literal string.
    pub fn name(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    /// Notes a string that the template searches texts for.
    pub fn search(&mut self, search: Search, needle: &str) {
        let known = |(s, n): &(Search, Finder<'_>)| *s == search && n.needle() == needle.as_bytes();
        if !needle.is_empty()
            && self.searches.len() < MAX_SEARCHES
            && !self.searches.iter().any(known)
        {
            let finder = Finder::new(needle.as_bytes()).into_owned();
            self.searches.push((search, finder));
        }
    }

    /// One bit for each search string that `text` has where the template looks.
    fn found_in(&self, text: &str) -> u32 {
        let text = text.as_bytes();
        let mut bits = 0;
        for (i, (search, finder)) in self.searches.iter().enumerate() {
            let found = match search {
                Search::Start => text.starts_with(finder.needle()),
                Search::End => text.ends_with(finder.needle()),
                Search::Anywhere => finder.find(text).is_some(),
            };
            bits |= u32::from(found) << i;
        }
        bits
    }
}

/// Texts up to this length count as switches: their value is part of the shape.
const SWITCH_LENGTH: usize = 32;

/// Containers below this depth count by their kind only.
const DEPTH: usize = 6;

/// The keys of a call: for each message its own and that of the pair it ends, and at last the pair of
/// the last message and the end. Those of the first `known` messages are left out.
pub fn keys(messages: &Messages, variables: &Variables, words: &Words, known: usize) -> Vec<Key> {
    let context = variables.shape(words);
    let known = known.min(messages.len());
    let mut keys = Vec::with_capacity(2 * (messages.len() - known) + 1);
    let last = known.checked_sub(1).and_then(|last| messages.get(last));
    let mut before = last.map_or(0, |message| message.shape(words).role);
    for message in messages.skip(known) {
        let MessageShape { structure, role } = message.shape(words);
        keys.push(pair(context, structure, 0));
        keys.push(pair(context, before, role));
        before = role;
    }
    keys.push(pair(context, before, 1));
    keys
}

fn pair(context: u64, before: u64, after: u64) -> Key {
    let mut hash = Mix::default();
    (context, before, after).hash(&mut hash);
    hash.finish()
}

/// What of the other variables a template can branch on.
pub fn of_variables(variables: &[(Value, Value)], words: &Words) -> u64 {
    let mut shape = Mix::default();
    for (name, value) in variables {
        name.as_str().hash(&mut shape);
        switch(value, words, &mut shape, 0);
    }
    shape.finish()
}

/// What of a message a template can branch on.
#[derive(Clone, Copy, Debug)]
pub struct MessageShape {
    structure: u64,
    role: u64,
}

impl MessageShape {
    /// The shape for a template with these words.
    pub fn of(message: &Value, words: &Words) -> Self {
        let mut shape = Mix::default();
        structure(message, words, &mut shape, 0);
        MessageShape {
            structure: shape.finish(),
            role: role_of(message),
        }
    }
}

fn role_of(message: &Value) -> u64 {
    let mut hash = Mix::default();
    match message.downcast_object_ref::<Dict>() {
        Some(dict) => dict.get("role").and_then(Value::as_str).hash(&mut hash),
        None => 0.hash(&mut hash),
    }
    hash.finish()
}

/// Kinds and features, not contents. Short texts under `role` and `type` are names, not contents.
fn structure(value: &Value, words: &Words, into: &mut Mix, depth: usize) {
    kind_of(value).hash(into);
    if depth > DEPTH {
        return;
    }
    if let Some(text) = value.as_str() {
        let blank = |c: Option<char>| c.is_some_and(char::is_whitespace);
        (
            text.is_empty(),
            blank(text.chars().next()),
            blank(text.chars().next_back()),
        )
            .hash(into);
        words.found_in(text).hash(into);
    } else if let Some(dict) = value.downcast_object_ref::<Dict>() {
        dict.entries().len().min(3).hash(into);
        let mut data = Few::default();
        for (key, value) in dict.entries() {
            match key.as_str() {
                Some(key) if depth == 0 || words.names.contains(key) => {
                    key.hash(into);
                    if matches!(key, "role" | "type") {
                        switch(value, words, into, depth + 1);
                    } else {
                        structure(value, words, into, depth + 1);
                    }
                }
                _ => data.insert(kind(value, words, depth)),
            }
        }
        data.hash_into(into);
    } else if let Some(list) = value.downcast_object_ref::<Vec<Value>>() {
        list.len().min(3).hash(into);
        let mut items = Few::default();
        for item in list {
            items.insert(kind(item, words, depth));
        }
        items.hash_into(into);
    } else if value.kind() == ValueKind::Bool {
        value.is_true().hash(into);
    }
}

/// One item's structure as a number.
fn kind(value: &Value, words: &Words, depth: usize) -> u64 {
    let mut hash = Mix::default();
    structure(value, words, &mut hash, depth + 1);
    hash.finish()
}

/// The set of structures among the items of a container: neither their order nor their number
/// matters. A few without an allocation.
#[derive(Default)]
struct Few {
    first: [u64; 8],
    len: usize,
    more: Vec<u64>,
}

impl Few {
    fn insert(&mut self, kind: u64) {
        if self.first[..self.len].contains(&kind) || self.more.contains(&kind) {
            return;
        }
        if self.len < self.first.len() {
            self.first[self.len] = kind;
            self.len += 1;
        } else {
            self.more.push(kind);
        }
    }

    fn hash_into(mut self, into: &mut Mix) {
        if self.more.is_empty() {
            let first = &mut self.first[..self.len];
            first.sort_unstable();
            first.hash(into);
        } else {
            self.more.extend_from_slice(&self.first);
            self.more.sort_unstable();
            self.more.hash(into);
        }
    }
}

/// Like [`structure`], with the value itself where it is small.
fn switch(value: &Value, words: &Words, into: &mut Mix, depth: usize) {
    match value.as_str() {
        Some(text) if text.len() <= SWITCH_LENGTH => text.hash(into),
        _ if value.kind() == ValueKind::Number => value.to_string().hash(into),
        _ => structure(value, words, into, depth),
    }
}

fn kind_of(value: &Value) -> u8 {
    match value.kind() {
        ValueKind::Undefined => 0,
        ValueKind::None => 1,
        ValueKind::Bool => 2,
        ValueKind::Number if value.is_integer() => 3,
        ValueKind::Number => 4,
        ValueKind::String => 5,
        ValueKind::Seq => 6,
        ValueKind::Map => 7,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    fn words() -> Words {
        let mut words = Words::default();
        for name in ["role", "content", "path"] {
            words.name(name);
        }
        words.search(Search::Anywhere, "</think>");
        words
    }

    fn message(role: &str, content: Value) -> Message {
        Message::new(Dict::new(vec![
            (Value::from("role"), Value::from(role)),
            (Value::from("content"), content),
        ]))
    }

    fn keys_of(messages: &[Message]) -> Vec<Key> {
        let messages = messages.iter().cloned().collect();
        keys(&messages, &Variables::new(Vec::new()), &words(), 0)
    }

    #[test]
    fn hashes_of_near_values_are_far_apart() {
        let hash = |value: &dyn Fn(&mut Mix)| {
            let mut into = Mix::default();
            value(&mut into);
            into.finish()
        };
        let mut seen = HashSet::new();
        let mut low = HashSet::new();
        for a in 0..200_u64 {
            for b in 0..200_u64 {
                let key = hash(&|into| (a, b).hash(into));
                assert!(seen.insert(key), "{a} {b}");
                low.insert(key & 0xffff);
            }
        }
        // 40,000 balls in 65,536 boxes fill about 30,000 of them.
        assert!(low.len() > 28_000, "{}", low.len());
        for text in ["", "\0", "\0\0", "role", "roles", "12345678", "12345678\0"] {
            assert!(seen.insert(hash(&|into| text.hash(into))), "{text:?}");
        }
    }

    #[test]
    fn the_kinds_of_many_items_are_a_set() {
        let set = |kinds: &[u64]| {
            let (mut few, mut into) = (Few::default(), Mix::default());
            kinds.iter().for_each(|&kind| few.insert(kind));
            few.hash_into(&mut into);
            into.finish()
        };
        for size in [0, 1, 7, 8, 9, 30] {
            let kinds: Vec<u64> = (1..=size).collect();
            let again: Vec<u64> = kinds.iter().rev().chain(&kinds).copied().collect();
            assert_eq!(set(&kinds), set(&again), "{size}");
            assert_ne!(set(&kinds), set(&[&kinds[..], &[99]].concat()), "{size}");
        }
    }

    #[test]
    fn contents_do_not_count_features_do() {
        let base = keys_of(&[message("user", Value::from("hello"))]);
        assert_eq!(base, keys_of(&[message("user", Value::from("good day"))]));
        for other in [
            message("assistant", Value::from("hello")),
            message("user", Value::from("")),
            message("user", Value::from(" hello")),
            message("user", Value::from("hello\n")),
            message("user", Value::from("a</think>b")),
            message("user", Value::from(())),
            message("user", Value::from_object(vec![Value::from("hello")])),
        ] {
            assert_ne!(base[0], keys_of(&[other])[0]);
        }
    }

    #[test]
    fn names_of_data_do_not_count() {
        let call = |name: &str, value: Value| {
            let arguments = Dict::new(vec![(Value::from(name), value)]);
            keys_of(&[message("assistant", Value::from_object(arguments))])
        };
        assert_eq!(call("a", Value::from("x")), call("b", Value::from("y")));
        assert_ne!(call("a", Value::from("x")), call("a", Value::from(1)));
        assert_ne!(call("a", Value::from("x")), call("path", Value::from("x")));
    }

    #[test]
    fn a_growing_conversation_adds_few_keys() {
        let turn = [
            message("user", Value::from("a")),
            message("assistant", Value::from("b")),
        ];
        let mut long = Vec::new();
        for _ in 0..50 {
            long.extend_from_slice(&turn);
        }
        let distinct: std::collections::HashSet<_> = keys_of(&long).into_iter().collect();
        // Two messages; start-user, user-assistant, assistant-user, assistant-end.
        assert_eq!(distinct.len(), 6);
    }

    /// The keys of the last messages are those of all but for the ones of the first.
    #[test]
    fn known_messages_are_left_out() {
        let messages: Messages = ["user", "assistant", "tool", "user"]
            .map(|role| message(role, Value::from("a")))
            .into_iter()
            .collect();
        let of = |known| keys(&messages, &Variables::new(Vec::new()), &words(), known);
        for known in 0..=4 {
            assert_eq!(of(known), of(0)[2 * known..], "{known}");
        }
        let ledger = crate::ledger::Ledger::default();
        ledger.accept(&of(0)[..4]);
        assert_eq!(ledger.unseen(&of(2), 2), ledger.unseen(&of(0), 0));
    }

    #[test]
    fn switches_are_part_of_every_key() {
        let call = |value: Value| {
            keys(
                &std::iter::once(message("user", Value::from("a"))).collect(),
                &Variables::new(vec![(Value::from("enable_thinking"), value)]),
                &words(),
                0,
            )
        };
        let (on, off) = (call(Value::from(true)), call(Value::from(false)));
        assert!(on.iter().all(|key| !off.contains(key)));
    }
}
