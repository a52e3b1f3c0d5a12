//! Messages recognised from earlier calls, so that a growing conversation is converted once.
//!
//! A caller passes its whole list of messages with each turn, mostly the same objects. For the
//! conversations of the last calls the memo holds the converted messages together with references to
//! every Python object they were made of. A message is *unchanged* if all of these are still in place:
//! same dict, same keys and values, same containers of the same lengths with the same items, compared by
//! identity. That suffices, as texts and numbers cannot change and an object that is referred to cannot
//! be replaced by another one at its address. Anything else, a change in place as well, is
//! converted anew.
//!
//! The price is memory: the objects of up to [`CONVERSATIONS`] conversations, or of fewer with
//! [`BYTES`] of text, live on until other conversations replace them. Cost: a few instructions an object.
//!
//! Nobody waits for the memo: if another thread is in it, messages are converted.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::convert::{self, Converted};
use crate::message::{Message, Variables};

/// Conversations that are remembered.
const CONVERSATIONS: usize = 128;
/// Sets of other variables that are remembered.
const VARIABLES: usize = 8;
/// Bytes of messages that are remembered, all conversations together.
const BYTES: u64 = 64 << 20;

/// The conversations of the last calls, the latest first.
pub struct Memo {
    recent: Mutex<Vec<Conversation>>,
    variables: Mutex<Vec<KnownVariables>>,
}

/// Converted variables and what they were made of.
struct KnownVariables {
    length: usize,
    parts: Parts,
    variables: Variables,
}

/// Python objects in the order of a walk, with what they are: an object keeps its type, so one that is
/// still in place need not be looked into to know whether there is more inside.
type Parts = Vec<(Py<PyAny>, Sort)>;

/// What a part holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Nothing that could change.
    Leaf,
    /// Items and keys, of this number when it was met.
    Dict(usize),
    /// Items, of this number when it was met.
    List(usize),
    /// Items, always the same ones.
    Tuple,
}

struct Conversation {
    /// How the messages were normalised.
    rules: u32,
    /// Of all messages, as of the last call.
    weight: u64,
    messages: Vec<Known>,
}

/// A converted message and what it was made of.
struct Known {
    source: Py<PyDict>,
    /// Itself and everything within, in the order of a walk.
    parts: Parts,
    message: Message,
    /// Of the message; summed over all of them at each call.
    weight: u64,
}

/// The memo of this process: the same messages may go through several tokenizers and templates.
pub static MEMO: Memo = Memo {
    recent: Mutex::new(Vec::new()),
    variables: Mutex::new(Vec::new()),
};

impl Memo {
    /// The messages of a list, see [`convert::messages`].
    pub fn messages(&self, list: &Bound<'_, PyAny>, rules: u32) -> Converted<Vec<Message>> {
        let Ok(mut recent) = self.recent.try_lock() else {
            return convert::messages(list, rules);
        };
        let list = convert::list(list)?;
        let rules = rules & convert::RULES_OF_MESSAGES;
        let mut conversation = take_longest(&mut recent, list, rules);
        let messages = conversation.update(list);
        recent.insert(0, conversation);
        let dropped = over_limits(&mut recent);
        drop(recent);
        drop(dropped);
        messages
    }

    /// The variables of a call. Their dict is made for the call, what is in it is mostly the same.
    pub fn variables(&self, source: &Bound<'_, PyDict>) -> Converted<Variables> {
        let Ok(mut recent) = self.variables.try_lock() else {
            return convert::variables(source);
        };
        let known = recent.iter().position(|known| {
            let mut parts = known.parts.iter();
            known.length == source.len() && same_items(source, &mut parts)
        });
        if let Some(at) = known {
            let known = recent.remove(at);
            let variables = known.variables.clone();
            recent.insert(0, known);
            return Ok(variables);
        }
        let variables = convert::variables(source)?;
        let mut parts = Vec::new();
        collect_dict(source, &mut parts);
        recent.insert(
            0,
            KnownVariables {
                length: source.len(),
                parts,
                variables: variables.clone(),
            },
        );
        let within = recent.len().min(VARIABLES);
        let dropped = recent.split_off(within);
        drop(recent);
        drop(dropped);
        Ok(variables)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let conversations = self.recent.try_lock().map(|mut r| std::mem::take(&mut *r));
        let variables = self
            .variables
            .try_lock()
            .map(|mut r| std::mem::take(&mut *r));
        drop((conversations, variables));
    }
}

