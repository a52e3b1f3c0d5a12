//! From Python objects to the owned values a template sees: the only walk over Python objects.
//!
//! Exact types only (`type(x) is dict`). Everything else (a subclass, a lone surrogate, an integer
//! past 128 bits) is a reason `value:<kind>`: what jinja2 makes of such an object differs between
//! transformers versions, and the caller's input is left untouched for the reference. Bools are
//! tested before ints, key order is kept. Cost: one visit per object and one copy per string.

use minijinja::Value;
use minijinja::value::Tuple;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::memo::Memo;
use crate::call::Call;
use crate::error::{Category, Reason};
use crate::message::{Growing, Message, Messages, Variables};
use crate::semantics::Dict;

/// Rule bit: top-level keys of a message whose value is `None` are dropped (transformers 5).
pub const RULE_DROP_NULL: u32 = 1;
/// Rule bit: the reasoning fields of a message are copied to each other (transformers 5).
pub const RULE_ALIAS_REASONING: u32 = 2;
/// Rule bit: report the aspects of a call's shape that were never checked against the reference.
pub const RULE_WATCH_SHAPES: u32 = 4;
/// Rule bit: let the id oracle look at the ids.
pub const RULE_WATCH_IDS: u32 = 8;

/// Rule bit: the tracker of `generation` tags is idle until something was rendered (transformers 4).
pub const RULE_LATE_TRACKER: u32 = 16;
/// Rule bit: the assistant mask takes every token that overlaps a span (newer transformers 5).
pub const RULE_MASK_OVERLAP: u32 = 32;

/// The rules that change what a message is converted to.
pub const RULES_OF_MESSAGES: u32 = RULE_DROP_NULL | RULE_ALIAS_REASONING;

/// The names under which a message's reasoning is passed, the standard one first
/// (`_REASONING_FIELDS` of `transformers/utils/chat_template_utils.py`).
const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Containers nested deeper than this are left to the reference.
const MAX_DEPTH: usize = 100;

/// A converted value, or why there is none.
pub type Converted<T> = Result<T, Reason>;

fn refuse<T>(kind: &'static str) -> Converted<T> {
    Err(Reason::new(Category::Value, kind))
}

/// The messages of a conversation, normalised as `rules` say.
pub fn messages(messages: &Bound<'_, PyAny>, rules: u32) -> Converted<Messages> {
    let items = list(messages)?.iter();
    items.map(|item| message(dict_of(&item)?, rules)).collect()
}

/// A conversation is a list,
pub fn list<'a, 'py>(messages: &'a Bound<'py, PyAny>) -> Converted<&'a Bound<'py, PyList>> {
    messages
        .cast_exact::<PyList>()
        .or_else(|_| refuse("conversation"))
}

/// of dicts.
pub fn dict_of<'a, 'py>(message: &'a Bound<'py, PyAny>) -> Converted<&'a Bound<'py, PyDict>> {
    message
        .cast_exact::<PyDict>()
        .or_else(|_| refuse("message"))
}

/// A call of a template with a converted `conversation`; `memo` may recognise the variables.
pub fn call(
    variables: &Bound<'_, PyDict>,
    clock: &Bound<'_, PyDict>,
    conversation: Growing,
    memo: Option<&Memo>,
) -> Converted<Call> {
    Ok(Call {
        conversation,
        variables: match memo {
            Some(memo) => memo.variables(variables)?,
            None => self::variables(variables)?,
        },
        clock: dict(clock, 0)?.into(),
    })
}

/// The variables of a template.
pub fn variables(source: &Bound<'_, PyDict>) -> Converted<Variables> {
    Ok(Variables::new(pairs(source, 0)?))
}

/// One message, normalised as `rules` say.
pub fn message(source: &Bound<'_, PyDict>, rules: u32) -> Converted<Message> {
    let mut entries = Vec::with_capacity(source.len() + 2);
    for (key, value) in source.iter() {
        if value.is_none() && rules & RULE_DROP_NULL != 0 {
            continue;
        }
        entries.push((self::key(&key)?, any(&value, 1)?));
    }
    if rules & RULE_ALIAS_REASONING != 0 {
        entries = alias_reasoning(entries);
    }
    Ok(Message::new(Dict::new(entries)))
}

/// `{"thinking": reasoning, **message, "reasoning_content": reasoning}`, as transformers 5 writes it.
fn alias_reasoning(entries: Vec<(Value, Value)>) -> Vec<(Value, Value)> {
    let find = |name: &str| entries.iter().find(|(key, _)| key.as_str() == Some(name));
    let Some((_, reasoning)) = REASONING_FIELDS
        .into_iter()
        .filter_map(find)
        .find(|(_, value)| !value.is_none())
    else {
        return entries;
    };
    let reasoning = reasoning.clone();
    let thinking = find("thinking").map_or_else(|| reasoning.clone(), |(_, value)| value.clone());
    let mut aliased = Vec::with_capacity(entries.len() + 2);
    aliased.push((Value::from("thinking"), thinking));
    let mut standard = false;
    for (key, value) in entries {
        match key.as_str() {
            Some("thinking") => {}
            Some("reasoning_content") => {
                standard = true;
                aliased.push((key, reasoning.clone()));
            }
            _ => aliased.push((key, value)),
        }
    }
    if !standard {
        aliased.push((Value::from("reasoning_content"), reasoning));
    }
    aliased
}

fn dict(source: &Bound<'_, PyDict>, depth: usize) -> Converted<Dict> {
    Ok(Dict::new(pairs(source, depth)?))
}

fn pairs(source: &Bound<'_, PyDict>, depth: usize) -> Converted<Vec<(Value, Value)>> {
    let mut entries = Vec::with_capacity(source.len());
    for (key, value) in source.iter() {
        entries.push((self::key(&key)?, any(&value, depth + 1)?));
    }
    Ok(entries)
}

fn key(key: &Bound<'_, PyAny>) -> Converted<Value> {
    match key.cast_exact::<PyString>() {
        Ok(key) => string(key),
        Err(_) => refuse("key"),
    }
}

fn string(text: &Bound<'_, PyString>) -> Converted<Value> {
    match text.to_str() {
        Ok(text) => Ok(Value::from(text)),
        Err(_) => refuse("surrogate"),
    }
}

fn any(value: &Bound<'_, PyAny>, depth: usize) -> Converted<Value> {
    if depth > MAX_DEPTH {
        return refuse("depth");
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return string(text);
    }
    if let Ok(source) = value.cast_exact::<PyDict>() {
        return Ok(Value::from_object(dict(source, depth)?));
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        let mut items = Vec::with_capacity(list.len());
        for item in list.iter() {
            items.push(any(&item, depth + 1)?);
        }
        return Ok(Value::from_object(items));
    }
    if value.is_none() {
        return Ok(Value::from(()));
    }
    if let Ok(flag) = value.cast_exact::<PyBool>() {
        return Ok(Value::from(flag.is_true()));
    }
    if value.cast_exact::<PyInt>().is_ok() {
        return integer(value);
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Ok(Value::from(number.value()));
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        let mut items = Vec::with_capacity(tuple.len());
        for item in tuple.iter() {
            items.push(any(&item, depth + 1)?);
        }
        return Ok(Value::from(Tuple::from(items)));
    }
    refuse("object")
}

fn integer(value: &Bound<'_, PyAny>) -> Converted<Value> {
    if let Ok(small) = value.extract::<i64>() {
        return Ok(Value::from(small));
    }
    match value.extract::<i128>() {
        Ok(large) => Ok(Value::from(large)),
        Err(_) => refuse("int"),
    }
}
