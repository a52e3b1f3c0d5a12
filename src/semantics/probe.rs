//! What the unit tests of this module share: calls by name, as the engine makes them.

use super::kind::Kind;
use super::{Dict, Result, Unproved, environment, text};
use minijinja::value::{Kwargs, Tuple};
use minijinja::{Environment, Error, State, Value};
use std::error::Error as _;
use std::sync::LazyLock;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

fn with<R>(act: impl FnOnce(&mut State) -> R) -> R {
    act(&mut ENVIRONMENT.empty_state())
}

/// `value | name(args)`, printed, or the code of the error.
pub(super) fn filter(name: &str, args: &[Value]) -> String {
    shown(filtered(name, args))
}

/// `value | name(args)`.
pub(super) fn filtered(name: &str, args: &[Value]) -> Result {
    with(|state| state.apply_filter(name, args))
}

/// `value.name(args)`, printed, or the code of the error.
pub(super) fn method(name: &str, args: &[Value]) -> String {
    shown(called_method(name, args))
}

/// `value.name(args)`.
pub(super) fn called_method(name: &str, args: &[Value]) -> Result {
    with(|state| args[0].call_method(state, name, &args[1..]))
}

/// `name(args)`, printed, or the code of the error.
pub(super) fn function(name: &str, args: &[Value]) -> String {
    shown(called(name, args))
}

/// `name(args)`.
pub(super) fn called(name: &str, args: &[Value]) -> Result {
    with(|state| state.lookup(name).unwrap().call(state, args))
}

/// `value is name(args)`, or the code of the error.
pub(super) fn test(name: &str, args: &[Value]) -> String {
    shown(with(|state| state.perform_test(name, args)).map(Value::from))
}

/// The text of a result; generators as `<a, b>`, errors as `!code`.
pub(super) fn shown(result: Result) -> String {
    let text = result.and_then(|value| match Kind::of(&value) {
        Kind::Generator(generator) => {
            let items = text::repr_of(&Value::from(generator.take()?))?;
            Ok(format!("<{}>", items.trim_matches(['[', ']'])))
        }
        _ => text::str_of(&value).map(|text| text.into_owned()),
    });
    text.unwrap_or_else(|error| format!("!{}", code(&error)))
}

/// The code of an error of ours.
pub(super) fn code(error: &Error) -> &'static str {
    let unproved = error.source().and_then(|source| source.downcast_ref());
    unproved.map_or("foreign", |Unproved(code)| code)
}

pub(super) fn none() -> Value {
    Value::from(())
}

pub(super) fn list<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Value {
    items.into_iter().map(Into::into).collect()
}

pub(super) fn tuple<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Value {
    Tuple::new(items.into_iter().map(Into::into).collect()).into()
}

pub(super) fn dict<V: Into<Value>>(entries: impl IntoIterator<Item = (&'static str, V)>) -> Value {
    let entries = entries.into_iter();
    let entries = entries.map(|(key, value)| (Value::from(key), value.into()));
    Value::from_object(Dict::new(entries.collect()))
}

pub(super) fn keywords<V: Into<Value>>(
    entries: impl IntoIterator<Item = (&'static str, V)>,
) -> Value {
    let entries = entries.into_iter();
    Kwargs::from_iter(entries.map(|(key, value)| (key, value.into()))).into()
}