/// Takes out the conversation that shares most messages with `list`. If it goes on differently after
/// less than half of its messages it stays, and a copy of the shared ones is taken.
fn take_longest(
    recent: &mut Vec<Conversation>,
    list: &Bound<'_, PyList>,
    rules: u32,
) -> Conversation {
    let shared = recent.iter().enumerate();
    let shared = shared.filter(|(_, conversation)| conversation.rules == rules);
    let shared = shared.map(|(at, conversation)| (conversation.common(list), at));
    // Of equals the latest.
    let longest = shared.max_by_key(|&(common, at)| (common, std::cmp::Reverse(at)));
    match longest {
        Some((common, at)) if 2 * common >= recent[at].messages.len() && common > 0 => {
            recent.remove(at)
        }
        Some((common, at)) => Conversation {
            rules,
            weight: 0,
            messages: recent[at].messages[..common]
                .iter()
                .map(|known| known.clone_ref(list.py()))
                .collect(),
        },
        None => Conversation {
            rules,
            weight: 0,
            messages: Vec::new(),
        },
    }
}

/// Removes conversations, the oldest first, until the limits hold.
fn over_limits(recent: &mut Vec<Conversation>) -> Vec<Conversation> {
    let mut bytes = 0;
    let within = recent
        .iter()
        .take(CONVERSATIONS)
        .take_while(|conversation| {
            bytes += conversation.weight;
            bytes <= BYTES
        })
        .count();
    recent.split_off(within)
}

impl Conversation {
    /// The messages of `list`, of which those that are not known are converted and remembered. What
    /// was remembered beyond stays if `list` is only a beginning of it.
    fn update(&mut self, list: &Bound<'_, PyList>) -> Converted<Vec<Message>> {
        let common = self.common(list);
        if common < list.len() {
            self.messages.truncate(common);
        }
        let mut messages = Vec::with_capacity(list.len());
        for (at, item) in list.iter().enumerate() {
            let dict = convert::dict_of(&item)?;
            match self.messages.get(at) {
                Some(known) if known.is_unchanged(dict) => {}
                Some(_) => self.messages[at] = Known::new(dict, self.rules)?,
                None => self.messages.push(Known::new(dict, self.rules)?),
            }
            messages.push(self.messages[at].message.clone());
        }
        self.weight = self.messages.iter().map(|known| known.weight).sum();
        Ok(messages)
    }

    /// How many leading messages are the same objects.
    fn common(&self, list: &Bound<'_, PyList>) -> usize {
        let pairs = self.messages.iter().zip(list.iter());
        pairs
            .take_while(|(known, item)| known.source.is(item))
            .count()
    }
}

impl Known {
    fn new(source: &Bound<'_, PyDict>, rules: u32) -> Converted<Self> {
        let message = convert::message(source, rules)?;
        let mut parts = Vec::new();
        collect(source.as_any(), &mut parts);
        Ok(Known {
            source: source.clone().unbind(),
            parts,
            weight: message.weight(),
            message,
        })
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Known {
            source: self.source.clone_ref(py),
            parts: self
                .parts
                .iter()
                .map(|(part, sort)| (part.clone_ref(py), *sort))
                .collect(),
            message: self.message.clone(),
            weight: self.weight,
        }
    }

    fn is_unchanged(&self, source: &Bound<'_, PyDict>) -> bool {
        let mut parts = self.parts.iter();
        same(source.as_any(), &mut parts) && parts.as_slice().is_empty()
    }
}

fn collect(value: &Bound<'_, PyAny>, parts: &mut Parts) {
    let mut add = |sort| parts.push((value.clone().unbind(), sort));
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        add(Sort::Dict(dict.len()));
        collect_dict(dict, parts);
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        add(Sort::List(list.len()));
        for item in list.iter() {
            collect(&item, parts);
        }
    } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        add(Sort::Tuple);
        for item in tuple.iter() {
            collect(&item, parts);
        }
    } else {
        add(Sort::Leaf);
    }
}

fn collect_dict(dict: &Bound<'_, PyDict>, parts: &mut Parts) {
    for (key, value) in dict.iter() {
        collect(&key, parts);
        collect(&value, parts);
    }
}

/// Whether a walk over `value` meets just these parts next.
fn same(value: &Bound<'_, PyAny>, parts: &mut std::slice::Iter<'_, (Py<PyAny>, Sort)>) -> bool {
    let Some((part, sort)) = parts.next() else {
        return false;
    };
    if !part.is(value) {
        return false;
    }
    match *sort {
        Sort::Leaf => true,
        Sort::Dict(length) => value
            .cast_exact::<PyDict>()
            .is_ok_and(|dict| dict.len() == length && same_items(dict, parts)),
        Sort::List(length) => value
            .cast_exact::<PyList>()
            .is_ok_and(|list| list.len() == length && list.iter().all(|item| same(&item, parts))),
        Sort::Tuple => value
            .cast_exact::<PyTuple>()
            .is_ok_and(|tuple| tuple.iter().all(|item| same(&item, parts))),
    }
}

fn same_items(
    dict: &Bound<'_, PyDict>,
    parts: &mut std::slice::Iter<'_, (Py<PyAny>, Sort)>,
) -> bool {
    dict.iter()
        .all(|(key, value)| same(&key, parts) && same(&value, parts))
}

/// Forgets the messages, the variables and the texts of earlier calls.
#[pyfunction]
pub fn forget() {
    MEMO.clear();
    crate::template::reuse::forget();
}
