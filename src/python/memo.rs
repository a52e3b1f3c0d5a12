//! Messages recognised from earlier calls, so that a growing conversation is converted once.
//!
//! A caller passes its whole list of messages with each turn, mostly the same objects. For the
//! conversations of the last calls the memo holds the converted messages together with references to
//! every Python object they were made of. A message is *unchanged* if all of these are still in place:
//! same dict, same keys and values, same containers of the same lengths with the same items, compared by
//! identity. That suffices, as texts and numbers cannot change and an object that is referred to cannot
//! be replaced by another one at its address. Texts may also be other ones that say the same, since
//! transformers makes those of the special tokens anew for each call. Anything else, a change in place as
//! well, is converted anew.
//!
//! The price is memory: the objects of up to [`CONVERSATIONS`] conversations, or of fewer with
//! [`BYTES`] of text, live on until other conversations replace them. Cost: a few instructions an object.
//!
//! Nobody waits for the memo: if another thread is in it, messages are converted.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::convert::{self, Converted};
use crate::message::{Growing, Variables};

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
    /// What the messages were made of,
    sources: Vec<Source>,
    /// and the messages.
    converted: Growing,
}

/// What a message was made of.
struct Source {
    dict: Py<PyDict>,
    /// Itself and everything within, in the order of a walk.
    parts: Parts,
}

/// The memo of this process: the same messages may go through several tokenizers and templates.
pub static MEMO: Memo = Memo {
    recent: Mutex::new(Vec::new()),
    variables: Mutex::new(Vec::new()),
};

impl Memo {
    /// The messages of a list, see [`convert::messages`].
    pub fn messages(&self, list: &Bound<'_, PyAny>, rules: u32) -> Converted<Growing> {
        let Ok(mut recent) = self.recent.try_lock() else {
            return convert::messages(list, rules).map(Growing::from);
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
        Some((common, at)) if 2 * common >= recent[at].sources.len() && common > 0 => {
            recent.remove(at)
        }
        Some((common, at)) => Conversation {
            rules,
            sources: recent[at].sources[..common]
                .iter()
                .map(|source| source.clone_ref(list.py()))
                .collect(),
            converted: recent[at].converted.messages().take(common).into(),
        },
        None => Conversation {
            rules,
            sources: Vec::new(),
            converted: Growing::default(),
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
            bytes += conversation.converted.messages().weight();
            bytes <= BYTES
        })
        .count();
    recent.split_off(within)
}

impl Conversation {
    /// The messages of `list`, of which those that are not known are converted and remembered. What
    /// was remembered beyond stays if `list` is only a beginning of it.
    fn update(&mut self, list: &Bound<'_, PyList>) -> Converted<Growing> {
        let mut unchanged = 0;
        let mut converted = Vec::new();
        for (at, item) in list.iter().enumerate() {
            let dict = convert::dict_of(&item)?;
            let known = self.sources.get(at);
            if unchanged == at && known.is_some_and(|source| source.is_unchanged(dict)) {
                unchanged += 1;
                continue;
            }
            // What comes behind a message that is another one is moved over if it is the same.
            let message = match known.filter(|source| source.is_unchanged(dict)) {
                Some(_) => self.converted.messages().get(at).cloned(),
                None => None,
            };
            let message = match message {
                Some(message) => message,
                None => convert::message(dict, self.rules)?,
            };
            converted.push((Source::new(dict), message));
        }
        if unchanged < list.len() {
            self.sources.truncate(unchanged);
            self.converted.truncate(unchanged);
        }
        for (source, message) in converted {
            self.sources.push(source);
            self.converted.push(message);
        }
        if self.sources.len() == list.len() {
            return Ok(self.converted.clone());
        }
        Ok(self.converted.messages().take(list.len()).into())
    }

    /// How many leading messages are the same objects.
    fn common(&self, list: &Bound<'_, PyList>) -> usize {
        let pairs = self.sources.iter().zip(list.iter());
        pairs
            .take_while(|(source, item)| source.dict.is(item))
            .count()
    }
}

impl Source {
    fn new(dict: &Bound<'_, PyDict>) -> Self {
        let mut parts = Vec::new();
        collect(dict.as_any(), &mut parts);
        Source {
            dict: dict.clone().unbind(),
            parts,
        }
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        let parts = self.parts.iter();
        Source {
            dict: self.dict.clone_ref(py),
            parts: parts
                .map(|(part, sort)| (part.clone_ref(py), *sort))
                .collect(),
        }
    }

    fn is_unchanged(&self, dict: &Bound<'_, PyDict>) -> bool {
        let mut parts = self.parts.iter();
        same(dict.as_any(), &mut parts) && parts.as_slice().is_empty()
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
        return *sort == Sort::Leaf && is_same_text(value, part.bind(value.py()));
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

fn is_same_text(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> bool {
    match (a.cast_exact::<PyString>(), b.cast_exact::<PyString>()) {
        // Exact strings: their comparison runs no code of the caller's and does not fail.
        (Ok(a), Ok(b)) => a.as_any().eq(b).unwrap_or(false),
        _ => false,
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
