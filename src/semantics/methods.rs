//! (stub, being written)

use super::Result;
use minijinja::{Error, ErrorKind, State, Value};

/// Names of the methods that a template may call.
pub const NAMES: &[&str] = &[];

/// Calls method `name` of `value`.
pub fn call(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result {
    let _ = (state, value, name, args);
    Err(Error::from(ErrorKind::UnknownMethod))
}

/// Whether any of the types that a template can meet has an attribute of this name in Python.
pub fn is_attribute_name(name: &str) -> bool {
    let _ = name;
    false
}
