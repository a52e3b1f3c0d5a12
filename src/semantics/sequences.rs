//! Iterating, sorting and selecting: what the list filters share.

use super::kind::{Kind, int};
use super::{Result, attributes, budget, casing, compare, unproved};
use minijinja::Value;
use std::borrow::Cow;
use std::cmp::Ordering;

/// The elements of anything that Python iterates over.
pub(super) fn elements(value: &Value) -> Result<Cow<'_, [Value]>> {
    let kind = Kind::of(value);
    if !matches!(kind, Kind::List(_) | Kind::Tuple(_)) {
        budget::reads(std::slice::from_ref(value))?;
    }
    Ok(match kind {
        Kind::List(items) | Kind::Tuple(items) => Cow::Borrowed(items),
        Kind::Undefined => Cow::Borrowed(&[]),
        Kind::Str(text) => Cow::Owned(text.chars().map(Value::from).collect()),
        Kind::Dict(dict) => Cow::Owned(dict.entries().iter().map(|(key, _)| key.clone()).collect()),
        Kind::View(view) => Cow::Owned(view.values()),
        Kind::Range(range) => Cow::Owned(range.values()),
        Kind::Generator(generator) => Cow::Owned(generator.take()?),
        _ => return Err(unproved("iterate")),
    })
}

/// `len(value)`.
pub(super) fn length(value: &Value) -> Result<usize> {
    match Kind::of(value) {
        Kind::Undefined => Ok(0),
        Kind::Str(text) | Kind::Markup(text) => Ok(text.chars().count()),
        Kind::List(items) | Kind::Tuple(items) => Ok(items.len()),
        Kind::Dict(dict) => Ok(dict.entries().len()),
        Kind::View(view) => Ok(view.len()),
        Kind::Range(range) => Ok(range.len()),
        _ => Err(unproved("length")),
    }
}

/// A parsed `attribute=` argument: item lookups one after the other.
pub(super) struct Path(Vec<Value>);

impl Path {
    /// jinja2's `_prepare_attribute_parts`.
    pub(super) fn of(attribute: Option<&Value>) -> Result<Self> {
        let Some(attribute) = attribute else {
            return Ok(Path(Vec::new()));
        };
        match Kind::of(attribute) {
            Kind::None => Ok(Path(Vec::new())),
            Kind::Str(text) => text.split('.').map(part).collect::<Result<_>>().map(Path),
            Kind::Int(_) => Ok(Path(vec![attribute.clone()])),
            _ => Err(unproved("attribute")),
        }
    }

    /// One path for each part of a comma separated list.
    pub(super) fn many(attribute: Option<&Value>) -> Result<Vec<Self>> {
        match attribute.map(Kind::of) {
            Some(Kind::Str(text)) => {
                let parts = text.split(',');
                parts
                    .map(|part| Path::of(Some(&Value::from(part))))
                    .collect()
            }
            _ => Ok(vec![Path::of(attribute)?]),
        }
    }

    /// The value at the path; `default` where a step is undefined.
    pub(super) fn get(&self, value: &Value, default: Option<&Value>) -> Result {
        let mut value = value.clone();
        for part in &self.0 {
            if matches!(Kind::of(&value), Kind::Namespace) {
                // Python would read it later than we do.
                return Err(unproved("attribute"));
            }
            value = attributes::item(&value, part)?;
            if let Some(default) = default
                && value.is_undefined()
            {
                value = default.clone();
            }
        }
        Ok(value)
    }
}

fn part(text: &str) -> Result {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.is_ascii() || !text.chars().any(char::is_numeric) {
            true => Ok(Value::from(text)),
            false => Err(unproved("unicode")),
        };
    }
    text.parse().map(int).map_err(|_| unproved("int"))
}

/// A string in lower case, anything else as it is: jinja2's `ignore_case`.
pub(super) fn ignore_case(value: Value) -> Result {
    match Kind::of(&value) {
        Kind::Str(text) => casing::lower(&value, text),
        Kind::Markup(_) => Err(unproved("markup")),
        _ => Ok(value),
    }
}

/// Stable sort of `items` by the keys beside them, as `sorted(..., reverse=reverse)`.
pub(super) fn sorted(mut items: Vec<(Value, Value)>, reverse: bool) -> Result<Vec<Value>> {
    let mut failed = None;
    items.sort_by(|(a, _), (b, _)| match compare::order(a, b) {
        Ok(Some(order)) if reverse => order.reverse(),
        Ok(Some(order)) => order,
        Ok(None) => {
            failed = Some(unproved("nan"));
            Ordering::Equal
        }
        Err(error) => {
            failed = Some(error);
            Ordering::Equal
        }
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(items.into_iter().map(|(_, item)| item).collect()),
    }
}
